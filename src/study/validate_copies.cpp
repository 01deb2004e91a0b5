// Rows copied by the thread blocks of a persistent kernel, one on each of so many SMs, and a GEMM
// repeated beside such a copy: simulated on one card, where the copy holds its SMs and draws on the
// memory. A GEMM that is repeated for long runs at the clock that the power limit leaves.
#include "study/validate_copies.hpp"

#include "sim/fabric.hpp"
#include "sim/gpu/execute.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kRow = 8192;         ///< bytes of a copied row
constexpr std::int64_t kRepeats = 3;  ///< of a GEMM: more take as long each

/// One card with its memory, and what runs on it.
struct OneCard {
    explicit OneCard(const Gpu& gpu)
        : fabric(with_gpus(load_machine("dgx-h200"), 1), {}), card(fabric.gpu(0), gpu) {}
    sim::Fabric fabric;
    sim::Card card;
    bool over = false;  ///< copies end with their row
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

constexpr std::int64_t kMost = 1'000'000;  ///< of any extent
constexpr std::int64_t kAllWarps = 32;     ///< of a block: what the rates of an SM were found with
constexpr double kElement = 2;             ///< bytes

}  // namespace

std::vector<CopyCase> parse_copy(const CsvRow& row) {
    std::vector<CopyCase> cases;
    for (const bool fill : {false, true}) {
        CopyCase one;
        one.fill = fill;
        one.warps = static_cast<int>(row.integer("warps", 1, 64));
        one.blocks = static_cast<int>(row.integer("blocks", 1, kMost));
        one.rows = row.integer("rows", 1, kMost);
        one.width = kElement * static_cast<double>(row.integer("width", 1, kMost));
        one.measurement.name = fill ? "fill" : "copy";
        one.measurement.shape = shape_of(row, {"warps", "blocks", "rows", "width"});
        one.measurement.shape.emplace_back("way", one.measurement.name);
        one.measurement.value = value_in(row, fill ? "fill_us" : "copy_us");
        one.measurement.unit = "us";
        cases.push_back(std::move(one));
    }
    return cases;
}

/// Some of a small table stays in L2 from one pass to the next.
Prediction predict_copy(const CopyCase& what, const PredictContext& context) {
    if (what.warps != kAllWarps) return {std::nullopt, "blocks of fewer than 32 warps"};
    const Gpu& gpu = context.gpu;
    const double bytes = static_cast<double>(what.rows) * what.width;
    const double sms = std::min(what.blocks, gpu.sms);
    const double read = what.fill ? 0 : bytes;
    const double far = 1 - l2_hit(gpu, read + bytes);
    const double memory =
        (read / gpu.kernels.hbm_efficiency + bytes / gpu.kernels.hbm_write) / gpu.hbm_bandwidth;
    const double alone = row_copy_seconds(gpu.kernels, {read, far, bytes}) / sms;
    return {std::max(alone, far * memory) * 1e6, {}};
}

std::vector<BesideCopyCase> parse_beside_copy(const CsvRow& row) {
    BesideCopyCase one;
    one.rows = row.integer("rows", 1, kMost);
    one.k = row.integer("k", 1, kMost);
    one.n = row.integer("n", 1, kMost);
    one.blocks = static_cast<int>(row.integer("copy_blocks", 0, kMost));
    one.measurement.name = one.blocks == 0 ? "GEMM alone" : "GEMM beside a copy";
    one.measurement.shape = shape_of(row, {"rows", "k", "n", "copy_blocks"});
    one.measurement.value = value_in(row, "gemm_us");
    one.measurement.unit = "us";
    return {one};
}

Prediction predict_beside_copy(const BesideCopyCase& what, const PredictContext& context) {
    if (what.blocks >= context.gpu.sms) return {std::nullopt, "no SM is left for the GEMM"};
    Gpu gpu = context.gpu;
    gpu.bf16_flops *= gpu.kernels.throttled_clock;
    const GemmPlan plan = plan_gemm(gpu, {what.rows, what.k, what.n});
    OneCard one(gpu);
    one.card.blocks.hold(what.blocks, sim::KernelName::other);
    constexpr std::int64_t kEndless = 1'000'000'000;
    for (int i = 0; i < what.blocks; ++i) {
        one.fabric.gpu(0).spawn("copy", copy_rows(one, kEndless));
    }
    one.fabric.gpu(0).spawn("GEMM", repeat_gemm(one, plan));
    one.fabric.run();
    return {to_us(one.fabric.gpu(0).now()) / kRepeats, {}};
}

}  // namespace moehub
