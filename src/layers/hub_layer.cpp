#include "layers/hub_layer.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

std::uint64_t source_column(GpuId gpu, std::uint32_t result) {
    return (std::uint64_t{gpu} << 32) | result;
}

}  // namespace

HubLayer::HubLayer(MoeLayer& of)
    : layer(of),
      all_ready(of.gpus.fabric),
      relay(of, [this](GpuId gpu, const CarriedRow& row) { return pass_on(gpu, row); }),
      inputs_(of.input.placement.hosts.size()) {
    layer.gpus.add_statistics(
        [&gpus = layer.gpus] { return gpus.hub_statistics(HubUnits::moe_hub); });
    const bool whole_packets = layer.dispatch_bytes() % layer.gpus.fabric.link().payload == 0;
    const bool one_node = layer.input.machine.nodes == 1;
    if (layer.options.grain == Grain::row && whole_packets && one_node) stores_per_row_ = 1;
    counters_.results_sent = of.gpus.add_counter("acknowledged results");
    counters_.results = of.gpus.add_counter("returned results");
    counters_.kernels_done = of.gpus.add_counter("finished experts");
    const std::size_t experts = layer.input.placement.hosts.size();
    counters_.sent_to = of.gpus.add_counters("acknowledged rows to an expert", experts);
    counters_.flags = of.gpus.add_counters("flags for an expert", experts);
    counters_.result_flags = of.gpus.add_counter("flags of all results");
    for (const GpuId gpu : layer.gpus.all()) {
        experts_.emplace_back();
        for (const int expert : layer.experts_of(gpu)) add_expert(gpu, expert);
        const sim::RowSpace results{
            .name = fmt::format("results on gpu {}", gpu),
            .rows = std::int64_t{layer.tokens(gpu)} * layer.top_k() * layer.shards(),
            .data_bytes = layer.combine_bytes(),
            .allocated = false};
        results_.push_back(rowsp_malloc(layer.endpoint(gpu), results));
        sim::ReplicaTable& replicas = layer.gpus.hub(gpu).replicas(layer.options.replicas);
        for (const auto& hosts : layer.input.placement.hosts)
            replicas.add(std::vector<std::uint32_t>(hosts.begin(), hosts.end()));
        layer.endpoint(gpu).spawn("end of the experts", watch_experts(gpu));
    }
}

void HubLayer::add_expert(GpuId gpu, int expert) {
    const std::int64_t expected = layer.tiling_rows(expert);
    const std::int64_t rows = layer.rows_on(layer.rank_of(gpu), expert);
    LocalExpert made;
    made.expert = expert;
    sim::Card& card = layer.card(gpu);
    made.up =
        std::make_unique<sim::RowGemm>(card, layer.plan_up_like(rows, layer.plan_up(expected)),
                                       KernelName::expert_up, sim::TileOrder::by_columns);
    const std::size_t number = experts_[gpu].size();
    made.down = std::make_unique<sim::RowGemm>(
        card, layer.plan_down_like(rows, layer.plan_down_and_send(expected)),
        KernelName::expert_down, sim::TileOrder::by_rows,
        [this, gpu, number](std::uint32_t block) { send_back(gpu, experts_[gpu][number], block); });

    const LayerOptions& options = layer.options;
    sim::RowSpace space;
    space.name = fmt::format("input of expert {} on gpu {}", expert, gpu);
    space.rows = options.region_rows > 0 ? options.region_rows : layer.input.routing.tokens;
    space.data_bytes = layer.dispatch_bytes();
    space.block_rows = std::max(1u, made.up->block_rows() * made.up->blocks_at_once());
    const auto page = static_cast<std::uint32_t>(options.page_rows);
    space.page_rows = (page + space.block_rows - 1) / space.block_rows * space.block_rows;
    space.source_column = true;
    made.input = rowsp_malloc(layer.endpoint(gpu), space);
    inputs_[static_cast<std::size_t>(expert)].push_back(made.input);
    experts_[gpu].push_back(std::move(made));
}

std::int64_t HubLayer::rows_stored(GpuId gpu) const {
    const std::vector<Row>& rows = layer.rows_of(gpu);
    return std::count_if(rows.begin(), rows.end(),
                         [&](const Row& row) { return !relay.crosses(gpu, row); });
}

/// What crosses goes first: it has the longest way.
Process HubLayer::send_rows(GpuId from, bool by_expert) {
    const std::vector<HubRelay::Crossing> crossing = relay.crossings(from);
    std::vector<const Row*> rows;
    for (const Row& row : layer.rows_of(from))
        if (!relay.crosses(from, row)) rows.push_back(&row);
    Sending sending;
    sending.sms = layer.system.sending_sms;
    sending.rows = static_cast<std::int64_t>(crossing.size() + rows.size());
    sending.read = static_cast<double>(layer.dispatch_bytes());
    sending.stored = sending.read * layer.shards();
    sending.table = sending.read * layer.tokens(from);
    std::function<int(std::int64_t)> store = [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        if (at < crossing.size()) {
            relay.cross(from, crossing[at]);
            return 1;
        }
        const Row& row = *rows[at - crossing.size()];
        return send(from, row,
                    by_expert ? counters_.sent_to + row.expert : all_ready.acknowledged());
    };
    co_await run_sending(layer, from, sending, store);
    if (relay.active()) relay.tell_all(from, crossing);
}

std::uint32_t HubLayer::copy_of(std::uint32_t expert, std::uint32_t rank) const {
    const auto& hosts = layer.input.placement.hosts[expert];
    const auto found = std::find(hosts.begin(), hosts.end(), static_cast<int>(rank));
    return static_cast<std::uint32_t>(found - hosts.begin());
}

void HubLayer::store_at(GpuId from, sim::MallocId to, const Stored& row) {
    const sim::RowStore store{.to = to,
                              .row_id = row.id,
                              .bytes = layer.dispatch_bytes(),
                              .numbers = layer.books.input(row.token),
                              .answered = row.answered};
    const std::uint64_t source = source_column(from, row.result);
    {
        const sim::Carrying carrying(layer.gpus.recorder(), row.token, layer.choice_of(row.id),
                                     sim::RowLog::What::row);
        if (stores_per_row_ == 1) {
            store_row_and_source(layer.endpoint(from), store, source);
            return;
        }
        store_row(layer.endpoint(from), store);
    }
    store_source(layer.endpoint(from), store, source);
}

/// Where in its home's buffer a row's results lie: the first shard's; the others follow.
std::uint32_t HubLayer::first_result(GpuId home, const Row& row) const {
    const std::uint32_t of_home =
        (row.token - layer.first_token(home)) * layer.top_k() + row.choice;
    return of_home * static_cast<std::uint32_t>(layer.shards());
}

/// A row and its source column to all shards of a copy of its expert. Where rows cross once, the
/// copy was chosen for all of a token's rows together.
int HubLayer::send(GpuId from, const Row& row, sim::CounterId answered) {
    const std::uint32_t rank =
        relay.active() ? row.rank : layer.gpus.hub(from).replicas().choose(row.expert);
    const auto shards = static_cast<std::uint32_t>(layer.shards());
    const std::uint32_t result = first_result(from, row);
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
        const sim::MallocId to = inputs_[row.expert][copy_of(row.expert, rank) * shards + shard];
        store_at(from, to, {row.id, row.token, result, answered});
    }
    return layer.shards();
}

/// A row of another node's token: its result comes back here.
int HubLayer::pass_on(GpuId from, const CarriedRow& row) {
    const std::uint32_t number = row.token * layer.top_k() + row.choice;
    const auto rank = static_cast<std::uint32_t>(layer.rank_of(relay.target(row)));
    const sim::MallocId to = inputs_[row.expert][copy_of(row.expert, rank)];
    store_at(from, to, {number, row.token, HubRelay::kPassedOn | number, all_ready.acknowledged()});
    return static_cast<int>(stores_per_row_);
}

std::int64_t HubLayer::stores(GpuId gpu) const {
    return stores_per_row_ * results_of(gpu);
}

std::vector<std::int64_t> HubLayer::stores_by_expert(GpuId gpu) const {
    std::vector<std::int64_t> stores(inputs_.size());
    for (const Row& row : layer.rows_of(gpu))
        stores[row.expert] += stores_per_row_ * layer.shards();
    return stores;
}

std::vector<GpuId> HubLayer::gpus_with(std::uint32_t expert) const {
    std::vector<GpuId> gpus;
    for (const sim::MallocId& input : inputs_[expert]) gpus.push_back(input.gpu);
    return gpus;
}

std::int64_t HubLayer::rows_in(GpuId gpu) const {
    std::int64_t sum = 0;
    for (const LocalExpert& expert : experts_[gpu]) sum += rows_in(gpu, expert);
    return sum;
}

void HubLayer::send_back(GpuId gpu, const LocalExpert& expert, std::uint32_t row_block) {
    const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(expert.input.region);
    const std::uint32_t block = expert.down->block_rows();
    const std::uint32_t last = std::min((row_block + 1) * block, memory.rows());
    const int shard = layer.shard_of(gpu);
    for (std::uint32_t number = row_block * block; number < last; ++number) {
        if (!memory.complete(number)) check_row(gpu, expert, number);  // fails, and says why
        const std::uint32_t id = memory.row_id(number);
        layer.note_computed(layer.token_of(id), layer.choice_of(id), gpu);
        const std::uint64_t source = memory.source(number);
        const auto home = static_cast<GpuId>(source >> 32);
        const auto place = static_cast<std::uint32_t>(source);
        const double* numbers = layer.books.result(expert.expert, shard, memory.numbers(number));
        if ((place & HubRelay::kPassedOn) != 0) {
            relay.bring(gpu, home, place, numbers);
            continue;
        }
        const sim::PlainStore result{.to = results_[home],
                                     .row = place + static_cast<std::uint32_t>(shard),
                                     .bytes = layer.combine_bytes(),
                                     .numbers = numbers,
                                     .arrived = counters_.results,
                                     .answered = counters_.results_sent};
        const sim::Carrying carrying(layer.gpus.recorder(), layer.token_of(id), layer.choice_of(id),
                                     sim::RowLog::What::result);
        store(layer.endpoint(gpu), result);
    }
}

// The hubs' own doing.

void HubLayer::Starter::rows_ready(sim::RegionId region, std::uint32_t row_block) {
    // A group of row blocks is ready together; at the end the last has only those that came.
    const LocalExpert& expert = hub.expert_in(gpu, region);
    const std::uint32_t at_once = expert.up->blocks_at_once();
    const std::uint32_t first = row_block * at_once;
    const std::uint32_t blocks = (hub.rows_in(gpu, expert) - 1) / expert.up->block_rows() + 1;
    expert.up->start(first, std::min(at_once, blocks - first));
    if (hub.layer.gpus.recorder() == nullptr) return;
    const sim::RowMemory& memory = hub.layer.gpus.hub(gpu).memory(region);
    const std::uint32_t size = expert.up->block_rows();
    const std::uint32_t last = std::min((first + at_once) * size, memory.rows());
    for (std::uint32_t number = first * size; number < last; ++number) {
        const std::uint32_t id = memory.row_id(number);
        hub.layer.note_step(hub.layer.token_of(id), hub.layer.choice_of(id), "released", gpu);
    }
}

void HubLayer::spawn_dam(GpuId gpu) {
    layer.gpus.hub(gpu).listen(starters_.emplace_back(*this, gpu));
    if (relay.active())
        layer.endpoint(gpu).spawn("hub: rows of other nodes", start_all_ready(gpu));
    else
        all_ready.start(gpu, stores(gpu));
}

/// A GPU has sent everything when it has passed on all that crossed to it, too.
Process HubLayer::start_all_ready(GpuId gpu) {
    co_await relay.all_passed_on(gpu);
    all_ready.start(gpu, stores(gpu) + relay.stores(gpu));
}

Process HubLayer::watch_experts(GpuId gpu) {
    co_await layer.endpoint(gpu).until(counters_.kernels_done, kernels(gpu));
    layer.experts_ended(gpu);
}

Process HubLayer::results_ready(GpuId gpu) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await endpoint.until(counters_.results, results_of(gpu));
    co_await relay.sums_back(gpu);
    co_await endpoint.delay(layer.input.machine.moe_hub.ready_latency);
    check_results(gpu);
}

void HubLayer::check_results(GpuId gpu) const {
    const sim::RowMemory& results = layer.gpus.hub(gpu).memory(results_[gpu].region);
    const auto shards = static_cast<std::uint32_t>(layer.shards());
    for (const Row& row : layer.rows_of(gpu)) {
        if (relay.crosses(gpu, row)) continue;
        layer.note_returned(row.token, row.choice);
        const std::uint32_t first = first_result(gpu, row);
        for (std::uint32_t number = first; number < first + shards; ++number) {
            if (number < results.rows() && results.complete(number)) continue;
            throw std::logic_error(fmt::format("result {} of gpu {} has not come", number, gpu));
        }
    }
}

Process HubLayer::run_shared(GpuId gpu) {
    co_await layer.run_shared(gpu);
    layer.endpoint(gpu).increase(counters_.kernels_done);
}

void HubLayer::communication(GpuId gpu, bool underway) {
    layer.card(gpu).activity.communicate(underway ? 1 : -1, layer.endpoint(gpu).now());
}

/// Every row number of a region holds all of a row that chose its expert.
void HubLayer::check_row(GpuId gpu, const LocalExpert& expert, std::uint32_t number) const {
    const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(expert.input.region);
    const std::uint32_t id = memory.row_id(number);
    const bool complete = memory.complete(number);
    if (complete && layer.token_of(id) < layer.input.routing.tokens) {
        const auto chosen = layer.input.routing.chosen_by(0, layer.token_of(id));
        if (chosen[layer.choice_of(id)] == expert.expert) return;
    }
    throw std::logic_error(fmt::format("row number {} of the input of expert {} on gpu {} {}",
                                       number, expert.expert, gpu,
                                       complete ? "holds another expert's row" : "is not filled"));
}

void HubLayer::close_books() {
    for (const GpuId gpu : layer.gpus.all()) {
        for (const LocalExpert& expert : experts_[gpu]) {
            const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(expert.input.region);
            for (std::uint32_t number = 0; number < memory.rows(); ++number) {
                const std::uint32_t id = memory.row_id(number);
                check_row(gpu, expert, number);
                layer.books.delivered(layer.token_of(id), layer.choice_of(id), layer.shard_of(gpu));
            }
        }
        const sim::RowMemory& results = layer.gpus.hub(gpu).memory(results_[gpu].region);
        const auto shards = static_cast<std::uint32_t>(layer.shards());
        for (std::uint32_t number = 0; number < results.rows(); ++number) {
            if (!results.complete(number)) continue;
            const std::uint32_t choice = number / shards;
            layer.books.returned(layer.first_token(gpu) + choice / layer.top_k(),
                                 choice % layer.top_k(), static_cast<int>(number % shards),
                                 results.numbers(number));
        }
    }
}

LayerResult run_hub(const Job& job, void (*spawn)(HubLayer&, GpuId)) {
    return run_with_host(job, [&](MoeLayer& layer) {
        HubLayer hub(layer);
        for (const GpuId gpu : layer.gpus.all()) spawn(hub, gpu);
        layer.gpus.fabric.run();
        hub.close_books();
        return layer.result();
    });
}

}  // namespace moehub::layers
