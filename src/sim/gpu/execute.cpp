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

/// The card counts as computing while a kernel is launched or ends, and while blocks are on SMs
/// (blocks.cpp), but not while they wait for SMs that others hold.
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

Process run_gemm(Card& card, const GemmPlan& plan, KernelName kernel, Priority priority) {
    const Launched launched(card, kernel);
    co_await run_for(card, plan.start, kernel);
    Finished finished(card.endpoint);
    for (const TileRun& run : plan.runs) {
        for (std::int64_t i = 0; i < run.count; ++i) {
            card.blocks.submit({&run.work, &plan.rates, &finished, 0, kernel}, priority);
        }
    }
    co_await card.endpoint.until(finished.done, plan.tiles());
    co_await run_for(card, plan.finish, kernel);
}

Process run_stream(Card& card, Traffic traffic, KernelName kernel) {
    co_await run_for(card, plan_stream(card.gpu, traffic).start, kernel);
    co_await run_stream_blocks(card, traffic, kernel, Priority::normal);
}

Process run_stream_blocks(Card& card, Traffic traffic, KernelName kernel, Priority priority) {
    const Launched launched(card, kernel);
    const StreamPlan plan = plan_stream(card.gpu, traffic);
    Finished finished(card.endpoint);
    for (int i = 0; i < plan.blocks; ++i) {
        card.blocks.submit({&plan.work, &plan.rates, &finished, 0, kernel}, priority);
    }
    co_await card.endpoint.until(finished.done, plan.blocks);
}

Process run_for(Card& card, double seconds, KernelName kernel) {
    const Running running(card);
    const Launched launched(card, kernel);
    co_await card.endpoint.delay(to_ps(seconds));
}

}  // namespace moehub::sim
