#include "layers/tp/tp_pieces.hpp"

#include "layers/tp/tp_gemms.hpp"

namespace moehub::layers {
namespace {

struct Alone {
    explicit Alone(TpLayer& of) : layer(of) {}
    TpLayer& layer;
};

Process program(Alone& alone, GpuId gpu) {
    TpLayer& layer = alone.layer;
    co_await layer.run_first(gpu);
    co_await run_norm(layer, gpu, TpLayer::Sum::in_partials);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace

std::vector<std::uint32_t> all_pieces(const TpLayer& layer) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t piece = 0; piece < layer.pieces.count(); ++piece) list.push_back(piece);
    return list;
}

std::vector<std::uint32_t> own_pieces(const TpLayer& layer, GpuId gpu) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < layer.pieces.each(); ++i) {
        const std::uint32_t piece = layer.pieces.of(gpu, i);
        if (piece < layer.pieces.count()) list.push_back(piece);
    }
    return list;
}

std::int64_t rows_at_home(const TpLayer& layer, GpuId gpu) {
    std::int64_t rows = 0;
    for (const std::uint32_t piece : own_pieces(layer, gpu)) rows += layer.pieces.rows(piece);
    return rows;
}

std::uint32_t piece_behind(const TpLayer& layer, GpuId gpu) {
    const std::uint32_t piece = layer.pieces.of((gpu + 1u) % layer.gpus.count(), 0);
    return piece < layer.pieces.count() ? piece : 0;
}

Process run_first_by_pieces(TpLayer& layer, GpuId gpu, FirstKernel kernel,
                            std::function<void(std::uint32_t)> made) {
    if (!layer.has_first()) co_return;
    FirstGemm gemm(layer, gpu, kernel.sms, std::move(made), kernel.first_piece);
    co_await gemm.run();
}

Process run_norm(TpLayer& layer, GpuId gpu, TpLayer::Sum sum) {
    const std::int64_t rows = rows_at_home(layer, gpu);
    if (rows > 0)
        co_await run_stream(layer.gpus.card(gpu), layer.norm_traffic(rows, 0), KernelName::norm);
    share_own(layer, gpu, layer.has_first() ? sum : TpLayer::Sum::given, true);
}

LayerResult run_tp_alone(const TpJob& job) {
    return run_tp(job, Homes::blockwise, program);
}

}  // namespace moehub::layers
