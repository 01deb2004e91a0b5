#include "study/validate_training.hpp"

#include <array>
#include <initializer_list>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostElements = 1'000'000'000'000;
constexpr std::int64_t kMostExtent = 1'000'000'000;
constexpr std::string_view kAttention = "attention_";
constexpr std::array<std::string_view, 2> kPasses = {"fwd", "fwd_bwd"};

/// attention_cudnn forward is attention_fwd_cudnn; what is no attention stays as it is.
std::string operator_of(const std::string& op, std::string_view pass) {
    if (!op.starts_with(kAttention)) return op;
    return fmt::format("{}{}_{}", kAttention, pass, op.substr(kAttention.size()));
}

}  // namespace

std::vector<TrainingCase> parse_training(const CsvRow& row) {
    TrainingCase parsed;
    parsed.op.op = row.text("op");
    parsed.op.elements = row.integer("elements", 1, kMostElements);
    if (row.has("rows")) parsed.op.rows = row.integer("rows", 1, kMostExtent);
    if (parsed.op.rows > 0 && parsed.op.elements % parsed.op.rows != 0)
        row.reject("rows", fmt::format("a divisor of the row's elements, {}", parsed.op.elements));
    parsed.measurement = {parsed.op.op, shape_of(row, {"op", "elements", "rows"}),
                          value_in(row, "us"), "us"};
    return {parsed};
}

Prediction predict_training_case(const TrainingCase& what, const PredictContext& context) {
    const auto time = predict_training(context.gpu, what.op);
    if (!time) return {std::nullopt, "no model of this operator, or not of this size"};
    return {to_us(*time), {}};
}

std::vector<LayerRowCase> parse_long_attention(const CsvRow& row) {
    std::vector<LayerRowCase> cases;
    for (const std::string_view pass : kPasses) {
        LayerRowCase parsed;
        LayerOperator& op = parsed.op;
        op.op = operator_of(row.text("op"), pass);
        op.batch = row.integer("batch", 1, kMostExtent);
        op.heads = row.integer("heads", 1, kMostExtent);
        op.kv_heads = row.integer("kv_heads", 1, kMostExtent);
        op.seq = row.integer("seq", 1, kMostExtent);
        op.head_dim = row.integer("head_dim", 1, kMostExtent);
        if (op.heads % op.kv_heads != 0)
            row.reject("kv_heads", fmt::format("a divisor of the row's heads, {}", op.heads));
        parsed.dtype = "bf16";
        parsed.measurement = {
            op.op, shape_of(row, {"op", "batch", "heads", "kv_heads", "seq", "head_dim"}),
            value_in(row, fmt::format("{}_us", pass)), "us"};
        parsed.measurement.shape.emplace_back("way", pass);
        cases.push_back(std::move(parsed));
    }
    return cases;
}

}  // namespace moehub
