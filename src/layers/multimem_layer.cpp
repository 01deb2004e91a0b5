#include "layers/multimem_layer.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

constexpr Bytes kWeight = 4;          ///< bytes of a gate weight, applied where the expert is
constexpr std::uint32_t kTile = 128;  ///< tokens of an entry of the TS table (DySHARP paper)

}  // namespace

MultimemLayer::MultimemLayer(MoeLayer& of, const Options& options)
    : layer(of),
      options_(options),
      region_of_(of.gpus.count(),
                 std::vector<sim::RegionId>(static_cast<std::size_t>(of.input.model.experts))),
      gpu_of_(static_cast<std::size_t>(of.rows())),
      tokens_(of.gpus.count()) {
    layer.gpus.add_statistics(
        [&gpus = layer.gpus, units = layer.system.hub] { return gpus.hub_statistics(units); });
    const bool one_node = layer.input.machine.nodes == 1;
    for (const GpuId gpu : layer.gpus.all()) {
        experts_.emplace_back();
        for (const int expert : layer.experts_of(gpu)) add_expert(gpu, expert);
        const sim::RowSums::Extent own{layer.first_token(gpu), layer.tokens(gpu)};
        const sim::RowSums::Extent all{0, layer.input.routing.tokens};
        sim::Hub& hub = layer.gpus.hub(gpu);
        sums_.push_back(hub.add_sums(one_node ? own : all, layer.combine_bytes()));
        crossed_.push_back(hub.add_sums(own, layer.combine_bytes()));
        for (const Row& row : layer.rows_of(gpu)) gpu_of_[index(row.token, row.choice)] = row.rank;
    }
}

void MultimemLayer::add_expert(GpuId gpu, int expert) {
    sim::Hub& hub = layer.gpus.hub(gpu);
    sim::RowSpace space;
    space.name = fmt::format("input of expert {} on gpu {}", expert, gpu);
    space.rows = layer.input.routing.tokens;
    space.data_bytes = sent_bytes();
    if (options_.tiles != Tiles::none) {
        const GemmPlan plan = layer.plan_up(layer.tiling_rows(expert));
        const auto rows = static_cast<std::uint32_t>(std::max<std::int64_t>(1, plan.tile_rows));
        space.block_rows = options_.tiles == Tiles::fixed
                               ? (kTile + rows - 1) / rows * rows
                               : rows * sim::blocks_at_once(layer.input.machine.gpu, plan);
    }
    MultimemExpert made{expert, hub.add_region(space), hub.add_sums({}, layer.combine_bytes())};
    hub.set_results(made.input, made.results);
    region_of_[gpu][static_cast<std::size_t>(expert)] = made.input;
    experts_[gpu].push_back(made);
}

Bytes MultimemLayer::sent_bytes() const {
    return layer.dispatch_bytes() + kWeight * layer.top_k();
}

std::vector<std::int64_t> MultimemLayer::rows_by_expert(GpuId gpu) const {
    std::vector<std::int64_t> rows;
    for (const MultimemExpert& expert : experts_[gpu]) rows.push_back(rows_in(gpu, expert));
    return rows;
}

std::int64_t MultimemLayer::tokens_on(GpuId gpu) const {
    std::vector<std::uint32_t> tokens;
    for (const MultimemExpert& expert : experts_[gpu]) {
        const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(expert.input);
        for (std::uint32_t row = 0; row < memory.rows(); ++row)
            tokens.push_back(memory.row_id(row));
    }
    std::sort(tokens.begin(), tokens.end());
    return std::unique(tokens.begin(), tokens.end()) - tokens.begin();
}

// Lists.

std::vector<Rows> MultimemLayer::rows_by_node(std::uint32_t token) const {
    std::vector<Rows> rows(static_cast<std::size_t>(layer.input.machine.nodes));
    const auto chosen = layer.input.routing.chosen_by(0, token);
    for (std::uint16_t choice = 0; choice < chosen.size(); ++choice) {
        const GpuId gpu = gpu_of_[index(token, choice)];
        rows[layer.gpus.fabric.topology().node(gpu)].push_back(
            {token, choice, chosen[choice], layer.books.input(token)});
    }
    return rows;
}

const NodeToken& MultimemLayer::add_token(GpuId gpu, std::uint32_t token, const Rows& rows) {
    std::vector<sim::RowGoal> others;
    std::vector<sim::RowGoal> own;
    for (const CarriedRow& row : rows) {
        const GpuId to = gpu_of_[index(token, row.choice)];
        (to == gpu ? own : others).push_back({to, region_of_[to][row.expert]});
    }
    sim::GroupTable& groups = layer.gpus.fabric.groups();
    NodeToken made{token};
    if (!others.empty()) made.others = groups.add_list(std::move(others));
    if (!own.empty()) made.own = groups.add_list(std::move(own));
    return tokens_[gpu][token] = made;
}

/// To all GPUs of a list at once, or to each by itself.
int MultimemLayer::post(GpuId gpu, sim::Transfer transfer, sim::GroupId list) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    sim::GroupTable& groups = layer.gpus.fabric.groups();
    if (options_.in_switch) {
        transfer.group = transfer.target.list = list;
        endpoint.post(transfer);
        return 1;
    }
    const bool by_row = transfer.kind == sim::EventKind::load && options_.rows_apart;
    int posted = 0;
    const std::vector<GpuId> members(groups.members(list).begin(), groups.members(list).end());
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto regions = groups.regions(list, i);
        std::vector<sim::RowGoal> goals;
        for (const sim::RegionId region : regions) goals.push_back({members[i], region});
        transfer.dst = members[i];
        while (!goals.empty()) {
            std::vector<sim::RowGoal> some(goals.begin(), by_row ? goals.begin() + 1 : goals.end());
            goals.erase(goals.begin(), goals.begin() + static_cast<std::ptrdiff_t>(some.size()));
            transfer.target.list = groups.add_list(std::move(some));
            endpoint.post(transfer);
            ++posted;
        }
    }
    return posted;
}

int MultimemLayer::stores_of(const NodeToken& token) const {
    const sim::GroupTable& groups = layer.gpus.fabric.groups();
    int stores = token.own != sim::kNoGroup ? 1 : 0;
    if (token.others == sim::kNoGroup) return stores;
    return stores +
           (options_.in_switch ? 1 : static_cast<int>(groups.members(token.others).size()));
}

std::uint32_t MultimemLayer::own_rows(const NodeToken& token) const {
    if (token.own == sim::kNoGroup) return 0;
    return static_cast<std::uint32_t>(layer.gpus.fabric.groups().goals(token.own));
}

std::uint32_t MultimemLayer::rows_in_node(const NodeToken& token) const {
    if (token.others == sim::kNoGroup) return own_rows(token);
    const std::size_t others = layer.gpus.fabric.groups().goals(token.others);
    return own_rows(token) + static_cast<std::uint32_t>(others);
}

int MultimemLayer::store(GpuId gpu, const NodeToken& token, const Told& told) {
    sim::Transfer transfer;
    transfer.bytes = sent_bytes();
    transfer.address = std::uint64_t{token.token} * static_cast<std::uint64_t>(transfer.bytes);
    transfer.answered = told.answered;
    transfer.from_sm = true;
    transfer.told = told.taken_in;
    transfer.target.row = token.token;
    transfer.target.allocate = true;
    transfer.target.numbers = layer.books.input(token.token);
    if (token.own != sim::kNoGroup) {
        sim::Transfer here = transfer;
        here.dst = gpu;
        here.target.list = token.own;
        sim::Carrying carrying(layer.gpus.recorder());
        carry(carrying, gpu, token.token, Whose::own, sim::RowLog::What::row);
        layer.endpoint(gpu).post(here);
    }
    sim::Carrying carrying(layer.gpus.recorder());
    carry(carrying, gpu, token.token, Whose::others, sim::RowLog::What::row);
    if (token.others != sim::kNoGroup) post(gpu, transfer, token.others);
    return stores_of(token);
}

void MultimemLayer::carry(sim::Carrying& carrying, GpuId gpu, std::uint32_t token, Whose whose,
                          sim::RowLog::What what) const {
    if (layer.gpus.recorder() == nullptr) return;
    const sim::Topology& topology = layer.gpus.fabric.topology();
    for (std::uint32_t choice = 0; choice < layer.top_k(); ++choice) {
        const GpuId at = gpu_of_[index(token, choice)];
        if (topology.same_node(at, gpu) && (at == gpu) == (whose == Whose::own))
            carrying.add(token, choice, what);
    }
}

void MultimemLayer::note_step(GpuId gpu, std::uint32_t token, const char* what) {
    if (layer.gpus.recorder() == nullptr) return;
    const sim::Topology& topology = layer.gpus.fabric.topology();
    for (std::uint32_t choice = 0; choice < layer.top_k(); ++choice)
        if (topology.same_node(gpu_of_[index(token, choice)], gpu))
            layer.note_step(token, choice, what, gpu);
}

void MultimemLayer::note_returned(std::uint32_t token, GpuId collector) {
    if (layer.gpus.recorder() == nullptr) return;
    const sim::Topology& topology = layer.gpus.fabric.topology();
    for (std::uint32_t choice = 0; choice < layer.top_k(); ++choice)
        if (topology.same_node(gpu_of_[index(token, choice)], collector))
            layer.note_returned(token, choice);
}

/// What this GPU's own experts made is read and added by the SM that loads the rest.
int MultimemLayer::load(GpuId gpu, const NodeToken& token, const Part& part,
                        sim::CounterId arrived) {
    const sim::RowStretch stretch{token.token, part.offset, part.bytes};
    if (token.own != sim::kNoGroup) {
        const auto regions = layer.gpus.fabric.groups().regions_on(token.own, gpu);
        layer.card(gpu).hbm.take(static_cast<double>(part.bytes) *
                                 static_cast<double>(regions.size()));
        sums(gpu).add(stretch, layer.gpus.hub(gpu).read_results(regions, stretch), 1);
    }
    if (token.others == sim::kNoGroup) return 0;
    sim::Transfer transfer;
    transfer.kind = sim::EventKind::load;
    transfer.bytes = part.bytes;
    transfer.address =
        std::uint64_t{token.token} * static_cast<std::uint64_t>(layer.combine_bytes()) +
        static_cast<std::uint64_t>(part.offset);
    transfer.arrived = arrived;
    transfer.target.row = token.token;
    transfer.target.offset = static_cast<std::uint32_t>(part.offset);
    transfer.target.into = sums_[gpu];
    sim::Carrying carrying(layer.gpus.recorder());
    if (part.offset + part.bytes == layer.combine_bytes())
        carry(carrying, gpu, token.token, Whose::others, sim::RowLog::What::result);
    return post(gpu, transfer, token.others);
}

std::uint32_t MultimemLayer::answers(const NodeToken& token) const {
    const sim::GroupTable& groups = layer.gpus.fabric.groups();
    const std::uint32_t own = token.own != sim::kNoGroup ? 1 : 0;
    if (token.others == sim::kNoGroup) return own;
    const std::size_t others = options_.in_switch || !options_.rows_apart
                                   ? groups.members(token.others).size()
                                   : groups.goals(token.others);
    return own + static_cast<std::uint32_t>(others);
}

int MultimemLayer::loads_of(const NodeToken& token) const {
    if (token.others == sim::kNoGroup) return 0;
    return options_.in_switch
               ? 1
               : static_cast<int>(answers(token)) - (token.own != sim::kNoGroup ? 1 : 0);
}

bool MultimemLayer::collected(GpuId gpu, const NodeToken& token) const {
    return sums(gpu).complete(token.token, answers(token));
}

// Results and books.

std::uint32_t MultimemLayer::choice_of(std::uint32_t token, int expert) const {
    const auto chosen = layer.input.routing.chosen_by(0, token);
    const auto found = std::find(chosen.begin(), chosen.end(), expert);
    if (found == chosen.end()) {
        throw std::logic_error(
            fmt::format("token {} came to expert {}, which it did not choose", token, expert));
    }
    return static_cast<std::uint32_t>(found - chosen.begin());
}

Rows MultimemLayer::rows_of(GpuId gpu, const MultimemExpert& expert, std::uint32_t first,
                            std::uint32_t last) const {
    const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(expert.input);
    Rows rows;
    for (std::uint32_t number = first; number < std::min(last, memory.rows()); ++number) {
        if (!memory.complete(number)) {
            throw std::logic_error(
                fmt::format("row number {} of the input of expert {} on gpu {} "
                            "is not filled",
                            number, expert.expert, gpu));
        }
        const std::uint32_t token = memory.row_id(number);
        const auto choice = static_cast<std::uint16_t>(choice_of(token, expert.expert));
        rows.push_back(
            {token, choice, static_cast<std::uint16_t>(expert.expert), memory.numbers(number)});
    }
    return rows;
}

void MultimemLayer::write_results(GpuId gpu, const MultimemExpert& expert, std::uint32_t first,
                                  std::uint32_t last) {
    sim::RowSums& results = layer.gpus.hub(gpu).sums(expert.results);
    std::uint32_t number = first;
    for (const CarriedRow& row : rows_of(gpu, expert, first, last)) {
        const double* made = layer.books.result(expert.expert, 0, row.numbers);
        layer.note_computed(row.token, row.choice, gpu);
        results.add_row(number++, layer.books.identity(row.token, row.choice),
                        layer.books.weighted(row.token, row.choice, made));
    }
}

void MultimemLayer::add_crossed(GpuId home, std::uint32_t token, GpuId from) {
    layer.gpus.hub(home).sums(crossed_[home]).add_sums_of(token, sums(from), 1);
}

void MultimemLayer::close_books(GpuId gpu) {
    for (const MultimemExpert& expert : experts_[gpu])
        for (const CarriedRow& row : rows_of(gpu, expert, 0, rows_in(gpu, expert)))
            layer.books.delivered(row.token, row.choice, 0);
    const sim::RowSums& crossed = layer.gpus.hub(gpu).sums(crossed_[gpu]);
    const std::uint32_t node = layer.gpus.fabric.topology().node(gpu);
    for (std::uint32_t i = 0; i < layer.tokens(gpu); ++i) {
        const std::uint32_t token = layer.first_token(gpu) + i;
        std::uint32_t other_nodes = 0;
        const std::vector<Rows> nodes = rows_by_node(token);
        for (std::uint32_t n = 0; n < nodes.size(); ++n)
            other_nodes += n != node && !nodes[n].empty();
        if (!collected(gpu, token_on(gpu, token)) || !crossed.complete(token, other_nodes))
            continue;
        sums(gpu).add_sums_of(token, crossed, other_nodes);
        layer.books.returned_sum(token, sums(gpu).identity(token), sums(gpu).whole(),
                                 sums(gpu).numbers(token));
    }
}

}  // namespace moehub::layers
