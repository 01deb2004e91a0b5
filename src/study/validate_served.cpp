#include "study/validate_served.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// What EPLB leaves of real routing's favourites: docs/serving.md.
constexpr const char* kPromptRouting = "lognormal:0.5";
constexpr const char* kDecodeRouting = "lognormal:0.2";
constexpr const char* kEngine = "sglang-0.4";  ///< of the versions that were published
constexpr int kMostGpus = 65536;
constexpr std::int64_t kMostTokens = 1 << 24;

std::string machine_of(const ServedRow& row) {
    if (row.accel == "H100") return "h100-cluster";
    if (row.accel == "H200") return "h200-cluster";
    if (row.accel == "H800") return "h800-cluster";
    if (row.accel == "B200") return "b200-cluster";
    if (row.accel == "GB200") return row.gpus <= 72 ? "gb200-nvl72" : "gb200-cluster";
    throw InputError(fmt::format("accel {}: known are H100, H200, H800, B200, GB200", row.accel));
}

bool has(const std::string& note, std::string_view words) {
    return note.find(words) != std::string::npos;
}

/// "DeepSeek-V3" as presets are called.
std::string preset_of(std::string model) {
    std::transform(model.begin(), model.end(), model.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return model;
}

void read_phase(ServedRow& parsed, const CsvRow& row) {
    const std::string phase = row.text("phase");
    if (phase != "prefill" && phase != "decode") row.reject("phase", "prefill, decode");
    parsed.prefill = phase == "prefill";
    parsed.context = row.integer("context_tokens", 1, kMostTokens);
    if (parsed.prefill) parsed.batch_per_gpu /= parsed.context;
}

Serving serving_of(const ServedRow& row, const PredictContext& context) {
    const Machine machine = context.machine(machine_of(row), row.gpus);
    ServingSetup setup;
    setup.copies = row.copies;
    Serving serving =
        serving_on(machine, load_model(preset_of(row.model)), load_engine(kEngine), setup);
    if (!row.balanced)
        serving.routing = parse_routing(row.prefill ? kPromptRouting : kDecodeRouting);
    serving.what.formats.cache = NumberFormat::bf16;
    serving.prefill = row.prefill;
    serving.context = row.context;
    serving.batch_per_gpu = row.batch_per_gpu;
    serving.overlap = row.overlap;
    return serving;
}

const ServedStep& step_of(const ServedRow& row, const Serving& serving,
                          const PredictContext& context) {
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {}", row.model, row.accel, row.gpus, row.prefill,
                    row.batch_per_gpu, row.context, name_of(row.overlap), row.balanced);
    const auto known = context.served->find(key);
    if (known != context.served->end()) return known->second;
    const SystemSpec system = load_system(row.prefill ? "deepep" : "deepep-ll");
    return (*context.served)[key] = serve(serving, {system}, {1, nullptr, {}}).front();
}

/// Of a dispatch or combine whose kernels leave their SMs.
std::optional<double> kernels_of(const ServedStep& step, std::string_view move) {
    for (const StepOperator& one : step.operators)
        if (one.name == fmt::format("{} kernels", move)) return one.total();
    return std::nullopt;
}

/// Of one layer; nothing where it is no operator here.
std::optional<double> part_of_layer(const ServedRow& row, const Serving& serving,
                                    const ServedStep& step) {
    const double layers = serving.what.model.layers;
    const double moe_layers = serving.what.model.moe_layers();
    if (row.part == "overall")
        return (step.seconds - part_seconds(step, "head and sampling")) / layers;
    for (const std::string_view move : {"dispatch", "combine"}) {
        if (!row.part.starts_with(move) || row.part.ends_with("barrier")) continue;
        if (const std::optional<double> kernels = kernels_of(step, move);
            kernels && row.overlap == BatchOverlap::two_batch)
            return *kernels / moe_layers;  // the rest is hidden
        return part_seconds(step, move) / moe_layers;
    }
    // Published apart; here each kernel's launch is in its time, of small ones nothing else is.
    double kernels = 0;
    for (const StepOperator& one : step.operators)
        if (one.kind != OperatorKind::host) kernels += one.count;
    const double launches =
        kernels / layers * to_seconds(serving.what.machine.gpu.overheads.graph_launch);
    if (row.part == "launch overhead") return launches;
    if (row.part == "other kernels") return part_seconds(step, row.part) / layers - launches;
    if (row.part == "routed experts (MoE)") return part_seconds(step, row.part) / moe_layers;
    for (const ServedPart& part : parts_of(step))
        if (part.name == row.part) return part.seconds / layers;
    return std::nullopt;
}

}  // namespace

std::vector<ServedRow> parse_served(const CsvRow& row) {
    ServedRow parsed;
    parsed.model = row.text("model");
    parsed.accel = row.text("accel");
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.batch_per_gpu = row.integer("batch_per_gpu", 1, kMostTokens);
    read_phase(parsed, row);
    const std::string overlap = row.text("overlap");
    if (overlap != "none" && overlap != "two-batch") row.reject("overlap", "none, two-batch");
    if (overlap == "two-batch") parsed.overlap = BatchOverlap::two_batch;
    parsed.balanced = has(row.field("note"), "simulated perfect EPLB");
    if (!row.field("redundant_experts").empty())
        parsed.copies = static_cast<int>(row.integer("redundant_experts", 0, kMostGpus));
    Measurement& measurement = parsed.measurement;
    measurement.name = fmt::format("{} {} {}", parsed.model, parsed.accel, row.text("phase"));
    measurement.shape = shape_of(row, {"gpus", "batch_per_gpu", "context_tokens", "overlap"});
    measurement.value = value_in(row, "tokens_per_s_per_gpu");
    measurement.unit = "tokens/s";
    return {parsed};
}

std::vector<ServedRow> parse_served_parts(const CsvRow& row) {
    ServedRow parsed;
    parsed.model = row.text("model");
    parsed.accel = row.text("accel");
    parsed.gpus = static_cast<int>(row.integer("ep", 1, kMostGpus));
    parsed.batch_per_gpu = row.integer("tokens_per_gpu", 1, kMostTokens);
    read_phase(parsed, row);
    const std::string note = row.field("note");
    parsed.part = row.text("operator");
    // In prefill all traces have two micro-batches.
    if (parsed.prefill || has(note, "two-batch")) parsed.overlap = BatchOverlap::two_batch;
    parsed.balanced =
        has(note, "perfect EPLB") || has(note, "balanced routing") || has(note, "unit test");
    Measurement& measurement = parsed.measurement;
    measurement.name = fmt::format("{} {} {}", parsed.accel, row.text("phase"), parsed.part);
    measurement.shape = {{"tokens_per_gpu", row.field("tokens_per_gpu")},
                         {"overlap", std::string(name_of(parsed.overlap))}};
    measurement.value = value_in(row, "us");
    measurement.unit = "us";
    return {parsed};
}

Prediction predict_served(const ServedRow& row, const PredictContext& context) {
    try {
        const Serving serving = serving_of(row, context);
        const ServedStep& step = step_of(row, serving, context);
        if (row.part.empty()) return {step.tokens_per_second, {}};
        if (const std::optional<double> seconds = part_of_layer(row, serving, step))
            return {1e6 * *seconds, {}};
        return {std::nullopt, "no operator of this name is timed by itself"};
    } catch (const InputError& error) {
        return {std::nullopt, error.what()};
    }
}

}  // namespace moehub
