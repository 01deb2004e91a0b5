// DySHARP's primitives under Comet's schedule: two kernels. In the first, tokens go out while tiles
// of the first GEMM start as they come; the second GEMM is cut along its columns into `chunks`, and
// while one is computed sums of the last are loaded. Each kernel still fills one direction of the
// links more than the other.
#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"
#include "layers/rows.hpp"
#include "systems/moe/host_steps.hpp"
#include "systems/systems.hpp"

#include <deque>
#include <memory>

namespace moehub::systems {
namespace dysharp_comet {

constexpr Bytes kFlag = 16;

struct DysharpComet {
    explicit DysharpComet(MoeLayer& of);

    MoeLayer& layer;
    MultimemLayer rows;
    RowCounts counts;
    Mail flags;  ///< a channel for each chunk
    CombiningKernel kernel;
    sim::CounterId collected;
    std::deque<std::vector<std::unique_ptr<sim::RowGemm>>> up;  ///< [gpu][expert]
    std::deque<TileStarter> starters;
};

DysharpComet::DysharpComet(MoeLayer& of)
    : layer(of),
      rows(of, {}),
      counts(of),
      flags(of.gpus, "GPUs that have computed a chunk", static_cast<std::size_t>(of.system.chunks)),
      kernel(rows, [this](GpuId gpu, std::uint32_t) { layer.endpoint(gpu).increase(collected); }),
      collected(of.gpus.add_counter("sums of results")) {
    for (std::uint32_t i = 0; i < of.gpus.count(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        auto& gemms = up.emplace_back();
        for (const int expert : of.experts_of(gpu)) {
            const GemmPlan like = of.plan_up(of.tiling_rows(expert));
            gemms.push_back(std::make_unique<sim::RowGemm>(
                of.card(gpu), of.plan_up_like(of.rows_on(of.rank_of(gpu), expert), like),
                KernelName::expert_up, sim::TileOrder::by_columns));
        }
        of.gpus.hub(gpu).listen(starters.emplace_back(
            rows, gpu, [&gemms](std::size_t expert) -> sim::RowGemm& { return *gemms[expert]; }));
    }
}

Process first_kernel(DysharpComet& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    const Communicating communicating(layer.card(gpu));
    add_tokens(d.rows, gpu);
    layer.endpoint(gpu).spawn("dispatch", send_tokens(d.rows, gpu, sim::kNoCounter));
    const std::vector<MultimemExpert>& experts = d.rows.experts(gpu);
    if (!layer.backward()) {
        const auto counts = static_cast<Bytes>(std::max<std::size_t>(1, experts.size()));
        co_await d.counts.exchange(gpu, kCount * counts);
    }
    for (const MultimemExpert& expert : experts) {
        layer.gpus.hub(gpu).expect(expert.input, d.counts.rows(gpu, expert.expert));
    }
    for (std::size_t i = 0; i < experts.size(); ++i) {
        co_await d.up[gpu][i]->finish(d.counts.rows(gpu, experts[i].expert));
    }
    layer.gpus.first_gemm_ended(gpu);
}

/// When all GPUs have computed a chunk, sums of its columns can be loaded.
Process collect_chunk(DysharpComet& d, GpuId gpu, int chunk) {
    MoeLayer& layer = d.layer;
    co_await d.flags.arrived(gpu, static_cast<std::size_t>(chunk), layer.gpus.count());
    const Bytes line = layer.gpus.fabric.link().payload;
    const Bytes lines = (layer.combine_bytes() + line - 1) / line;
    const Bytes begin = lines * chunk / layer.system.chunks * line;
    const Bytes end =
        std::min(layer.combine_bytes(), lines * (chunk + 1) / layer.system.chunks * line);
    const bool last = chunk + 1 == layer.system.chunks;
    for (std::uint32_t i = 0; i < layer.tokens(gpu) && begin < end; ++i) {
        d.kernel.add(gpu, {layer.first_token(gpu) + i, {begin, end - begin}, last});
    }
}

Process second_kernel(DysharpComet& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const Communicating communicating(layer.card(gpu));
    const auto chunks = static_cast<std::uint32_t>(layer.system.chunks);
    const sim::CounterId done = endpoint.add_counters("second GEMMs of a chunk", chunks);
    d.kernel.start(gpu);
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        for (const MultimemExpert& expert : d.rows.experts(gpu)) {
            const GemmPlan plan = layer.plan_down_part(
                d.counts.rows(gpu, expert.expert), layer.system.chunks, layer.card(gpu).gpu.sms);
            endpoint.spawn("second GEMM", run_down_part(layer, gpu, plan, done + chunk));
        }
        endpoint.spawn("chunk", collect_chunk(d, gpu, static_cast<int>(chunk)));
    }
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        co_await endpoint.until(done + chunk,
                                static_cast<std::int64_t>(d.rows.experts(gpu).size()));
        if (chunk == 0) write_all_results(d.rows, gpu);  // by chunks, as its sums are read
        for (std::uint32_t step = 0; step < layer.gpus.count(); ++step) {
            const auto to = static_cast<GpuId>((gpu + step) % layer.gpus.count());
            d.flags.store(gpu, to, chunk, {}, kFlag);
        }
    }
    layer.experts_ended(gpu);
    co_await endpoint.until(d.collected, layer.tokens(gpu));
    d.kernel.stop(gpu);
}

Process run_layer(DysharpComet& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await layer.host(gpu).launch(1);
    co_await first_kernel(d, gpu);
    co_await run_activation(layer, gpu, d.counts.rows(gpu));
    co_await layer.host(gpu).launch(1);
    co_await second_kernel(d, gpu);
    co_await finish_with_shared(layer, gpu);
    d.rows.close_books(gpu);
}

}  // namespace dysharp_comet

LayerResult run_dysharp_comet(const Job& job) {
    return run_program(job, "dysharp-comet layer", dysharp_comet::run_layer);
}

}  // namespace moehub::systems
