#include "layers/tp/tp_pieces.hpp"

namespace moehub::layers {
namespace {

std::uint32_t block_rows(const GemmPlan& plan) {
    return static_cast<std::uint32_t>(plan.tile_rows);
}

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

Overlaps::Overlaps(const Pieces& pieces, std::uint32_t rows, std::uint32_t block_rows)
    : pieces_(pieces),
      rows_(rows),
      block_rows_(block_rows),
      blocks_((rows - 1) / block_rows + 1),
      blocks_left_(pieces.count()),
      pieces_left_(blocks_) {
    for (std::uint32_t piece = 0; piece < pieces.count(); ++piece)
        blocks_left_[piece] = last_block(piece) - first_block(piece) + 1;
    for (std::uint32_t block = 0; block < blocks_; ++block)
        pieces_left_[block] = last_piece(block) - first_piece(block) + 1;
}

FirstGemm::FirstGemm(TpLayer& layer, GpuId gpu, int sms, Made made, std::uint32_t first_piece)
    : layer_(layer),
      gpu_(gpu),
      made_(std::move(made)),
      plan_(layer.plan_first(gpu, sms)),
      overlaps_(layer.pieces, layer.rows(), block_rows(plan_)),
      gemm_(layer.gpus.card(gpu), plan_, KernelName::first_gemm, sim::TileOrder::by_rows,
            [this](std::uint32_t block) { block_done(block); }) {
    gemm_.use_sms(sms);
    gemm_.keep_weights();
    gemm_.begin_with(overlaps_.first_block(first_piece));
}

void FirstGemm::block_done(std::uint32_t block) {
    overlaps_.block_done(block, [this](std::uint32_t piece) {
        layer_.made_partials(gpu_, piece);
        made_(piece);
    });
}

Process FirstGemm::run() {
    co_await gemm_.run(layer_.rows());
    layer_.gpus.first_gemm_ended(gpu_);
}

SecondGemm::SecondGemm(TpLayer& layer, GpuId gpu, int sms)
    : layer_(layer),
      gpu_(gpu),
      plan_(layer.plan_second(gpu, sms)),
      overlaps_(layer.pieces, layer.rows(), block_rows(plan_)),
      gemm_(layer.gpus.card(gpu), plan_, KernelName::second_gemm,
            sim::TileOrder::by_rows_that_come) {
    gemm_.use_sms(sms);
    gemm_.keep_weights();
}

void SecondGemm::came(std::uint32_t piece) {
    layer_.read(gpu_, piece);
    overlaps_.piece_done(piece, [this](std::uint32_t block) { gemm_.start(block, 1); });
}

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
