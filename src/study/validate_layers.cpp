#include "study/validate_layers.hpp"

#include "study/model_share.hpp"

#include <moehub/error.hpp>

#include <array>
#include <initializer_list>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostExtent = 1'000'000'000;
constexpr std::array<std::string_view, 7> kPhases = {"route",      "plan",  "permute", "gemm1",
                                                     "activation", "gemm2", "combine"};

}  // namespace

std::vector<LayerRowCase> parse_layer(const CsvRow& row) {
    LayerRowCase parsed;
    LayerOperator& op = parsed.op;
    op.op = row.text("op");
    parsed.dtype = row.text("dtype");
    const auto extent = [&row](std::string_view column, std::int64_t otherwise) {
        return row.has(column) ? row.integer(column, 1, kMostExtent) : otherwise;
    };
    op.batch = extent("batch", 0);
    op.heads = extent("heads", 0);
    op.kv_heads = extent("kv_heads", 0);
    op.seq = extent("seq", 0);
    op.head_dim = extent("head_dim", 0);
    op.groups = extent("groups", 1);
    op.rows = extent("rows", 0);
    op.k = extent("k", 0);
    op.n = extent("n", 0);
    if (op.seq == 0 && op.rows == 0)
        row.fail("seq and rows: found nothing in both, allowed: one of them");
    if (op.heads > 0 && op.kv_heads > 0 && op.heads % op.kv_heads != 0)
        row.reject("kv_heads", fmt::format("a divisor of the row's heads, {}", op.heads));
    parsed.measurement = {op.op,
                          shape_of(row, {"op", "dtype", "batch", "heads", "kv_heads", "seq",
                                         "head_dim", "groups", "rows", "k", "n"}),
                          value_in(row, "us"), "us"};
    return {parsed};
}

Prediction predict_layer_case(const LayerRowCase& what, const PredictContext& context) {
    const std::string_view modelled = what.op.op.find("fp8") == std::string::npos ? "bf16" : "fp8";
    if (what.dtype != modelled)
        return skip(fmt::format("modelled for dtype {}, found {}", modelled, what.dtype));
    const auto time = predict_layer(context.gpu, what.op);
    if (!time) return skip("no model of this operator, or not of this size");
    return {to_us(*time), {}};
}

std::vector<EagerCase> parse_eager(const CsvRow& row) {
    std::vector<EagerCase> cases;
    for (const auto phase : kPhases) {
        EagerCase parsed;
        parsed.model = row.text("model");
        parsed.phase = phase;
        parsed.tokens = row.integer("tokens", 1, kMostExtent);
        parsed.rows = row.integer("rows", 1, kMostExtent);
        Shape shape = shape_of(row, {"model", "tokens", "rows"});
        shape.emplace_back("phase", phase);
        parsed.measurement = {parsed.phase, std::move(shape),
                              value_in(row, fmt::format("{}_us", phase)), "us"};
        cases.push_back(std::move(parsed));
    }
    return cases;
}

Prediction predict_eager_case(const EagerCase& what, const PredictContext& context) {
    Model model;
    try {
        model = load_model_share(what.model);
    } catch (const InputError& error) {
        return skip(error.what(), what.model);
    }
    const auto time = predict_eager(context.gpu, {what.phase, what.tokens, what.rows, model.experts,
                                                  model.hidden, model.expert_ffn});
    if (!time) return skip("no model of this phase, or not of this size");
    return {to_us(*time), {}};
}

}  // namespace moehub
