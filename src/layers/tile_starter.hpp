/// What follows when a hub tells that a tile of an expert's rows has come: the row blocks of the
/// expert's first GEMM that it makes start.
#pragma once
#include "layers/multimem_layer.hpp"
#include "sim/gpu/row_gemm.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace moehub::layers {

class TileStarter final : public sim::ReadyListener {
  public:
    /// `gemm(i)` is the first GEMM of the GPU's i-th expert.
    TileStarter(MultimemLayer& rows, GpuId gpu, std::function<sim::RowGemm&(std::size_t)> gemm)
        : rows_(rows), gpu_(gpu), gemm_(std::move(gemm)) {}

    void rows_ready(sim::RegionId region, std::uint32_t tile) override {
        const auto& experts = rows_.experts(gpu_);
        const auto expert = std::find_if(experts.begin(), experts.end(),
                                         [&](const auto& one) { return one.input == region; });
        sim::RowGemm& up = gemm_(static_cast<std::size_t>(expert - experts.begin()));
        const std::uint32_t in_tile = rows_.layer.gpus.hub(gpu_).space(region).block_rows;
        const std::uint32_t here = std::min(in_tile, rows_.rows_in(gpu_, *expert) - tile * in_tile);
        const std::uint32_t size = up.block_rows();
        up.start(tile * (in_tile / size), (here - 1) / size + 1);
        if (rows_.layer.gpus.recorder() == nullptr) return;
        const std::uint32_t first = tile * in_tile;
        for (const CarriedRow& row : rows_.rows_of(gpu_, *expert, first, first + here))
            rows_.layer.note_step(row.token, row.choice, "released", gpu_);
    }

  private:
    MultimemLayer& rows_;
    GpuId gpu_;
    std::function<sim::RowGemm&(std::size_t)> gemm_;
};

}  // namespace moehub::layers
