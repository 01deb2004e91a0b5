// Published large-scale serving: tokens/s of a GPU, and times of a
// layer's operators, of a model whose MoE layers run under a system between nodes.
//
// How their columns are read:
//   - `batch_per_gpu`, `tokens_per_gpu`: requests, or in prefill tokens of whole prompts.
//   - `dispatcher`: "DeepEP normal" is deepep, any other DeepEP deepep-ll.
//   - experts and their copies lie as EPLB puts them for routing without favourites; tokens choose
//     so where the note says that balance was simulated, otherwise by what EPLB leaves.
//   - times of operators are of one layer.
#include "base/input_error.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/compare.hpp>
#include <moehub/served_model.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// What EPLB leaves of real routing's favourites: docs/serving.md.
constexpr const char* kPromptRouting = "lognormal:0.5";
constexpr const char* kDecodeRouting = "lognormal:0.2";
constexpr const char* kEngine = "sglang-0.4";  ///< engine of the published versions
constexpr int kMostServedGpus = 65536;
constexpr std::int64_t kMostServedTokens = 1 << 24;

struct ServedRow {
    std::string model;
    std::string accel;
    int gpus = 0;
    bool prefill = false;
    std::int64_t batch_per_gpu = 0;
    std::int64_t context = 0;
    BatchOverlap overlap = BatchOverlap::none;
    bool balanced = false;
    int copies = 32;   ///< copies of experts; breakdowns do not say it, their sources do
    std::string part;  ///< an operator of a layer; empty: tokens/s
};
std::string machine_of(const ServedRow& row) {
    if (row.accel == "H100") return "h100-cluster";
    if (row.accel == "H200") return "h200-cluster";
    if (row.accel == "H800") return "h800-cluster";
    if (row.accel == "B200") return "b200-cluster";
    if (row.accel == "GB200") return row.gpus <= 72 ? "gb200-nvl72" : "gb200-cluster";
    throw input_error("accel {}: known are H100, H200, H800, B200, GB200", row.accel);
}

bool has(const std::string& note, std::string_view words) {
    return note.find(words) != std::string::npos;
}

/// The preset's name of a model: "DeepSeek-V3" in small letters.
std::string preset_of(std::string model) {
    std::transform(model.begin(), model.end(), model.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return model;
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
    return remembered(*context.served, key, [&] {
        const SystemSpec system = load_system(row.prefill ? "deepep" : "deepep-ll");
        return serve(serving, {system}, {1, nullptr, {}}).front();
    });
}

/// Seconds of the kernels of a dispatch or combine that leave their SMs.
std::optional<double> kernels_of(const ServedStep& step, std::string_view move) {
    for (const StepOperator& one : step.operators)
        if (one.name == fmt::format("{} kernels", move)) return one.total();
    return std::nullopt;
}

/// Seconds of the row's part in one layer; none where it is no operator here.
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
            return *kernels / moe_layers;  // rows underway are hidden
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

Prediction predict_served(const ServedRow& row, const PredictContext& context) {
    const Serving serving = serving_of(row, context);
    const ServedStep& step = step_of(row, serving, context);
    if (row.part.empty()) return {step.tokens_per_second};
    if (const std::optional<double> seconds = part_of_layer(row, serving, step))
        return {1e6 * *seconds};
    return skip("no operator of this name is timed by itself");
}

Cases case_of(Measurement measurement, const ServedRow& what) {
    return {{std::move(measurement),
             [what](const PredictContext& context) { return predict_served(what, context); }}};
}

/// What both kinds of rows say, in columns of different names.
ServedRow read_served(const CsvRow& row, std::string_view gpus, std::string_view batch) {
    ServedRow read;
    read.model = row.text("model");
    read.accel = row.text("accel");
    read.gpus = whole(row, gpus, 1, kMostServedGpus);
    read.batch_per_gpu = row.integer(batch, 1, kMostServedTokens);
    const std::string phase = row.text("phase");
    if (phase != "prefill" && phase != "decode") row.reject("phase", "prefill, decode");
    read.prefill = phase == "prefill";
    read.context = row.integer("context_tokens", 1, kMostServedTokens);
    if (read.prefill) read.batch_per_gpu /= read.context;
    return read;
}

}  // namespace

Cases served_cases(const CsvRow& row) {
    ServedRow parsed = read_served(row, "gpus", "batch_per_gpu");
    const std::string overlap = row.text("overlap");
    if (overlap != "none" && overlap != "two-batch") row.reject("overlap", "none, two-batch");
    if (overlap == "two-batch") parsed.overlap = BatchOverlap::two_batch;
    parsed.balanced = has(row.field("note"), "simulated perfect EPLB");
    if (!row.field("redundant_experts").empty())
        parsed.copies = whole(row, "redundant_experts", 0, kMostServedGpus);
    return case_of({fmt::format("{} {} {}", parsed.model, parsed.accel, row.text("phase")),
                    {},
                    value_in(row, "tokens_per_s_per_gpu"),
                    "tokens/s"},
                   parsed);
}

Cases served_part_cases(const CsvRow& row) {
    ServedRow parsed = read_served(row, "ep", "tokens_per_gpu");
    const std::string note = row.field("note");
    parsed.part = row.text("operator");
    // In prefill all traces have two micro-batches.
    if (parsed.prefill || has(note, "two-batch")) parsed.overlap = BatchOverlap::two_batch;
    parsed.balanced =
        has(note, "perfect EPLB") || has(note, "balanced routing") || has(note, "unit test");
    return case_of(timed(row, fmt::format("{} {} {}", parsed.accel, row.text("phase"), parsed.part),
                         "us", {{"overlap", std::string(name_of(parsed.overlap))}}),
                   parsed);
}

}  // namespace moehub
