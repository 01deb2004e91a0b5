// Operators are predicted as one card's kernels.
//
// A whole layer is one of `torch`, simulated on one GPU that waits for nothing else: called on an
// idle card, so the host has no lead; replayed as a graph; or forward and backward, where the host
// is ahead on the way back by what it gained on the way out. Repeated without a pause, long layers
// run at the clock that the card's power allows, as long operators do (tile.hpp).
#include "base/input_error.hpp"
#include "sim/gpu/tile.hpp"
#include "study/validate_kinds.hpp"
#include "systems/systems.hpp"

#include <charconv>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostExtent = 1'000'000'000;
constexpr std::int64_t kMostOfOperators = 2'000'000'000;  ///< largest: two multiplied fit an int64
constexpr std::int64_t kMostElements = 1'000'000'000'000;
constexpr std::int64_t kMostLayerTokens = 10'000'000;
constexpr std::string_view kPhases[] = {"route",      "plan",  "permute", "gemm1",
                                        "activation", "gemm2", "combine"};
constexpr std::string_view kPasses[] = {"fwd", "fwd_bwd"};
constexpr std::string_view kWays[] = {"eager", "graph", "eager_forward_backward"};

Prediction predict_layer_case(const LayerRowCase& what, const PredictContext& context) {
    const std::string_view dtype = what.op.op.find("fp8") == std::string::npos ? "bf16" : "fp8";
    if (what.dtype != dtype)
        return skip(fmt::format("modelled for dtype {}, found {}", dtype, what.dtype));
    return modelled(predict_layer(context.gpu, what.op));
}

MeasuredCase case_of(const LayerRowCase& what) {
    return {what.measurement,
            [what](const PredictContext& context) { return predict_layer_case(what, context); }};
}

/// attention_cudnn forward is attention_fwd_cudnn; what is no attention stays as it is.
std::string operator_of(const std::string& op, std::string_view pass) {
    constexpr std::string_view kAttention = "attention_";
    if (!op.starts_with(kAttention)) return op;
    return fmt::format("{}{}_{}", kAttention, pass, op.substr(kAttention.size()));
}

/// A preset's model; with -epN at its end, with the experts of one of N ranks. Throws InputError
/// when there is no such preset, or its experts cannot be shared so.
Model load_model_share(const std::string& name) {
    std::string preset = name;
    int ranks = 1;
    if (const auto at = name.rfind("-ep"); at != std::string::npos) {
        int number = 0;
        const char* const end = name.data() + name.size();
        const auto read = std::from_chars(name.data() + at + 3, end, number);
        if (read.ec == std::errc() && read.ptr == end) {
            preset.resize(at);
            ranks = number;
        }
    }
    Model model = load_model(preset);
    if (ranks < 1 || model.experts < ranks || model.experts % ranks != 0)
        throw input_error("{} experts cannot be shared by these ranks", model.experts);
    model.experts /= ranks;
    return model;
}

/// What is predicted of a model; reasons are about it.
template <class Predict>
Prediction of_model(const std::string& name, const Predict& predict) {
    try {
        return predict(load_model_share(name));
    } catch (const InputError& error) {
        return skip(error.what(), name);
    }
}

/// The layer as it was measured: no shared experts, no groups of experts.
LayerInput input_of(const Model& whole, std::int64_t tokens, const Gpu& gpu) {
    Model model = whole;
    model.shared_experts = 0;
    model.expert_groups = model.top_groups = 1;
    Machine machine = with_gpus(load_machine("dgx-h200"), 1);
    machine.gpu = gpu;
    return {machine, model, make_routing(parse_routing("uniform"), model, tokens),
            contiguous_placement(model.experts, 1)};
}

struct Run {
    Ps time = 0;
    double tensor = 0;  ///< share of the time in which tensor cores are busy
};

Run run(const LayerInput& input, std::string_view way) {
    SystemSpec system = load_system("torch");
    if (way == "graph") system.host = HostMode::graph;
    LayerOptions options;
    options.recorded = way == "eager_forward_backward";
    check_layer(input, system, options);
    const LayerResult forward = systems::run_job({input, system, options, Ps{0}});
    if (way == "graph")
        return {forward.time + input.machine.gpu.kernels.graph_replay, forward.tensor_busy};
    if (way == "eager") return {forward.time, forward.tensor_busy};
    options.pass = Pass::backward;
    const LayerResult backward = systems::run_job({input, system, options, forward.host_lead});
    const Ps time = forward.time + backward.time;
    const double busy = to_seconds(forward.time) * forward.tensor_busy +
                        to_seconds(backward.time) * backward.tensor_busy;
    return {time, busy / to_seconds(time)};
}

double whole_layer_us(const Model& model, std::int64_t tokens, std::string_view way,
                      const Gpu& gpu) {
    LayerInput input = input_of(model, tokens, gpu);
    const Run full = run(input, way);
    const double clock = repeated_clock(gpu, to_seconds(full.time), full.tensor);
    if (clock == 1) return to_us(full.time);
    input.machine.gpu = at_clock(gpu, clock);
    return to_us(run(input, way).time);
}

}  // namespace

Cases operator_cases(const CsvRow& row) {
    Operator op;
    op.op = row.text("op");
    read_extents(row, 0, kMostOfOperators, {{"groups", &op.groups}});
    op.rows = row.integer("rows", 1, kMostOfOperators);
    read_extents(row, 0, kMostOfOperators,
                 {{"max_rows", &op.max_rows}, {"k", &op.k}, {"n", &op.n}});
    if (row.has("skew")) op.skew = row.non_negative("skew");
    if (op.max_rows > op.rows)
        row.reject("max_rows", fmt::format("at most the row's rows, {}", op.rows));
    return {{timed(row, op.op),
             [op](const PredictContext& context) { return modelled(predict(context.gpu, op)); }}};
}

LayerRowCase parse_layer(const CsvRow& row) {
    LayerRowCase parsed;
    LayerOperator& op = parsed.op;
    op.op = row.text("op");
    parsed.dtype = row.text("dtype");
    read_extents(row, 1, kMostExtent,
                 {{"batch", &op.batch},
                  {"heads", &op.heads},
                  {"kv_heads", &op.kv_heads},
                  {"seq", &op.seq},
                  {"head_dim", &op.head_dim},
                  {"groups", &op.groups},
                  {"rows", &op.rows},
                  {"k", &op.k},
                  {"n", &op.n}});
    if (op.seq == 0 && op.rows == 0)
        row.fail("seq and rows: found nothing in both, allowed: one of them");
    check_heads(row, op.heads, op.kv_heads);
    parsed.measurement = timed(row, op.op);
    return parsed;
}

Cases layer_cases(const CsvRow& row) {
    return {case_of(parse_layer(row))};
}

Cases eager_cases(const CsvRow& row) {
    Cases cases;
    for (const auto phase : kPhases) {
        const std::string name = row.text("model");
        const std::int64_t tokens = row.integer("tokens", 1, kMostExtent);
        const std::int64_t rows = row.integer("rows", 1, kMostExtent);
        const auto predict = [=](const PredictContext& context) {
            return of_model(name, [&](const Model& model) {
                return modelled(
                    predict_eager(context.gpu, {std::string(phase), tokens, rows, model.experts,
                                                model.hidden, model.expert_ffn}),
                    "phase");
            });
        };
        cases.push_back({timed(row, std::string(phase), fmt::format("{}_us", phase),
                               {{"phase", std::string(phase)}}),
                         predict});
    }
    return cases;
}

Cases training_op_cases(const CsvRow& row) {
    TrainingOperator op;
    op.op = row.text("op");
    op.elements = row.integer("elements", 1, kMostElements);
    read_extents(row, 1, kMostExtent, {{"rows", &op.rows}});
    if (op.rows > 0 && op.elements % op.rows != 0)
        row.reject("rows", fmt::format("a divisor of the row's elements, {}", op.elements));
    return {{timed(row, op.op), [op](const PredictContext& context) {
                 return modelled(predict_training(context.gpu, op));
             }}};
}

Cases long_attention_cases(const CsvRow& row) {
    Cases cases;
    for (const std::string_view pass : kPasses) {
        LayerRowCase parsed;
        LayerOperator& op = parsed.op;
        op.op = operator_of(row.text("op"), pass);
        for (const auto& [column, value] : Extents{{"batch", &op.batch},
                                                   {"heads", &op.heads},
                                                   {"kv_heads", &op.kv_heads},
                                                   {"seq", &op.seq},
                                                   {"head_dim", &op.head_dim}})
            *value = row.integer(column, 1, kMostExtent);
        check_heads(row, op.heads, op.kv_heads);
        parsed.dtype = "bf16";
        parsed.measurement =
            timed(row, op.op, fmt::format("{}_us", pass), {{"way", std::string(pass)}});
        cases.push_back(case_of(parsed));
    }
    return cases;
}

Cases whole_layer_cases(const CsvRow& row) {
    Cases cases;
    for (const std::string_view way : kWays) {
        const std::string name = row.text("model");
        const std::int64_t tokens = row.integer("tokens", 1, kMostLayerTokens);
        row.integer("max_rows", 1, kMostLayerTokens);
        const auto predict = [=](const PredictContext& context) {
            return of_model(name, [&](const Model& model) -> Prediction {
                return {whole_layer_us(model, tokens, way, context.gpu)};
            });
        };
        cases.push_back(
            {timed(row, std::string(way), fmt::format("{}_us", way), {{"way", std::string(way)}}),
             predict});
    }
    return cases;
}

}  // namespace moehub
