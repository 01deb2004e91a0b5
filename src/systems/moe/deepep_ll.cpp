// DeepEP's low-latency kernels: every row goes at once to its row number in the expert's buffer for
// this source, which has room for the worst case, so nothing is counted before. A count for
// each expert follows the rows; who has heard all counts has all rows. Rows travel over NVLink
// inside a node and over NICs between nodes.
//
// An SM serves some of all experts: where there are few experts, few SMs work. On the way out an SM
// casts a token and sends it to all its experts, token after token, and when everything has come
// packs rows; on the way back warps send rows, and when everything has come an SM adds up token
// after token (Gpu::exchange).
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "sim/gpu/tile.hpp"
#include "systems/systems.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems {
namespace deepep_ll {

constexpr Bytes kSource = 16;  ///< bytes in front of a row: its row number at home
constexpr Bytes kFlag = 4;     ///< bytes of a count

constexpr std::size_t kRows = 0;    ///< channels: rows one by one,
constexpr std::size_t kCounts = 1;  ///< and behind them how many they were

struct LowLatency {
    MoeLayer& layer;
    Mail dispatch{layer.gpus, "rows", 2};
    Mail combine{layer.gpus, "results", 2};
    /// SMs whose tokens are underway.
    sim::CounterId cast = layer.gpus.add_counter("SMs that cast tokens");
    /// 1 when the shared experts are done.
    sim::CounterId shared = layer.gpus.add_counter("shared experts");
};

/// Peers from the next one on, so that not all send to the same at once; the GPU itself last.
GpuId peer_at(const MoeLayer& layer, GpuId gpu, std::uint32_t step) {
    return static_cast<GpuId>((gpu + 1 + step) % layer.gpus.count());
}

struct Addressed {
    GpuId to = 0;
    CarriedRow row;
};

/// One row to each peer in turn.
std::vector<Addressed> in_turn(const MoeLayer& layer, GpuId gpu, const std::vector<Rows>& rows) {
    std::size_t most = 0;
    for (const Rows& some : rows) most = std::max(most, some.size());
    std::vector<Addressed> list;
    for (std::size_t i = 0; i < most; ++i) {
        for (std::uint32_t step = 0; step < layer.gpus.count(); ++step) {
            const GpuId peer = peer_at(layer, gpu, step);
            if (i < rows[peer].size()) list.push_back({peer, rows[peer][i]});
        }
    }
    return list;
}

/// By token of the GPU.
std::vector<std::vector<Addressed>> by_token(const MoeLayer& layer, GpuId gpu,
                                             const std::vector<Rows>& rows) {
    std::vector<std::vector<Addressed>> tokens(static_cast<std::size_t>(layer.tokens(gpu)));
    for (std::uint32_t step = 0; step < layer.gpus.count(); ++step) {
        const GpuId peer = peer_at(layer, gpu, step);
        for (const CarriedRow& row : rows[peer])
            tokens[row.token - layer.first_token(gpu)].push_back({peer, row});
    }
    return tokens;
}

/// As many SMs as experts, or as few as serve all of them, the same number each.
struct Grid {
    int experts = 1;  ///< experts of one SM
    int sms = 1;
};

Grid grid_of(const MoeLayer& layer) {
    const int experts = layer.input.model.experts;
    const int sms = layer.input.machine.gpu.sms;
    const int each = (experts + sms - 1) / sms;
    return {each, (experts + each - 1) / each};
}

/// What SMs do in so long, unless their memory needs longer for so many bytes.
Ps with_memory(sim::Card& card, const sim::Endpoint& endpoint, Ps sms, double bytes) {
    return std::max(sms, card.hbm.take(bytes) - endpoint.now());
}

/// Behind the rows, to every peer, a count for each of its experts, or, on the way back, for each
/// of the GPU's own.
void send_counts(MoeLayer& layer, Mail& mail, GpuId gpu, const std::vector<Rows>& rows, bool back) {
    for (std::uint32_t step = 0; step < layer.gpus.count(); ++step) {
        const GpuId peer = peer_at(layer, gpu, step);
        for (const int expert : layer.experts_of(back ? gpu : peer)) {
            const std::int64_t count =
                std::count_if(rows[peer].begin(), rows[peer].end(),
                              [&](const CarriedRow& row) { return row.expert == expert; });
            mail.tell(gpu, peer, kCounts, {count}, kFlag);
        }
    }
}

/// Until so many counts are there, and as many rows as they say.
Process wait(Mail& mail, GpuId gpu, std::size_t counts) {
    co_await mail.arrived(gpu, kCounts, static_cast<std::int64_t>(counts));
    std::int64_t rows = 0;
    for (const sim::Received& told : mail.take_messages(gpu, kCounts)) {
        rows += told.message.counts.front();
    }
    co_await mail.arrived(gpu, kRows, rows);
}

/// One SM: every `sms`-th token.
Process cast_tokens(LowLatency& ll, GpuId gpu, std::size_t sm,
                    const std::vector<std::vector<Addressed>>& tokens) {
    MoeLayer& layer = ll.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const Exchange& rates = layer.card(gpu).gpu.exchange;
    const auto read = static_cast<double>(layer.row_bytes());
    const auto sms = static_cast<std::size_t>(grid_of(layer).sms);
    const Bytes bytes = layer.dispatch_bytes() + kSource;
    for (std::size_t token = sm; token < tokens.size(); token += sms) {
        const Ps casting = rates.cast_token + to_ps(read / rates.cast);
        const Ps time = with_memory(layer.card(gpu), endpoint, casting, read);
        co_await endpoint.delay(time);
        for (const Addressed& one : tokens[token])
            ll.dispatch.store(gpu, one.to, kRows, {one.row}, bytes);
    }
    endpoint.increase(ll.cast);
}

/// FP8 rows are cast and sent, then received rows are packed by expert. The kernel stays on its SMs
/// while rows are underway.
Process dispatch(LowLatency& ll, GpuId gpu, Rows& received) {
    MoeLayer& layer = ll.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    sim::Card& card = layer.card(gpu);
    const Exchange& rates = card.gpu.exchange;
    const Communicating communicating(card);
    const Grid grid = grid_of(layer);
    card.blocks.hold(grid.sms, KernelName::dispatch);
    const Ps begun = endpoint.now();
    co_await endpoint.delay(rates.dispatch_start + grid.experts * rates.dispatch_expert);
    const std::vector<Rows> rows = rows_by_peer(layer, gpu);
    const std::vector<std::vector<Addressed>> tokens = by_token(layer, gpu, rows);
    for (int sm = 0; sm < grid.sms; ++sm)
        endpoint.spawn("SM that casts tokens",
                       cast_tokens(ll, gpu, static_cast<std::size_t>(sm), tokens));
    co_await endpoint.until(ll.cast, grid.sms);
    send_counts(layer, ll.dispatch, gpu, rows, false);
    const Ps sent = endpoint.now();
    co_await wait(ll.dispatch, gpu, layer.experts_of(gpu).size() * layer.gpus.count());
    const Ps came = endpoint.now();
    received = ll.dispatch.take(gpu, kRows);
    const double packed =
        static_cast<double>(received.size()) * static_cast<double>(layer.dispatch_bytes());
    const double moved = packed * (1 + missed_in_l2(card.gpu, packed));
    co_await endpoint.delay(
        with_memory(card, endpoint, to_ps(packed / (rates.sum_store * grid.sms)), moved));
    layer.gpus.dispatch_worked(sent - begun + endpoint.now() - came);
    card.blocks.release(grid.sms, KernelName::dispatch);
}

/// All SMs together send no faster than `scatter`, nor each than an SM does.
Process send_results(LowLatency& ll, GpuId gpu, const std::vector<Rows>& results) {
    MoeLayer& layer = ll.layer;
    sim::Card& card = layer.card(gpu);
    const Exchange& rates = card.gpu.exchange;
    const Bytes bytes = layer.combine_bytes();
    const double rate = std::min(rates.scatter, rates.push * grid_of(layer).sms);
    const std::vector<Addressed> list = in_turn(layer, gpu, results);
    for (const Addressed& one : list) {
        const Ps sending = to_ps(static_cast<double>(bytes) / rate);
        const Ps time =
            with_memory(card, layer.endpoint(gpu), sending, static_cast<double>(layer.row_bytes()));
        co_await layer.endpoint(gpu).delay(time);
        ll.combine.store(gpu, one.to, kRows, {one.row}, bytes);
    }
    send_counts(layer, ll.combine, gpu, results, true);
}

/// Every result goes home; a token's results are added there.
Process combine(LowLatency& ll, GpuId gpu, const std::vector<Rows>& results) {
    MoeLayer& layer = ll.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    sim::Card& card = layer.card(gpu);
    const Exchange& rates = card.gpu.exchange;
    const Communicating communicating(card);
    const Grid grid = grid_of(layer);
    card.blocks.hold(grid.sms, KernelName::combine);
    const Ps begun = endpoint.now();
    co_await endpoint.delay(rates.combine_start + grid.experts * rates.combine_expert);
    co_await send_results(ll, gpu, results);
    const Ps sent = endpoint.now();
    std::size_t counts = 0;
    for (std::uint32_t peer = 0; peer < layer.gpus.count(); ++peer)
        counts += layer.experts_of(static_cast<GpuId>(peer)).size();
    co_await wait(ll.combine, gpu, counts);
    const Ps came = endpoint.now();
    const auto bytes = static_cast<double>(layer.combine_bytes());
    const double loaded = bytes * static_cast<double>(layer.rows_of(gpu).size());
    const double moved =
        loaded * missed_in_l2(card.gpu, loaded) + bytes * static_cast<double>(layer.tokens(gpu));
    const auto sms = static_cast<std::uint32_t>(grid.sms);
    const std::int64_t most = (layer.tokens(gpu) + sms - 1) / sms;  // tokens of an SM
    const Ps adding = to_ps(static_cast<double>(most * layer.top_k()) * bytes / rates.sum_load);
    co_await endpoint.delay(with_memory(card, endpoint, adding, moved));
    layer.gpus.combine_worked(sent - begun + endpoint.now() - came);
    card.blocks.release(grid.sms, KernelName::combine);
}

Process run_layer(LowLatency& ll, GpuId gpu) {
    MoeLayer& layer = ll.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, ll.shared));
    co_await layer.host(gpu).launch(1);
    layer.gpus.dispatch_began(gpu);
    Rows received;
    co_await dispatch(ll, gpu, received);
    layer.gpus.dispatch_ended(gpu);

    co_await convert_rows(layer, gpu, static_cast<std::int64_t>(received.size()));
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, {received});
    co_await run_grouped_experts(layer, gpu, by_expert);
    layer.experts_ended(gpu);
    compute(layer, gpu, received);

    const std::vector<Rows> results = rows_by_home(layer, received);
    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    co_await combine(ll, gpu, results);
    layer.gpus.combine_ended(gpu);
    take_back(layer, gpu, ll.combine.take(gpu, kRows));
    co_await endpoint.until(ll.shared, 1);
    co_await layer.finish(gpu);
}

}  // namespace deepep_ll

LayerResult run_deepep_ll(const Job& job) {
    if (!job.system.nic_only) return run_program(job, "deepep-ll layer", deepep_ll::run_layer);
    LayerInput input = job.input;  // without NVLink every GPU is a node of its own
    input.machine.nodes = input.machine.gpus();
    input.machine.gpus_per_node = 1;
    Job same{input, job.system, job.options, job.host_lead, job.scheme, job.fault};
    return run_program(same, "deepep-ll layer", deepep_ll::run_layer);
}

}  // namespace moehub::systems
