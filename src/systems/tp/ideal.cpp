// The bound: no communication, and no order among the tiles of both GEMMs and the norm. Rows add up
// and come by themselves.
#include "layers/tp/run_tp.hpp"
#include "layers/tp/tp_gemms.hpp"
#include "systems/tp/tp.hpp"

#include <memory>

namespace moehub::systems {
namespace {

using namespace layers;

struct Shared {
    explicit Shared(TpLayer& of) : layer(of) {}
    TpLayer& layer;
};

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Card& card = layer.gpus.card(gpu);
    const GemmPlan first = layer.has_first() ? layer.plan_first(gpu, card.gpu.sms) : GemmPlan{};
    const GemmPlan second = layer.has_second() ? layer.plan_second(gpu, card.gpu.sms) : GemmPlan{};
    const sim::CounterId done = card.endpoint.add_counter("kernels of the bound");
    const auto run = [&](const GemmPlan& plan) -> Process {
        if (!plan.runs.empty()) co_await run_gemm(card, plan);
        card.endpoint.increase(done);
    };
    card.endpoint.spawn("first GEMM", run(first));
    card.endpoint.spawn("second GEMM", run(second));
    const std::int64_t rows = share_of(layer.rows(), gpu, layer.gpus.count());
    co_await run_stream_blocks(card, layer.norm_traffic(rows, 0), sim::Priority::normal);
    co_await card.endpoint.until(done, 2);
    layer.come_by_themselves(gpu);
    layer.finish(gpu);
}

}  // namespace

LayerResult run_tp_ideal(const TpJob& job) {
    return run_tp(job, Homes::blockwise, program, false);
}

}  // namespace moehub::systems
