// CAIS: the first GEMM's tiles reduce their partial sums into a row's home, the second GEMM's tiles
// load rows from there, and switches merge what all GPUs ask for the same. What runs together is
// what the dataflow optimizer says (layers/tp/dataflow.hpp).
#include "layers/tp/cais_kernels.hpp"
#include "layers/tp/dataflow.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "sim/collective/communicator.hpp"
#include "systems/systems.hpp"

#include <deque>

namespace moehub::systems {
namespace cais {

struct Shared {
    explicit Shared(TpLayer& of)
        : layer(of),
          kernels(of),
          all(of.gpus.fabric, "a barrier of kernels"),
          schedules(optimise(operators_of(of.input), of.input.machine.gpu, of.system.fuse_blocks)) {
        for (std::uint32_t i = 0; i < of.gpus.count(); ++i) {
            const auto gpu = static_cast<GpuId>(i);
            Endpoint& endpoint = of.gpus.endpoint(gpu);
            if (of.has_first())
                first.emplace_back(of, gpu, schedules.front().first_sms,
                                   [this, gpu, &endpoint](std::uint32_t piece) {
                                       endpoint.spawn("reduction", kernels.reduce(gpu, piece));
                                   });
            if (of.has_second()) second.emplace_back(of, gpu, schedules.back().second_sms);
        }
    }
    using Endpoint = sim::Endpoint;
    TpLayer& layer;
    CaisKernels kernels;
    sim::Communicator all;
    std::vector<Fused> schedules;
    std::deque<FirstGemm> first;
    std::deque<SecondGemm> second;
};

/// The first GEMM has all SMs until the second has rows; then each has its group.
Process divide_sms(Shared& shared, GpuId gpu) {
    shared.first[gpu].use_sms(shared.layer.gpus.card(gpu).gpu.sms);
    co_await shared.kernels.first_loaded(gpu);
    shared.first[gpu].use_sms(shared.schedules.front().first_sms);
}

/// All of it as one kernel: blocks start as their rows come.
Process run_fused(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    const std::vector<std::uint32_t> own = own_pieces(layer, gpu);
    for (const std::uint32_t piece : own) endpoint.spawn("norm", shared.kernels.norm(gpu, piece));
    if (layer.has_first()) {
        co_await shared.first[gpu].launch();
        endpoint.spawn("blocks", shared.kernels.start_blocks(gpu, shared.first[gpu]));
        if (layer.has_second()) endpoint.spawn("SM groups", divide_sms(shared, gpu));
    }
    if (layer.has_second()) {
        if (!layer.has_first()) co_await shared.second[gpu].launch();
        endpoint.spawn("loads", shared.kernels.load_all(gpu, shared.second[gpu]));
    }
    if (layer.has_first()) {
        co_await shared.first[gpu].finish();
        layer.gpus.first_gemm_ended(gpu);
    }
    if (layer.has_second()) {
        shared.second[gpu].use_sms(layer.gpus.card(gpu).gpu.sms);
        co_await shared.second[gpu].finish();
    }
    co_await shared.kernels.all_shared(gpu, static_cast<std::int64_t>(own.size()));
    layer.finish(gpu);
}

Process meet_all(Shared& shared, GpuId gpu) {
    if (shared.layer.others() == 0) co_return;
    shared.all.begin(gpu);
    co_await barrier(shared.all, gpu);
}

/// A kernel after the other, each with its own instructions.
Process run_one_by_one(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    const std::vector<std::uint32_t> own = own_pieces(layer, gpu);
    std::int64_t rows = 0;
    if (layer.has_first()) {
        co_await shared.first[gpu].launch();
        co_await shared.kernels.start_blocks(gpu, shared.first[gpu]);
        co_await shared.first[gpu].finish();
        layer.gpus.first_gemm_ended(gpu);
        co_await shared.kernels.all_acknowledged(gpu);
        co_await meet_all(shared, gpu);
    }
    for (const std::uint32_t piece : own) {
        co_await shared.kernels.summed(gpu, piece);
        co_await shared.kernels.own_made(gpu, piece);
        rows += layer.pieces.rows(piece);
    }
    const int addends = layer.has_first() && layer.others() > 0 ? 1 : 0;
    co_await run_stream(layer.gpus.card(gpu), layer.norm_traffic(rows, addends), KernelName::norm);
    for (const std::uint32_t piece : own) shared.kernels.normalised(gpu, piece);
    co_await meet_all(shared, gpu);
    if (layer.has_second()) {
        co_await shared.second[gpu].launch();
        endpoint.spawn("loads", shared.kernels.load_all(gpu, shared.second[gpu]));
        co_await shared.second[gpu].finish();
    }
    layer.finish(gpu);
}

}  // namespace cais

LayerResult run_cais(const TpJob& job) {
    return run_tp(job, Homes::in_turn,
                  job.system.fuse_blocks ? cais::run_fused : cais::run_one_by_one);
}

}  // namespace moehub::systems
