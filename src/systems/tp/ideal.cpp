// The bound: no communication, and no order between the GEMMs and the norm. Rows add up and come by
// themselves. Which tiles of the two GEMMs run first decides how well they fill the last wave: the
// fastest of several ways.
#include "layers/tp/dataflow.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

#include <algorithm>
#include <optional>

namespace moehub::systems {
namespace tp_ideal {

enum class Way { first_first, second_first, divided, together };

template <Way way>
struct Shared {
    TpLayer& layer;
};

Process run_whole(sim::Card& card, GemmPlan plan, KernelName kernel) {
    co_await run_gemm(card, plan, kernel);
}

/// Both by row blocks, as systems run them that fuse them; the second takes over when the first is
/// through.
Process run_by_blocks(TpLayer& layer, GpuId gpu, bool divided) {
    const int all = layer.gpus.card(gpu).gpu.sms;
    std::vector<Fused> fused = optimise(operators_of(layer.input), layer.input.machine.gpu, true);
    if (!divided) fused.front().first_sms = fused.back().second_sms = all;
    std::optional<SecondGemm> second;
    if (layer.has_second()) second.emplace(layer, gpu, fused.back().second_sms);
    if (second)
        for (std::uint32_t piece = 0; piece < layer.pieces.count(); ++piece) second->came(piece);
    if (layer.has_first())
        co_await run_first_by_pieces(layer, gpu, {fused.front().first_sms, 0},
                                     [](std::uint32_t) {});
    if (second) {
        second->use_sms(all);
        co_await second->finish();
    }
}

template <Way way>
Process program(Shared<way>& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Card& card = layer.gpus.card(gpu);
    Several all(card.endpoint);
    layer.come_by_themselves(gpu);
    const auto spawn = [&](bool first) {
        if (first ? !layer.has_first() : !layer.has_second()) return;
        all.spawn("GEMM", run_whole(card,
                                    first ? layer.plan_first(gpu, card.gpu.sms)
                                          : layer.plan_second(gpu, card.gpu.sms),
                                    first ? KernelName::first_gemm : KernelName::second_gemm));
    };
    if (way == Way::divided || way == Way::together) {
        all.spawn("GEMMs", run_by_blocks(layer, gpu, way == Way::divided));
    } else {
        spawn(way == Way::first_first);
        spawn(way != Way::first_first);
        if (layer.has_second())
            for (std::uint32_t piece = 0; piece < layer.pieces.count(); ++piece)
                layer.read(gpu, piece);
    }
    const std::int64_t rows = share_of(layer.rows(), gpu, layer.gpus.count());
    co_await run_stream_blocks(card, layer.norm_traffic(rows, 0), KernelName::norm,
                               sim::Priority::normal);
    co_await all.all();
    layer.finish(gpu);
}

template <Way way>
LayerResult run_way(const TpJob& job) {
    return run_tp<Shared<way>>(job, Homes::blockwise, program<way>, false);
}

}  // namespace tp_ideal

LayerResult run_tp_ideal(const TpJob& job) {
    using namespace tp_ideal;
    LayerResult ways[] = {run_way<Way::first_first>(job), run_way<Way::second_first>(job),
                          run_way<Way::divided>(job), run_way<Way::together>(job)};
    return *std::min_element(
        std::begin(ways), std::end(ways),
        [](const LayerResult& a, const LayerResult& b) { return a.time < b.time; });
}

}  // namespace moehub::systems
