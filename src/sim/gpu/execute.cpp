#include "sim/gpu/execute.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {
namespace {

Ps to_ps(double seconds) {
    return std::llround(seconds * 1e12);
}

/// Counts a kernel's finished blocks.
struct Finished final : BlockOwner {
    Endpoint& gpu;
    CounterId done;
    explicit Finished(Endpoint& endpoint)
        : gpu(endpoint), done(endpoint.add_counter("finished blocks of a kernel")) {}
    ~Finished() { gpu.drop_counter(done); }
    Finished(const Finished&) = delete;
    void block_done(std::uint32_t) override { gpu.increase(done); }
};

/// The card counts as computing from a kernel's launch to its end.
struct Running {
    Card& card;
    explicit Running(Card& on) : card(on) { card.activity.compute(1, card.endpoint.now()); }
    ~Running() { card.activity.compute(-1, card.endpoint.now()); }
    Running(const Running&) = delete;
};

}  // namespace

Card::Card(Endpoint& endpoint_of_gpu, const Gpu& spec)
    : endpoint(endpoint_of_gpu),
      gpu(spec),
      tensor(endpoint_of_gpu, spec.kernels.tensor_efficiency * spec.bf16_flops,
             spec.bf16_flops / spec.sms),
      hbm(endpoint_of_gpu, spec.kernels.hbm_efficiency * spec.hbm_bandwidth, spec.hbm_bandwidth),
      blocks(*this) {}

Process run_gemm(Card& card, const GemmPlan& plan, Priority priority) {
    const Running running(card);
    co_await card.endpoint.delay(to_ps(plan.start));
    Finished finished(card.endpoint);
    for (const TileRun& run : plan.runs) {
        for (std::int64_t i = 0; i < run.count; ++i) {
            card.blocks.submit({&run.work, &plan.rates, &finished, 0}, priority);
        }
    }
    co_await card.endpoint.until(finished.done, plan.tiles());
    co_await card.endpoint.delay(to_ps(plan.finish));
}

Process run_stream(Card& card, Traffic traffic) {
    const Running running(card);
    const TileRates rates{.hbm = card.gpu.kernels.hbm_efficiency * card.gpu.hbm_bandwidth};
    const double start = to_seconds(card.gpu.kernels.stream_start);
    co_await card.endpoint.delay(to_ps(start));
    // As many bytes at the card's reading rate as take the time this traffic takes.
    const double bytes = (stream_seconds(card.gpu, traffic) - start) * rates.hbm;
    const TileWork work{.hbm_bytes = bytes / card.gpu.sms};
    Finished finished(card.endpoint);
    for (int i = 0; i < card.gpu.sms; ++i) {
        card.blocks.submit({&work, &rates, &finished, 0}, Priority::normal);
    }
    co_await card.endpoint.until(finished.done, card.gpu.sms);
}

Process run_for(Card& card, double seconds) {
    const Running running(card);
    co_await card.endpoint.delay(to_ps(seconds));
}

}  // namespace moehub::sim
