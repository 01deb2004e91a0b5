// DeepEP's low-latency kernels: every row goes at once to its row number in the expert's buffer for
// this source, which has room for the worst case, so nothing is counted before. A count for
// each expert follows the rows; who has heard all counts has all rows. Rows travel over NVLink
// inside a node and over NICs between nodes.
#include "layers/copies.hpp"
#include "layers/expert_kernels.hpp"
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "layers/sending_kernel.hpp"
#include "systems/systems.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr Bytes kSource = 16;  ///< bytes in front of a row: its row number at home
constexpr Bytes kFlag = 4;     ///< bytes of a count

constexpr std::size_t kRows = 0;    ///< channels: rows one by one,
constexpr std::size_t kCounts = 1;  ///< and behind them how many they were

struct LowLatency {
    explicit LowLatency(MoeLayer& of)
        : layer(of),
          dispatch(of.gpus, "rows", 2),
          combine(of.gpus, "results", 2),
          shared(of.gpus.add_counter("shared experts")) {}

    MoeLayer& layer;
    Mail dispatch;
    Mail combine;
    sim::CounterId shared;  ///< 1 when the shared experts are done
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

int sms_of(const MoeLayer& layer) {
    return std::clamp(layer.system.communication_sms, 1, layer.input.machine.gpu.sms);
}

/// A way of rows: out, or back.
struct Way {
    Mail& mail;
    Bytes bytes = 0;   ///< of a row on its way
    double table = 0;  ///< bytes that rows are read from
    bool back = false;
};

/// All rows, and behind them, to every peer, a count for each of its experts, or, on the way back,
/// for each of the GPU's own.
Process send_rows(MoeLayer& layer, Way way, GpuId gpu, const std::vector<Rows>& rows) {
    const std::vector<Addressed> list = in_turn(layer, gpu, rows);
    Sending sending;
    sending.sms = sms_of(layer);
    sending.rows = static_cast<std::int64_t>(list.size());
    sending.read = static_cast<double>(layer.row_bytes());
    sending.stored = static_cast<double>(way.bytes);
    sending.table = way.table;
    std::function<int(std::int64_t)> store = [&](std::int64_t i) {
        const Addressed& one = list[static_cast<std::size_t>(i)];
        way.mail.store_told(gpu, one.to, kRows, {one.row}, way.bytes);
        return 1;
    };
    co_await run_sending(layer, gpu, sending, store);
    for (std::uint32_t step = 0; step < layer.gpus.count(); ++step) {
        const GpuId peer = peer_at(layer, gpu, step);
        for (const int expert : layer.experts_of(way.back ? gpu : peer)) {
            const std::int64_t count =
                std::count_if(rows[peer].begin(), rows[peer].end(),
                              [&](const CarriedRow& row) { return row.expert == expert; });
            way.mail.tell(gpu, peer, kCounts, {count}, kFlag);
        }
    }
}

/// The kernel stays on its SMs while rows are underway: until so many counts are there, and as many
/// rows as they say.
Process wait(MoeLayer& layer, Mail& mail, GpuId gpu, std::size_t counts) {
    sim::Card& card = layer.card(gpu);
    const int sms = sms_of(layer);
    card.blocks.hold(sms);
    co_await mail.arrived(gpu, kCounts, static_cast<std::int64_t>(counts));
    std::int64_t rows = 0;
    for (const sim::Received& told : mail.take_messages(gpu, kCounts)) {
        rows += told.message.counts.front();
    }
    co_await mail.arrived(gpu, kRows, rows);
    card.blocks.release(sms);
}

/// FP8 rows are cast and sent, then received rows are packed by expert.
Process dispatch(LowLatency& ll, GpuId gpu, Rows& received) {
    MoeLayer& layer = ll.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.dispatch_start);
    const Bytes bytes = layer.dispatch_bytes();
    const std::vector<Rows> rows = rows_by_peer(layer, gpu);
    const Bytes tokens = layer.tokens(gpu) * layer.row_bytes();
    const Way out{ll.dispatch, bytes + kSource, static_cast<double>(tokens)};
    co_await send_rows(layer, out, gpu, rows);
    co_await wait(layer, ll.dispatch, gpu, layer.experts_of(gpu).size() * layer.gpus.count());
    received = ll.dispatch.take(gpu, kRows);
    const double packed = static_cast<double>(received.size()) * static_cast<double>(bytes);
    const Traffic packing{.read = packed, .written = packed};
    if (packed > 0) co_await run_stream(layer.card(gpu), packing);
}

/// Every result goes home; a token's results are added there.
Process combine(LowLatency& ll, GpuId gpu, const std::vector<Rows>& results) {
    MoeLayer& layer = ll.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.combine_start);
    const Bytes made = static_cast<Bytes>(count_rows(results)) * layer.row_bytes();
    const Way back{ll.combine, layer.combine_bytes(), static_cast<double>(made), true};
    co_await send_rows(layer, back, gpu, results);
    std::size_t counts = 0;
    for (std::uint32_t peer = 0; peer < layer.gpus.count(); ++peer)
        counts += layer.experts_of(static_cast<GpuId>(peer)).size();
    co_await wait(layer, ll.combine, gpu, counts);
    const auto rows = static_cast<std::int64_t>(layer.rows_of(gpu).size());
    const Traffic sum =
        sum_traffic(rows, layer.top_k(), static_cast<double>(layer.combine_bytes()));
    co_await run_stream(layer.card(gpu), sum);
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

}  // namespace

LayerResult run_deepep_ll(const Job& job) {
    return run_program<LowLatency>(job, "deepep-ll layer", run_layer);
}

}  // namespace moehub::systems
