// Rows copied by the thread blocks of a persistent kernel, one on each of so many SMs, and a GEMM
// repeated beside such a copy: simulated on one card, where the copy holds its SMs and draws on the
// memory. A GEMM that is repeated for long runs at the clock that the power limit leaves.
#include "sim/fabric.hpp"
#include "sim/gpu/card.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kRow = 8192;         ///< bytes of a copied row
constexpr std::int64_t kRepeats = 3;  ///< runs of a GEMM; more take as long each

/// One card with its memory, and what runs on it.
struct OneCard {
    explicit OneCard(const Gpu& gpu)
        : fabric(with_gpus(load_machine("dgx-h200"), 1), {}), card(fabric.gpu(0), gpu) {}
    sim::Fabric fabric;
    sim::Card card;
    bool over = false;  ///< the GEMM is over: copies end with their row
};

Process copy_rows(OneCard& one, std::int64_t rows) {
    const Kernels& kernels = one.card.gpu.kernels;
    const double write = kernels.hbm_efficiency / kernels.hbm_write;
    const RowCopy row{kRow, 1, kRow};
    const Ps alone = std::llround(row_copy_seconds(kernels, row) * 1e12);
    for (std::int64_t i = 0; i < rows && !one.over; ++i) {
        const Ps memory = one.card.hbm.take(kRow * (1 + write)) - one.card.endpoint.now();
        co_await one.card.endpoint.delay(std::max(alone, memory));
    }
}

Process repeat_gemm(OneCard& one, const GemmPlan& plan) {
    for (std::int64_t i = 0; i < kRepeats; ++i) co_await run_gemm(one.card, plan);
    one.over = true;
}

constexpr std::int64_t kMost = 1'000'000;  ///< largest extent
constexpr std::int64_t kAllWarps = 32;  ///< warps of a block: rates of an SM were found with them
constexpr double kElement = 2;          ///< bytes of an element

/// Rows gathered by index, by thread blocks.
struct CopiedRows {
    bool fill = false;  ///< rows are only stored
    int warps = 0;      ///< warps of a block
    int blocks = 0;
    std::int64_t rows = 0;
    double width = 0;  ///< bytes of a row
};

/// The time of a copy. Some of a small table stays in L2 from one pass to the next.
Prediction predict_copy(const CopiedRows& what, const Gpu& gpu) {
    if (what.warps != kAllWarps) return skip("blocks of fewer than 32 warps");
    const double bytes = static_cast<double>(what.rows) * what.width;
    const double sms = std::min(what.blocks, gpu.sms);
    const double read = what.fill ? 0 : bytes;
    const double far = 1 - l2_hit(gpu, read + bytes);
    const double memory =
        (read / gpu.kernels.hbm_efficiency + bytes / gpu.kernels.hbm_write) / gpu.hbm_bandwidth;
    const double alone = row_copy_seconds(gpu.kernels, {read, far, bytes}) / sms;
    return {std::max(alone, far * memory) * 1e6};
}

/// The time of a GEMM beside a copy by so many blocks.
Prediction predict_beside_copy(const GemmShape& gemm, int blocks, Gpu gpu) {
    if (blocks >= gpu.sms) return skip("no SM is left for the GEMM");
    gpu.bf16_flops *= gpu.kernels.throttled_clock;
    const GemmPlan plan = plan_gemm(gpu, gemm);
    OneCard one(gpu);
    one.card.blocks.hold(blocks, sim::KernelName::other);
    constexpr std::int64_t kEndless = 1'000'000'000;
    for (int i = 0; i < blocks; ++i) one.fabric.gpu(0).spawn("copy", copy_rows(one, kEndless));
    one.fabric.gpu(0).spawn("GEMM", repeat_gemm(one, plan));
    one.fabric.run();
    return {to_us(one.fabric.gpu(0).now()) / kRepeats};
}

}  // namespace

Cases copy_cases(const CsvRow& row) {
    Cases cases;
    for (const bool fill : {false, true}) {
        const std::string way = fill ? "fill" : "copy";
        const CopiedRows what{fill, whole(row, "warps", 1, 64), whole(row, "blocks", 1, kMost),
                              row.integer("rows", 1, kMost),
                              kElement * static_cast<double>(row.integer("width", 1, kMost))};
        cases.push_back(
            {timed(row, way, way + "_us", {{"way", way}}),
             [what](const PredictContext& context) { return predict_copy(what, context.gpu); }});
    }
    return cases;
}

Cases beside_copy_cases(const CsvRow& row) {
    GemmShape gemm;
    gemm.rows = row.integer("rows", 1, kMost);
    gemm.k = row.integer("k", 1, kMost);
    gemm.n = row.integer("n", 1, kMost);
    const int blocks = whole(row, "copy_blocks", 0, kMost);
    return {{timed(row, blocks == 0 ? "GEMM alone" : "GEMM beside a copy", "gemm_us"),
             [=](const PredictContext& context) {
                 return predict_beside_copy(gemm, blocks, context.gpu);
             }}};
}

}  // namespace moehub
