// Systems on one layer: side by side, or one with what its units counted.
#include "study/compare.hpp"

#include "answers/layer_answer.hpp"
#include "answers/layer_request.hpp"
#include "answers/questions.hpp"
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
    Wanted<SystemSpec> system;  ///< of run
    LayerRequest layer;
    int threads = 0;
    SweepAxes sweep;
    std::string output;  ///< with --sweep the database
};

constexpr std::int64_t kMostRows = 4096;  ///< that a trace follows

/// What compare and run have in common.
Options shared_options(Request& request) {
    LayerRequest& layer = request.layer;
    Options options{
        {"--layer-type",
         to(request.type, Named<LayerType>{{"moe", LayerType::moe}, {"tp", LayerType::tp}}),
         "moe: a MoE layer; tp: a tensor-parallel sub-layer of a transformer"},
        sub_layer_option(layer),
    };
    append(options, machine_options(layer, "dgx-h800, for tensor parallelism dgx-h100",
                                    "mixtral-8x7b, of --layer-type tp llama-7b"));
    append(options, layer_options(layer));
    append(options, token_options(layer,
                                  "8192, or all of a trace, or for tensor parallelism the "
                                  "model's batch"));
    options.push_back(pass_option(layer));
    append(options, software_options(layer));
    options.push_back({"--trace-rows",
                       to(layer.options.timeline.followed_rows, {0, kMostRows}),
                       "rows to follow in each layer, at most",
                       {.needs = "--trace"}});
    return options;
}

Options compare_options(Request& request) {
    Options options{{"--systems", to(request.systems),
                     "names or TOML files with commas between (moehub list systems); without it "
                     "all that can run this"}};
    append(options, shared_options(request));
    options.push_back(baseline_option(request.layer));
    append(options, sweep_axes_options(request.sweep, {.needs = "--sweep"}));
    options.push_back({"--threads", to(request.threads, kThreads),
                       "systems simulated at a time, same result; without it as many as cores"});
    options.push_back({"-o,--output", to_file(request.output),
                       "write to this file instead; with --sweep the database of the results"});
    return options;
}

Options run_options(Request& request) {
    Options options{{"--system", to(request.system),
                     "preset or TOML file (moehub list systems); without it moe-hub, of "
                     "--layer-type tp cais"}};
    append(options, shared_options(request));
    return options;
}

/// What was simulated, ready to be shown.
struct Simulated {
    std::vector<std::string> lead;
    Json facts;
    std::string rows;  ///< what a row is
    std::vector<NamedComparison> parts = {};
    Comparison whole = {};  ///< of several parts their sum
    std::vector<std::string> checks = {};
    std::string dataflow = {};  ///< of CAIS
    Configuration configuration = {};
};

bool is_recorded(const Asker& asker) {
    return asker.wants_page || asker.wants_trace;
}

Simulated simulate_moe(const Request& request, const Asker& asker) {
    LayerCase layer = load_layer(request.layer);
    layer.options.timeline.record = is_recorded(asker);
    ChosenSystems chosen = choose_systems(layer, request.systems, request.layer.settings);
    asker.loaded([&] { return inputs_of(layer) + inputs_of(chosen.systems); });
    const CompareOptions options{layer.options, request.layer.baseline, request.threads,
                                 asker.pieces("simulating")};
    Simulated made{lead_of(layer), facts_of(layer), "(token, expert) pairs"};
    made.parts = {{"", compare_checked(layer.input, chosen.systems, options)}};
    made.whole = made.parts.front().comparison;
    made.whole.left_out = std::move(chosen.left_out);
    made.checks = checks_of(made.whole);
    made.configuration =
        configuration_of(layer.input.machine, layer.input.model, specs_of(made.whole));
    return made;
}

/// "Dataflow optimizer: …" of CAIS.
std::string dataflow_of(const TpInput& input, const SystemSpec& system) {
    if (system.program != "cais") return "";
    const std::vector<layers::Operator> operators = layers::operators_of(input);
    return "Dataflow optimizer:\n" +
           layers::to_text(operators,
                           layers::optimise(operators, input.machine.gpu, system.fuse_blocks));
}

Simulated simulate_tp_parts(const Request& request, const Asker& asker) {
    TpCase layer = load_tp(request.layer);
    layer.options.timeline.record = is_recorded(asker);
    ChosenSystems chosen = choose_systems(layer, request.systems, request.layer.settings);
    asker.loaded([&] { return inputs_of(layer) + inputs_of(chosen.systems); });
    const TpCompareOptions options{layer.options, request.layer.baseline, request.threads,
                                   asker.pieces("simulating")};
    const TpInput input = layer.input(layer.parts.front());
    const auto parts = compare_tp_parts(input, layer.parts, chosen.systems, options);
    Simulated made{lead_of(layer), facts_of(layer), "tokens"};
    for (std::size_t i = 0; i < parts.size(); ++i)
        made.parts.push_back({std::string(name_of(layer.parts[i])), parts[i]});
    made.whole = parts.size() > 1 ? sum_of(parts) : parts.front();
    made.whole.left_out = std::move(chosen.left_out);
    made.checks = checks_of(layer, made.whole);
    made.dataflow = dataflow_of(input, chosen.systems.front());
    made.configuration = configuration_of(layer.machine, layer.model, chosen.systems);
    return made;
}

Simulated simulate(const Request& request, const Asker& asker) {
    const bool tp = request.type == LayerType::tp;
    asker.require_form(tp ? kDense : kExperts);
    return tp ? simulate_tp_parts(request, asker) : simulate_moe(request, asker);
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

std::vector<OutputFile> outputs_of(const Request& request) {
    return output_to("-o", request.output);
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
    return {.name = "compare",
            .python = "compare",
            .doc =
                "Simulate a MoE or tensor-parallel layer under several systems: time, "
                "speed-up, traffic",
            .overview = "a MoE or tensor-parallel layer under several systems, side by side",
            .example =
                "moehub compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens "
                "8192 \\\n      --systems ideal,megatron-te,moe-hub --routing normal:0.032\n"
                "  moehub compare --layer-type tp --sublayer all --systems "
                "ideal,tp-nvls,cais",
            .first = "systems",
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
            .ask = [] { return asked(compare_options, compare_answer, {}, outputs_of); }};
}

Question run_question() {
    return {.name = "run",
            .python = "run",
            .doc =
                "Simulate a MoE or tensor-parallel layer under one system, with what its units "
                "counted",
            .overview = "one of them, with what its hardware units counted",
            .example =
                "moehub run --system moe-hub --set moe_hub.rat_entries=16 --grain packet\n"
                "  moehub run --layer-type tp --system cais --sublayer L2",
            .first = "system",
            .form_words = {"a MoE layer", "--layer-type tp"},
            .forms = {.trace = true, .time_lines = true},
            .ask = [] { return asked(run_options, run_answer); }};
}

}  // namespace moehub
