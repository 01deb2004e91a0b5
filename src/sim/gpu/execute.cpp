#include "sim/gpu/execute.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {
namespace {

Ps to_ps(double seconds) {
    return std::llround(seconds * 1e12);
}

/// Where the next tile of a plan comes from.
struct TileQueue {
    const GemmPlan& plan;
    std::size_t run = 0;
    std::int64_t pulled = 0;  ///< of that run

    const TileWork* pull() {
        while (run < plan.runs.size() && pulled == plan.runs[run].count) {
            ++run;
            pulled = 0;
        }
        if (run == plan.runs.size()) return nullptr;
        ++pulled;
        return &plan.runs[run].work;
    }
};

/// One slot of a persistent kernel: pulls tiles until none is left.
Process run_slot(Card& card, TileQueue& tiles, CounterId done) {
    const int sms = card.gpu.sms / static_cast<int>(tiles.plan.slots);
    co_await card.sms.take(sms);
    while (const TileWork* work = tiles.pull()) {
        const Ps begin = card.endpoint.now();
        // Data from HBM is drawn at the rate the plan's kernel reaches, which is below the card's.
        const double stretch =
            card.gpu.kernels.hbm_efficiency * card.gpu.hbm_bandwidth / tiles.plan.rates.hbm;
        Draw draw{card.tensor, work->flops, &card.hbm, work->hbm_bytes * stretch, work->sms};
        co_await draw;
        const Ps load = to_ps(work->load_bytes / tiles.plan.rates.load);
        co_await card.endpoint.delay(begin + load - card.endpoint.now());
        co_await card.endpoint.delay(to_ps(work->store_bytes / tiles.plan.rates.store));
    }
    card.sms.give(sms);
    card.endpoint.increase(done);
}

Process stream_block(Card& card, double bytes, CounterId done) {
    co_await card.sms.take();
    Draw draw{card.hbm, bytes};
    co_await draw;
    card.sms.give();
    card.endpoint.increase(done);
}

}  // namespace

Card::Card(Endpoint& endpoint_of_gpu, const Gpu& spec)
    : endpoint(endpoint_of_gpu),
      gpu(spec),
      sms(endpoint_of_gpu, spec.sms),
      tensor(endpoint_of_gpu, spec.kernels.tensor_efficiency * spec.bf16_flops,
             spec.bf16_flops / spec.sms),
      hbm(endpoint_of_gpu, spec.kernels.hbm_efficiency * spec.hbm_bandwidth, spec.hbm_bandwidth) {}

Process run_gemm(Card& card, const GemmPlan& plan) {
    co_await card.endpoint.delay(to_ps(plan.start));
    TileQueue tiles{plan};
    const CounterId done = card.endpoint.add_counter("finished slots of a GEMM");
    const std::int64_t slots = std::min(plan.slots, plan.tiles());
    for (std::int64_t i = 0; i < slots; ++i) {
        card.endpoint.spawn("GEMM slot", run_slot(card, tiles, done));
    }
    co_await card.endpoint.until(done, slots);
    co_await card.endpoint.delay(to_ps(plan.finish));
}

Process run_stream(Card& card, Traffic traffic) {
    const double total = card.gpu.kernels.hbm_efficiency * card.gpu.hbm_bandwidth;
    const double start = to_seconds(card.gpu.kernels.stream_start);
    co_await card.endpoint.delay(to_ps(start));
    // As many bytes at the card's reading rate as take the time this traffic takes.
    const double bytes = (stream_seconds(card.gpu, traffic) - start) * total;
    const CounterId done = card.endpoint.add_counter("finished blocks of a memory-bound kernel");
    for (int i = 0; i < card.gpu.sms; ++i) {
        card.endpoint.spawn("stream block", stream_block(card, bytes / card.gpu.sms, done));
    }
    co_await card.endpoint.until(done, card.gpu.sms);
}

}  // namespace moehub::sim
