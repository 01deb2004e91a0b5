// Systems on one layer: side by side, or one with what its units counted.
#include "study/compare.hpp"

#include "answers/layer_answer.hpp"
#include "answers/layer_request.hpp"
#include "answers/question.hpp"
#include "answers/sweep_request.hpp"
#include "layers/tp/dataflow.hpp"
#include "report/perfetto.hpp"

#include <moehub/compare.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

enum class LayerType { moe, tp };

struct Request {
    LayerType type = LayerType::moe;
    std::optional<std::vector<Wanted<SystemSpec>>> systems;
    Wanted<SystemSpec> system;  ///< one system, as run has it
    LayerRequest layer;
    int threads = 0;
    SweepAxes sweep;
    std::string output;  ///< file of the answer; with --sweep the database
};

constexpr std::int64_t kMostRows = 4096;  ///< rows that a trace follows

/// What compare and run have in common.
Options shared_options(Request& request) {
    LayerRequest& layer = request.layer;
    Option type{"--layer-type",
                to(request.type, Named<LayerType>{{"moe", LayerType::moe}, {"tp", LayerType::tp}}),
                "moe: a MoE layer; tp: a tensor-parallel sub-layer of a transformer"};
    Option rows{"--trace-rows", to(layer.options.timeline.followed_rows, {0, kMostRows}),
                "rows to follow in each layer, at most", needs("--trace")};
    return joined({{std::move(type), sub_layer_option(layer)},
                   machine_options(layer, "dgx-h800, for tensor parallelism dgx-h100",
                                   "mixtral-8x7b, of --layer-type tp llama-7b"),
                   layer_options(layer),
                   token_options(layer,
                                 "8192, or all of a trace, or for tensor parallelism the model's "
                                 "batch"),
                   {pass_option(layer)},
                   software_options(layer),
                   {std::move(rows)}});
}

Options compare_options(Request& request) {
    Option systems{"--systems", to(request.systems),
                   "names or TOML files with commas between (moehub list systems); without it all "
                   "that can run this"};
    Option threads{"--threads", to(request.threads, kThreads),
                   "systems simulated at a time, same result; without it as many as cores"};
    Option output{"-o,--output", to_file(request.output),
                  "write to this file instead; with --sweep the database of the results"};
    return joined({{std::move(systems)},
                   shared_options(request),
                   {baseline_option(request.layer)},
                   sweep_axes_options(request.sweep, needs("--sweep")),
                   {std::move(threads), std::move(output)}});
}

Options run_options(Request& request) {
    Option system{"--system", to(request.system),
                  "preset or TOML file (moehub list systems); without it moe-hub, of --layer-type "
                  "tp cais"};
    return joined({{std::move(system)}, shared_options(request)});
}

/// What was simulated, ready to be shown.
struct Simulated {
    std::vector<std::string> lead;
    Json facts;
    std::string rows;  ///< what a row is
    std::vector<NamedComparison> parts = {};
    Comparison whole = {};  ///< sum of several parts
    std::vector<std::string> checks = {};
    std::string dataflow = {};  ///< what CAIS's dataflow optimizer chose
    Configuration configuration = {};
};

/// "Dataflow optimizer: …" of CAIS.
std::string dataflow_of(const TpInput& input, const SystemSpec& system) {
    if (system.program != "cais") return "";
    const std::vector<layers::Operator> operators = layers::operators_of(input);
    return "Dataflow optimizer:\n" +
           layers::to_text(operators,
                           layers::optimise(operators, input.machine.gpu, system.fuse_blocks));
}

/// A comparison of each sub-layer, or one of the MoE layer, which has no name.
std::vector<NamedComparison> compared(const LayerCase& layer, const Request& request,
                                      const std::vector<SystemSpec>& systems, const Asker& asker) {
    const std::string& baseline = request.layer.baseline;
    const auto progress = asker.pieces("simulating");
    if (layer.is_moe())
        return {{"", compare_checked(layer.input, systems,
                                     {layer.options, baseline, request.threads, progress})}};
    const auto parts =
        compare_tp_parts(layer.input_of(layer.parts.front()), layer.parts, systems,
                         {layer.options_of_parts(), baseline, request.threads, progress});
    std::vector<NamedComparison> named;
    for (std::size_t i = 0; i < parts.size(); ++i)
        named.push_back({std::string(name_of(layer.parts[i])), parts[i]});
    return named;
}

Comparison whole_of(const std::vector<NamedComparison>& parts) {
    if (parts.size() == 1) return parts.front().comparison;
    std::vector<Comparison> all;
    for (const NamedComparison& one : parts) all.push_back(one.comparison);
    return sum_of(all);
}

Simulated simulate(const Request& request, const Asker& asker) {
    const bool tp = request.type == LayerType::tp;
    asker.require_form(tp ? kDense : kExperts);
    LayerCase layer = tp ? load_tp(request.layer) : load_layer(request.layer);
    layer.options.timeline.record = asker.wants_page || asker.wants_trace;
    ChosenSystems chosen = choose_systems(layer, request.systems, request.layer.settings);
    asker.loaded([&] { return inputs_of(layer) + inputs_of(chosen.systems); });
    Simulated made{lead_of(layer), facts_of(layer), tp ? "tokens" : "(token, expert) pairs"};
    made.parts = compared(layer, request, chosen.systems, asker);
    made.whole = whole_of(made.parts);
    made.whole.left_out = std::move(chosen.left_out);
    made.checks = checks_of(layer, made.whole);
    if (tp)
        made.dataflow = dataflow_of(layer.input_of(layer.parts.front()), chosen.systems.front());
    made.configuration = configuration_of(layer.input.machine, layer.input.model, chosen.systems);
    return made;
}

void add_trace(const Simulated& made, const Asker& asker, Answer& answer) {
    if (!asker.wants_trace) return;
    std::vector<TracedLayer> layers;
    for (const auto& [name, comparison] : made.parts)
        for (const ComparisonRow& row : comparison.rows)
            layers.push_back(
                {name.empty() ? row.result.system : name + " " + row.result.system, &row.result});
    Trace trace = perfetto_trace(layers);
    answer.trace_words = trace_line(trace);
    answer.trace = std::move(trace.json);
}

/// `units`: who gets what units counted.
Answer answer_with(Simulated made, Reader units, const Asker& asker) {
    const std::string machine = made.facts["machine"].dump(-1);
    Answer answer{.title = fmt::format("{} on {}",
                                       made.whole.rows.size() == 1
                                           ? made.whole.rows.front().result.system
                                           : fmt::format("{} systems", made.whole.rows.size()),
                                       machine.substr(1, machine.size() - 2)),
                  .lead = std::move(made.lead),
                  .facts = std::move(made.facts)};
    answer.facts["baseline"] = made.whole.baseline;
    Section systems =
        systems_section("Time", results_table("results", made.whole, made.parts), made.whole);
    if (made.parts.size() > 1)
        systems.blocks.push_back({sub_layers_table("sub_layers", made.parts), Reader::program});
    systems.blocks.push_back({left_out_table(made.whole.left_out), Reader::program});
    if (made.parts.front().name.empty()) systems.notes.push_back(software_words(made.whole));
    for (std::string& one : left_out_sentences(made.whole.left_out))
        systems.notes.push_back(std::move(one));
    for (std::string& one : made.checks) systems.notes.push_back(std::move(one));
    answer.sections.push_back(std::move(systems));
    if (units == Reader::all && !made.dataflow.empty())
        answer.sections.push_back({"Dataflow", {}, {Lines{made.dataflow}}});
    for (const NamedComparison& part : made.parts) {
        answer.sections.push_back(traffic_section(part));
        if (asker.wants_page) answer.sections.push_back(timeline_section(part));
    }
    answer.sections.push_back(units_section("statistics", made.parts, made.rows, units));
    answer.configuration = std::move(made.configuration);
    add_trace(made, asker, answer);
    for (NamedComparison& part : made.parts)
        for (ComparisonRow& row : part.comparison.rows)
            answer.simulated.push_back(std::make_shared<LayerResult>(std::move(row.result)));
    return answer;
}

/// As the sweep command with the same options.
Answer swept_answer(const Request& request, const Asker& asker) {
    if (asker.wants_trace)
        throw InputError("--trace: found with --sweep, allowed: of a single comparison");
    SweepRequest sweep;
    sweep.kind = request.type == LayerType::tp ? "tp" : "layer";
    sweep.axes = request.sweep;
    if (request.systems) {
        sweep.systems.emplace();
        for (const auto& one : *request.systems) sweep.systems->push_back(one.name_or(""));
    }
    sweep.baseline = request.layer.baseline;
    sweep.threads = request.threads;
    sweep.database = request.output;
    return sweep_answer(sweep, asker);
}

Answer compare_answer(const Request& request, const Asker& asker) {
    if (request.sweep.asked()) return swept_answer(request, asker);
    Answer answer = answer_with(simulate(request, asker), Reader::page, asker);
    answer.output = request.output;
    return answer;
}

Answer run_answer(const Request& asked, const Asker& asker) {
    Request request = asked;
    request.system.name = request.system.name_or(asked.type == LayerType::tp ? "cais" : "moe-hub");
    request.systems = {request.system};
    return answer_with(simulate(request, asker), Reader::all, asker);
}

const std::vector<SweepMeasure> kMeasures{
    {"time_us"},          {"compute_us"},          {"communication_us"}, {"host_us"},
    {"first_gemm_us"},    {"dispatch_us"},         {"combine_us"},       {"up_bytes", true},
    {"down_bytes", true}, {"payload_bytes", true}, {"sm_busy"},          {"tensor_busy"},
    {"rows", true},       {"packets", true}};

}  // namespace

Question compare_question() {
    return {.first = "systems",
            .form_words = {"a MoE layer", "--layer-type tp"},
            .forms = {.trace = true, .time_lines = true, .output = false},
            .sweeps = {{.name = "layer",
                        .systems = "systems",
                        .usual_systems = {"ideal", "megatron-te", "moe-hub"},
                        .check = check_systems,
                        .measures = kMeasures},
                       {.name = "tp",
                        .said = {{"layer_type", "tp"}},
                        .systems = "systems",
                        .usual_systems = {"ideal", "tp-nvls", "cais"},
                        .check = check_tp_systems,
                        .measures = kMeasures}},
            .ask = asking(compare_options, compare_answer, nullptr,
                          [](const Request& request) { return output_to("-o", request.output); })};
}

Question run_question() {
    return {.first = "system",
            .form_words = {"a MoE layer", "--layer-type tp"},
            .forms = {.trace = true, .time_lines = true},
            .ask = asking(run_options, run_answer)};
}

}  // namespace moehub
