#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <algorithm>

namespace moehub::layers {

std::int64_t add_tokens(MultimemLayer& rows, GpuId gpu) {
    std::int64_t stores = 0;
    const std::uint32_t first = rows.layer.first_token(gpu);
    const std::uint32_t node = rows.layer.gpus.fabric.topology().node(gpu);
    for (std::uint32_t token = first; token < first + rows.layer.tokens(gpu); ++token)
        stores += rows.stores_of(rows.add_token(gpu, token, rows.rows_by_node(token)[node]));
    return stores;
}

Process send_tokens(MultimemLayer& rows, GpuId gpu, sim::CounterId answered, Crossings crossings) {
    MoeLayer& layer = rows.layer;
    const std::uint32_t first = layer.first_token(gpu);
    std::int64_t stores = crossings.stores;
    for (std::uint32_t i = 0; i < layer.tokens(gpu); ++i)
        stores += rows.stores_of(rows.token_on(gpu, first + i));
    Sending sending;
    sending.sms = layer.system.sending_sms;
    sending.rows = layer.tokens(gpu);
    sending.read = static_cast<double>(layer.dispatch_bytes());
    sending.stored = sending.read * static_cast<double>(stores) / static_cast<double>(sending.rows);
    sending.table = sending.read * static_cast<double>(sending.rows);
    std::function<int(std::int64_t)> store = [&](std::int64_t i) {
        const auto token = first + static_cast<std::uint32_t>(i);
        const int here = rows.store(gpu, rows.token_on(gpu, token), {answered, true});
        return here + (crossings.store ? crossings.store(token) : 0);
    };
    co_await run_sending(layer, gpu, sending, store);
}

void write_all_results(MultimemLayer& rows, GpuId gpu) {
    for (const MultimemExpert& expert : rows.experts(gpu))
        rows.write_results(gpu, expert, 0, rows.rows_in(gpu, expert));
}

void TileStarter::rows_ready(sim::RegionId region, std::uint32_t tile) {
    const auto& experts = rows_.experts(gpu_);
    const auto expert = std::find_if(experts.begin(), experts.end(),
                                     [&](const auto& one) { return one.input == region; });
    sim::RowGemm& up = gemm_(static_cast<std::size_t>(expert - experts.begin()));
    const std::uint32_t in_tile = rows_.layer.gpus.hub(gpu_).space(region).block_rows;
    const std::uint32_t here = std::min(in_tile, rows_.rows_in(gpu_, *expert) - tile * in_tile);
    const std::uint32_t size = up.block_rows();
    up.start(tile * (in_tile / size), (here - 1) / size + 1);
    if (rows_.layer.gpus.recorder() == nullptr) return;
    const std::uint32_t first = tile * in_tile;
    for (const CarriedRow& row : rows_.rows_of(gpu_, *expert, first, first + here))
        rows_.layer.note_step(row.token, row.choice, "released", gpu_);
}

CombiningKernel::CombiningKernel(MultimemLayer& rows, Collected collected)
    : rows_(rows),
      collected_(std::move(collected)),
      ready_(rows.layer.gpus.add_counter("tokens whose results are there")),
      queues_(rows.layer.gpus.count()) {}

void CombiningKernel::add(GpuId gpu, const Item& item) {
    queues_[gpu].items.push_back(item);
    rows_.layer.endpoint(gpu).increase(ready_);
}

void CombiningKernel::start(GpuId gpu) {
    rows_.layer.card(gpu).blocks.hold(sms(), KernelName::combine);
    for (int sm = 0; sm < sms(); ++sm)
        rows_.layer.endpoint(gpu).spawn_unit("SM that loads sums", run_sm(gpu));
}

Process CombiningKernel::run_sm(GpuId gpu) {
    sim::Endpoint& endpoint = rows_.layer.endpoint(gpu);
    Queue& queue = queues_[gpu];
    const Kernels& kernels = rows_.layer.input.machine.gpu.kernels;
    const sim::CounterId arrived = endpoint.add_counter("sums for an SM");
    std::int64_t posted = 0;  // loads
    for (;;) {
        const auto ticket = static_cast<std::int64_t>(queue.next++);
        while (endpoint.value(ready_) <= ticket && endpoint.value(arrived) < posted) {
            co_await endpoint.until(arrived, endpoint.value(arrived) + 1);
            take_collected(gpu);
        }
        co_await endpoint.until(ready_, ticket + 1);
        const Item item = queue.items[static_cast<std::size_t>(ticket)];
        const NodeToken& token = rows_.token_on(gpu, item.token);
        const auto bytes = static_cast<double>(item.part.bytes);
        const RowCopy copy{bytes * rows_.own_rows(token), 0, bytes};
        co_await endpoint.delay(to_ps(row_copy_seconds(kernels, copy)));
        const std::int64_t most =
            std::max<Bytes>(1, rows_.layer.system.load_window / item.part.bytes);
        const std::int64_t loads = rows_.loads_of(token);
        co_await endpoint.until(arrived, posted + loads - std::max(most, loads));
        posted += rows_.load(gpu, token, item.part, arrived);
        if (item.last) queue.underway.push_back(item.token);
        take_collected(gpu);
    }
}

void CombiningKernel::take_collected(GpuId gpu) {
    std::erase_if(queues_[gpu].underway, [&](std::uint32_t token) {
        if (!rows_.collected(gpu, rows_.token_on(gpu, token))) return false;
        rows_.note_step(gpu, token,
                        rows_.layer.home_of(token) == gpu ? "returned" : "collected in its node");
        collected_(gpu, token);
        return true;
    });
}

namespace {

constexpr std::uint16_t kWhole = 0xffff;  ///< no choice: a sum of several

}  // namespace

Relay::Relay(MultimemLayer& rows)
    : rows_(rows),
      out_(rows.layer.gpus, "tokens of other nodes", 1),
      home_(rows.layer.gpus, "sums of other nodes", 1) {}

GpuId Relay::on_rail_of(GpuId home, std::uint32_t node) const {
    const sim::Topology& topology = rows_.layer.gpus.fabric.topology();
    return static_cast<GpuId>(node * topology.gpus_per_node + topology.rail(home));
}

GpuId Relay::collector(GpuId gpu, std::uint32_t token) const {
    return on_rail_of(rows_.layer.home_of(token), rows_.layer.gpus.fabric.topology().node(gpu));
}

std::int64_t Relay::crossings(GpuId home) const {
    if (!several_nodes()) return 0;
    const std::uint32_t here = rows_.layer.gpus.fabric.topology().node(home);
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < rows_.layer.tokens(home); ++i) {
        const std::vector<Rows> nodes = rows_.rows_by_node(rows_.layer.first_token(home) + i);
        for (std::uint32_t node = 0; node < nodes.size(); ++node)
            sum += node != here && !nodes[node].empty();
    }
    return sum;
}

int Relay::cross(GpuId home, const std::vector<Rows>& by_node) {
    const std::uint32_t here = rows_.layer.gpus.fabric.topology().node(home);
    int stores = 0;
    for (std::uint32_t node = 0; node < by_node.size(); ++node) {
        if (node == here || by_node[node].empty()) continue;
        const Bytes list = kTokenBytes + kExpertBytes * static_cast<Bytes>(by_node[node].size());
        out_.store_told(home, on_rail_of(home, node), 0, by_node[node], rows_.sent_bytes() + list);
        ++stores;
    }
    return stores;
}

std::vector<Rows> Relay::take(GpuId gpu) {
    std::vector<Rows> tokens;
    for (sim::Received& one : out_.take_messages(gpu, 0))
        tokens.push_back(std::move(one.message.rows));
    return tokens;
}

void Relay::send_home(GpuId from, std::uint32_t token) {
    const Bytes bytes = rows_.layer.combine_bytes() + kTokenBytes;
    home_.store(from, rows_.layer.home_of(token), 0, {{token, kWhole, 0, nullptr}}, bytes);
}

Relay::Homecoming Relay::take_home(GpuId home) {
    Homecoming came;
    for (const sim::Received& one : home_.take_messages(home, 0)) {
        ++came.messages;
        for (const CarriedRow& row : one.message.rows) {
            const auto bytes = static_cast<double>(rows_.layer.combine_bytes());
            rows_.layer.card(home).hbm.take(2 * bytes);
            rows_.add_crossed(home, row.token, one.from);
            rows_.note_returned(row.token, one.from);
            ++came.sums;
        }
    }
    return came;
}

}  // namespace moehub::layers
