// Do the kernels that only MoE layers run take about what was measured on an H200?
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/presets.hpp>

#include <gtest/gtest.h>

namespace moehub::layer_kernels_test {
namespace {

struct RouterRow {
    std::int64_t experts;
    std::int64_t tokens;
    double us;
};

// validation/h200/layers.csv, router, hidden 4096: replays of a graph.
constexpr RouterRow kRouters[] = {{8, 128, 28.54},   {8, 4096, 42.27},   {8, 8192, 59.62},
                                  {16, 4096, 41.70}, {16, 8192, 59.97},  {64, 128, 29.82},
                                  {64, 1024, 32.70}, {64, 8192, 74.30},  {128, 1024, 36.61},
                                  {256, 128, 31.58}, {256, 8192, 167.01}};

TEST(LayerKernels, a_router_takes_its_gemm_and_top_k) {
    const Gpu gpu = load_gpu("h200-sxm");
    for (const RouterRow& row : kRouters) {
        const double us =
            to_us(gpu.kernels.graph_replay) +
            1e6 * (plan_seconds(gpu, plan_gemm(gpu, {row.tokens, 4096, row.experts})) +
                   route_seconds(gpu, row.tokens, row.experts));
        EXPECT_NEAR(us / row.us, 1, 0.15) << row.tokens << " tokens, " << row.experts << " experts";
    }
}

TEST(LayerKernels, a_weighted_scatter_add_takes_its_bytes_over_a_steady_rate) {
    const Gpu gpu = load_gpu("h200-sxm");
    struct Row {
        std::int64_t rows;
        double width;
        double us;  ///< validation/h200/eager_phases.csv, combine, where it outlasts its launches
    };
    for (const Row& row : {Row{4096, 8192, 248.4}, Row{16384, 8192, 888.4}, Row{4096, 14336, 355.2},
                           Row{16384, 14336, 1389.8}, Row{65536, 14336, 5031.3}}) {
        EXPECT_NEAR(1e6 * scatter_add_seconds(gpu, row.rows, row.width) / row.us, 1, 0.2);
    }
}

}  // namespace
}  // namespace moehub::layer_kernels_test
