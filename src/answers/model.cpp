// A whole model under several systems: forward, in training, or as an engine serves it.
#include "answers/layer_answer.hpp"
#include "answers/question.hpp"
#include "answers/served.hpp"
#include "report/number.hpp"
#include "sim/gpu/transformer.hpp"
#include "study/compare.hpp"

#include <moehub/compare.hpp>
#include <moehub/model_time.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr const char* kUsualModel = "mixtral-8x7b";
constexpr Range kSequence{1, 1 << 24};
const OptionRules kTimed = in_forms(kExperts | kDense);  ///< not of what an engine serves

struct Request {
    std::optional<std::vector<Wanted<SystemSpec>>> systems;
    std::optional<int> attention_gpus;
    Wanted<SystemSpec> attention_system;
    std::optional<int> sequence;
    bool training = false;
    bool graphs = false;
    bool overlap_gradients = false;
    LayerRequest layer;
    ServedRequest served;
    int threads = 0;
};

Options own_options(Request& request) {
    return {
        {"--systems", to(request.systems),
         "names or TOML files with commas between (moehub list systems); without it "
         "ideal,megatron-te,moe-hub, of a dense model ideal,tp-nvls,cais"},
        {"--attention-tp", to(request.attention_gpus, at_least(1)),
         "beside experts: groups of so many GPUs share attention by tensor parallelism; without "
         "it every GPU has its own",
         in_forms(kExperts | kServed)},
        {"--attention-system", to(request.attention_system),
         "by which they share it; without it tp-nvls", needs("--attention-tp", kExperts)},
        {"--sequence", to(request.sequence, kSequence),
         "tokens of a sequence; without it the model's. At most a GPU's tokens", kTimed},
        {"--training", to(request.training), "forward and backward", kTimed},
        {"--graphs", to(request.graphs), "CUDA graphs outside what is simulated, no eager host",
         kTimed},
        {"--overlap-gradients", to(request.overlap_gradients),
         "training: weights' gradients while a sub-layer's rows travel",
         needs("--training", kDense)},
    };
}

Options options_of(Request& request) {
    LayerRequest& layer = request.layer;
    Options machine = machine_options(layer, "dgx-h800, of dense models dgx-h100", "mixtral-8x7b");
    for (Option& option : machine)
        if (key_of(option) == "gpus") option.target = to(request.served.gpus, at_least(1));
    const std::string tokens = "8192, or all of a trace, or of dense models the model's batch";
    Option kernels{"--kernels", to_text(layer.kernels, "LIBRARY"),
                   "library of linear layers and prompts' attention: torch, trtllm; MoE layers run "
                   "torch's",
                   kTimed};
    Option threads{"--threads", to(request.threads, kThreads),
                   "systems simulated at a time, same result; without it as many as cores"};
    return joined({own_options(request),
                   served_options(request.served),
                   std::move(machine),
                   layer_options(layer),
                   token_options(layer, tokens),
                   {baseline_option(layer)},
                   software_options(layer),
                   {std::move(kernels), std::move(threads)}});
}

/// A model that was timed, of either kind.
struct Timed {
    LayerCase layer;  ///< layer of the model that was simulated
    ModelOptions options;
    std::vector<std::string> lead = lead_of(layer);
    Json facts = facts_of(layer);
    Sequences sequences = {};
    std::vector<ModelTime> times = {};
    std::vector<std::string> checks = {};
};

ModelOptions model_options(const Request& request, const Asker& asker) {
    ModelOptions options;
    options.training = request.training;
    options.baseline = request.layer.baseline;
    options.eager =
        request.layer.software.host.value_or(HostMode::eager) == HostMode::eager && !request.graphs;
    options.sequence = request.sequence.value_or(0);
    options.overlap_gradients = request.overlap_gradients;
    options.threads = request.threads;
    options.progress = asker.pieces("simulating");
    return options;
}

std::vector<Wanted<SystemSpec>> wanted_or(const Request& request,
                                          const std::vector<std::string>& usual,
                                          void (*check)(const std::vector<std::string>&)) {
    if (!request.systems) return wanted_systems(usual);
    check_wanted(*request.systems, check);
    return *request.systems;
}

std::string outside_words(const Timed& made, const char* what) {
    const Ps launch = made.layer.input.machine.gpu.overheads.eager_launch;
    return fmt::format(
        "{} layers, {}, sequences of {} token{}; outside {} {}", made.layer.input.model.layers,
        made.options.training ? "forward and backward" : "forward", grouped(made.sequences.length),
        made.sequences.length == 1 ? "" : "s", what,
        made.options.eager
            ? fmt::format("an eager host, one operator every {}", duration(to_seconds(launch)))
            : "CUDA graphs");
}

std::string attention_system(const Request& request) {
    return request.attention_system.name_or("tp-nvls");
}

/// Settings of attention's system, or those of all others.
Settings settings_for(const Request& request, bool attention) {
    Settings settings = request.layer.settings;
    const std::string prefix = attention_system(request) + ".";
    if (request.attention_gpus)
        std::erase_if(settings.others["system"],
                      [&](const std::string& one) { return one.starts_with(prefix) != attention; });
    return settings;
}

/// Loads the system by which attention is shared; the software asked for is that of MoE layers.
void add_attention(const Request& request, const Machine& machine, ModelOptions& options) {
    if (!request.attention_gpus) return;
    if (request.training)
        throw InputError(
            "--attention-tp: found with --training, allowed: without it, attention's gradients "
            "under tensor parallelism are not modelled");
    const int gpus = *request.attention_gpus, node = machine.gpus_per_node;
    count_of("--attention-tp", std::to_string(gpus), {1, node});
    if (node % gpus != 0)
        bad_input("--attention-tp: found {}, allowed: divisors of the {} GPUs of a node", gpus,
                  node);
    Wanted<SystemSpec> system = request.attention_system;
    system.name = attention_system(request);
    check_wanted({system}, check_tp_systems);
    options.attention_gpus = gpus;
    options.attention_system = load_systems({system}, settings_for(request, true), {}).front();
}

Timed time_moe(const Request& request, const Asker& asker) {
    const auto wanted = wanted_or(request, {"ideal", "megatron-te", "moe-hub"}, check_systems);
    Timed made{load_layer(request.layer, LayoutLayer::mean), model_options(request, asker)};
    made.layer.options.timeline.record = asker.wants_page;
    const LayerInput& input = made.layer.input;
    made.options.layer = made.layer.options;
    add_attention(request, input.machine, made.options);
    const std::int64_t share = (made.layer.tokens - 1) / input.machine.gpus() + 1;
    made.sequences = sequences_of(input.model, share * std::max(1, made.options.attention_gpus), 1,
                                  made.options.sequence);
    const std::vector<SystemSpec> systems =
        load_systems(wanted, settings_for(request, false), request.layer.software);
    for (const SystemSpec& system : systems)
        if (!(request.training && system.overlap_passes))
            check_layer(input, system, made.layer.options);
    asker.loaded([&] { return inputs_of(made.layer) + inputs_of(systems); });
    made.times = simulate_models(input, systems, made.options);
    made.lead.push_back(outside_words(made, "MoE layers"));
    Comparison layers;
    for (const ModelTime& time : made.times) layers.rows.push_back({time.spec, *time.moe, 1, {}});
    made.checks = checks_of(made.layer, layers);
    if (made.options.attention_gpus == 0) return made;
    const LayerResult& attention = made.times.front().sub_layers.front().result;
    made.lead.push_back(fmt::format("attention under tensor parallelism in groups of {}: {}",
                                    several(made.options.attention_gpus, "GPU"), attention.system));
    made.checks.push_back(fmt::format(
        "Attention: each GPU of a group read each of its {} rows once, and each came back as the "
        "sum of all their partial sums, each once.",
        grouped(attention.rows)));
    return made;
}

Timed time_dense(const Request& request, const Asker& asker) {
    const auto wanted = wanted_or(request, {"ideal", "tp-nvls", "cais"}, check_tp_systems);
    LayerCase layer = load_tp(request.layer);
    layer.parts = {SubLayer::l1, SubLayer::l2};
    if (request.training) layer.parts.insert(layer.parts.end(), {SubLayer::l3, SubLayer::l4});
    Timed made{std::move(layer), model_options(request, asker)};
    const DenseInput input{made.layer.input.machine, made.layer.input.model, made.layer.tokens};
    made.sequences = sequences_of(input.model, input.tokens, 1, request.sequence.value_or(0));
    made.options.layer.grain = made.layer.options.grain;
    made.options.layer.verify = made.layer.options.verify;
    const std::vector<SystemSpec> systems = load_systems(wanted, request.layer.settings, {});
    check_dense_models(input, systems, made.options);
    asker.loaded([&] { return inputs_of(made.layer) + inputs_of(systems); });
    made.times = simulate_dense_models(input, systems, made.options);
    made.lead.push_back(outside_words(made, "sub-layers") +
                        (request.training && request.overlap_gradients
                             ? "; weights' gradients while rows travel"
                             : ""));
    Comparison layers;
    for (const ModelTime& time : made.times) {
        LayerResult sum = time.sub_layers.front().result;
        for (const SubLayerResult& one : time.sub_layers)
            sum.largest_error = std::max(sum.largest_error, one.result.largest_error);
        layers.rows.push_back({time.spec, sum, 1, {}});
    }
    made.checks = checks_of(made.layer, layers);
    return made;
}

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

/// Where the time of the whole model went.
Breakdown breakdown_of(const ModelTime& time) {
    Breakdown sum;
    for (const LayerTypeTime& part : time.parts) {
        if (part.name == "host") {
            sum.host += part.total();
        } else if (part.beside > 0) {
            const OverlappedTime& pair = *time.overlapped;
            sum.compute += part.count * pair.busy;
            sum.host += part.count * pair.host;
            sum.communication += part.count * (pair.period - pair.busy - pair.host);
        } else {
            const Breakdown& one = part.simulated;
            sum.communication += part.count * one.communication;
            sum.host += part.count * one.host;
            sum.compute += part.total() - part.count * (one.communication + one.host);
        }
    }
    return sum;
}

/// Where the time of what was simulated went, all else aside.
Breakdown simulated_of(const ModelTime& time) {
    Breakdown sum;
    for (const LayerTypeTime& part : time.parts) {
        sum.compute += part.count * part.simulated.compute;
        sum.communication += part.count * part.simulated.communication;
        sum.host += part.count * part.simulated.host;
    }
    return sum;
}

Table results_table(const Timed& made) {
    using Time = ModelTime;
    const bool several = made.times.size() > 1;
    const Time& baseline = baseline_of(made.times, made.options.baseline);
    const auto ideal = std::find_if(made.times.begin(), made.times.end(),
                                    [](const Time& one) { return one.system == "ideal"; });
    const bool has_ideal = several && ideal != made.times.end();
    const auto of = [](Breakdown (*breakdown)(const Time&), Ps Breakdown::*member) {
        return [breakdown, member](const Time& time) { return to_us(breakdown(time).*member); };
    };
    const auto overlapped = [](Ps OverlappedTime::*member) {
        return [member](const Time& time) {
            return time.overlapped ? Json(to_us(*time.overlapped.*member)) : Json(nullptr);
        };
    };
    return table_of<Time>(
        "results", "",
        {{{"system", "system"}, &Time::system},
         {{"time ms", "time_us", scaled(fixed(2), 1e-3)},
          [](const Time& time) { return to_us(time.total); }},
         {{"vs " + baseline.system, "speedup", several ? kTimes : kHidden},
          [&](const Time& time) { return ratio(baseline.total, time.total); }},
         {{"of ideal", "share_of_ideal", has_ideal ? kPercent : kHidden},
          [&](const Time& time) {
              return has_ideal ? Json(ratio(ideal->total, time.total)) : Json(nullptr);
          }},
         {{"tokens/s", "tokens_per_second", kWhole}, &Time::tokens_per_second},
         {{"MFU", "mfu", kPercent}, &Time::mfu},
         {hidden("compute_us"), of(breakdown_of, &Breakdown::compute)},
         {hidden("communication_us"), of(breakdown_of, &Breakdown::communication)},
         {hidden("host_us"), of(breakdown_of, &Breakdown::host)},
         {hidden("simulated_us"),
          [](const Time& time) {
              const Breakdown sum = simulated_of(time);
              return to_us(sum.compute + sum.communication + sum.host);
          }},
         {hidden("simulated_compute_us"), of(simulated_of, &Breakdown::compute)},
         {hidden("simulated_communication_us"), of(simulated_of, &Breakdown::communication)},
         {hidden("simulated_host_us"), of(simulated_of, &Breakdown::host)},
         {hidden("overlapped.period_us"), overlapped(&OverlappedTime::period)},
         {hidden("overlapped.busy_us"), overlapped(&OverlappedTime::busy)},
         {hidden("overlapped.compute_us"), overlapped(&OverlappedTime::compute)},
         {hidden("overlapped.communication_us"), overlapped(&OverlappedTime::communication)},
         {hidden("overlapped.host_us"), overlapped(&OverlappedTime::host)}},
        made.times);
}

struct PartOf {
    const ModelTime& time;
    const LayerTypeTime& part;

    /// Waiting for the host is no layer: it has no count.
    bool is_layer() const { return part.name != "host"; }
    double share() const { return ratio(part.total(), time.total); }
};

Table parts_table(const Timed& made) {
    std::vector<PartOf> parts;
    for (const ModelTime& time : made.times)
        for (const LayerTypeTime& part : time.parts) parts.push_back({time, part});
    const bool training = made.options.training;
    const auto if_layer = [](const PartOf& one, Json value) {
        return one.is_layer() ? value : Json("");
    };
    return table_of<PartOf>(
        "parts", "",
        {{{"system", "system", kOnce}, [](const PartOf& one) { return one.time.system; }},
         {{"part", "name"}, [](const PartOf& one) { return one.part.name; }},
         {{"count", "", kWhole, 2},
          [&](const PartOf& one) { return if_layer(one, one.part.count); }},
         {hidden("count"), [](const PartOf& one) { return one.part.count; }},
         {{training ? "forward µs" : "µs each", "", kTenths, 1},
          [&](const PartOf& one) {
              return if_layer(one, to_us(one.part.forward + one.part.beside));
          }},
         {{"backward µs", "", training ? kTenths : kHidden, 1},
          [&](const PartOf& one) {
              return one.part.beside > 0 ? Json("beside it")
                                         : if_layer(one, to_us(one.part.backward));
          }},
         {hidden("forward_us"), [](const PartOf& one) { return to_us(one.part.forward); }},
         {hidden("backward_us"), [](const PartOf& one) { return to_us(one.part.backward); }},
         {hidden("beside_us"), [](const PartOf& one) { return to_us(one.part.beside); }},
         {{"ms in all", "total_us", scaled(fixed(2), 1e-3)},
          [](const PartOf& one) { return to_us(one.part.total()); }},
         {{"share", "", kPercent}, &PartOf::share},
         {{"", "", bar_of(32)}, &PartOf::share}},
        parts);
}

/// What lies under the period of a system that overlaps passes.
std::vector<Note> overlap_notes(const std::vector<ModelTime>& times) {
    std::vector<Note> notes;
    for (const ModelTime& time : times) {
        if (!time.overlapped) continue;
        const OverlappedTime& pair = *time.overlapped;
        notes.emplace_back(fmt::format(
            "{}: a layer forward beside one backward: {} µs of kernels on all SMs{}, {} µs of rows "
            "underway.",
            time.system, tenths(to_us(pair.compute)),
            pair.host > 0
                ? fmt::format(" and {} µs of waiting for the host", tenths(to_us(pair.host)))
                : "",
            tenths(to_us(pair.communication))));
    }
    return notes;
}

BarChart parts_chart(const std::vector<ModelTime>& times) {
    BarChart chart{"The whole model by its parts", "ms", {}, {}, true};
    for (const ModelTime& time : times) chart.categories.push_back(time.system);
    for (std::size_t i = 0; i < times.size(); ++i)
        for (const LayerTypeTime& part : times[i].parts) {
            auto& values = series_named(chart.series, part.name).values;
            values.resize(times.size(), 0.0);
            *values[i] += to_us(part.total()) / 1e3;
        }
    return chart;
}

/// The systems on one simulated layer of the model, or a sub-layer of it.
Comparison comparison_of(const Timed& made, const std::string& baseline,
                         const std::function<const LayerResult&(const ModelTime&)>& result) {
    std::vector<SystemSpec> systems;
    std::vector<LayerResult> results;
    for (const ModelTime& time : made.times) {
        systems.push_back(time.spec);
        results.push_back(result(time));
    }
    return tp_rows(systems, results, baseline);
}

/// What pages show of one simulated layer.
void add_page(Answer& answer, const NamedComparison& layer, Table table, const Asker& asker) {
    Section section = systems_section("One " + layer.name, std::move(table), layer.comparison);
    for (Block& block : section.blocks) block.reader = Reader::page;
    answer.sections.push_back(std::move(section));
    if (!asker.wants_page) return;
    answer.sections.push_back(traffic_section(layer));
    answer.sections.push_back(timeline_section(layer));
}

void add_moe_layer(Answer& answer, const Timed& made, const std::string& key,
                   const std::string& words, std::optional<LayerResult> ModelTime::*result,
                   const Asker& asker) {
    const std::string baseline = baseline_of(made.times, made.options.baseline).system;
    const NamedComparison layer{
        words, comparison_of(made, baseline, [result](const ModelTime& time) -> const LayerResult& {
            return *(time.*result);
        })};
    add_page(answer, layer, results_table(key, layer.comparison, {{"", layer.comparison}}), asker);
    answer.sections.push_back(
        units_section(key + "_statistics", {{"", layer.comparison}}, "", Reader::program));
}

/// Sub-layers of a dense model, each with a comparison of its own.
void add_sub_layers(Answer& answer, const Timed& made, const Asker& asker) {
    std::vector<NamedComparison> parts;
    for (std::size_t i = 0; i < made.times.front().sub_layers.size(); ++i)
        parts.push_back({std::string(name_of(made.times.front().sub_layers[i].part)),
                         comparison_of(made, "", [i](const ModelTime& time) -> const LayerResult& {
                             return time.sub_layers[i].result;
                         })});
    answer.sections.push_back({"", {}, {{sub_layers_table("sub_layers", parts), Reader::program}}});
    answer.sections.push_back(units_section("statistics", parts, "", Reader::program));
    for (const NamedComparison& part : parts)
        add_page(answer, {"Sub-layer " + part.name, part.comparison},
                 results_table("", part.comparison, {part}), asker);
}

/// Attention's halves, the same for all systems.
void add_attention_table(Answer& answer, const Timed& made) {
    if (made.options.attention_gpus == 0) return;
    const ModelTime& any = made.times.front();
    answer.facts["attention_tp"] = {{"gpus", made.options.attention_gpus},
                                    {"system", any.sub_layers.front().result.system}};
    std::vector<NamedComparison> parts;
    for (const SubLayerResult& one : any.sub_layers)
        parts.push_back({std::string(name_of(one.part)),
                         tp_rows({*made.options.attention_system}, {one.result})});
    answer.sections.push_back(
        {"", {}, {{sub_layers_table("attention_sub_layers", parts), Reader::program}}});
    answer.sections.push_back(units_section("attention_statistics", parts, "", Reader::program));
}

Answer answer_with(Timed made, const Asker& asker) {
    const bool training = made.options.training;
    const ModelTime& baseline = baseline_of(made.times, made.options.baseline);
    Answer answer{
        .title = fmt::format("{} on {}, {}", made.layer.model_name, made.layer.machine_name,
                             training ? "forward and backward" : "forward"),
        .lead = made.lead,
        .facts = made.facts};
    answer.facts["sequence"] = made.sequences.length;
    answer.facts["layers"] = made.layer.input.model.layers;
    answer.facts["training"] = training;
    answer.facts["eager"] = made.options.eager;
    answer.facts["overlap_gradients"] = made.options.overlap_gradients;
    answer.facts["model_flops"] = baseline.flops;
    answer.facts["baseline"] = baseline.system;
    const Table results = results_table(made);
    Section whole = systems_section("The whole model", results, {});
    whole.blocks.insert(whole.blocks.begin() + 1, parts_table(made));
    whole.blocks.push_back({parts_chart(made.times), Reader::page});
    if (made.times.size() > 1)
        whole.blocks.push_back(
            system_bars(results, "Tokens per second", "tokens_per_second", "tokens/s"));
    whole.notes = overlap_notes(made.times);
    for (std::string& one : made.checks) whole.notes.push_back(std::move(one));
    answer.sections.push_back(std::move(whole));
    if (made.times.front().moe)
        add_moe_layer(answer, made, "moe_layer", "MoE layer, forward", &ModelTime::moe, asker);
    else
        add_sub_layers(answer, made, asker);
    if (made.times.front().moe && training)
        add_moe_layer(answer, made, "moe_layer_backward", "MoE layer, backward",
                      &ModelTime::moe_backward, asker);
    add_attention_table(answer, made);
    std::vector<SystemSpec> systems;
    for (const ModelTime& time : made.times) systems.push_back(time.spec);
    answer.configuration =
        configuration_of(made.layer.input.machine, made.layer.input.model, systems);
    return answer;
}

Answer answer_of(const Request& asked, const Asker& asker) {
    Request request = asked;
    if (request.served.asked()) {
        asker.require_form(request.served.decode ? kDecode : kPrefill);
        return served_answer({request.layer, request.served, request.systems,
                              request.attention_gpus, request.threads},
                             asker);
    }
    if (request.served.gpus.size() > 1)
        throw InputError("--gpus: found several, allowed: with --decode or --prefill");
    if (!request.served.gpus.empty())
        request.layer.gpus = static_cast<int>(request.served.gpus.front());
    const bool dense = is_dense(request.layer, kUsualModel);
    asker.require_form(dense ? kDense : kExperts);
    return answer_with(dense ? time_dense(request, asker) : time_moe(request, asker), asker);
}

/// Systems of a study of either kind of model; which it is, each point says.
void check_any_systems(const std::vector<std::string>& systems) {
    try {
        check_systems(systems);
    } catch (const InputError&) {
        check_tp_systems(systems);
    }
}

}  // namespace

Question model_question() {
    return {
        .first = "systems",
        .form_words = {"a model with experts", "a dense model", "--decode", "--prefill"},
        .forms = {.time_lines = true},
        .sweeps =
            {{.name = "model",
              .systems = "systems",
              .usual_systems = {"ideal", "megatron-te", "moe-hub"},
              .dense_systems = {"ideal", "tp-nvls", "cais"},
              .check = check_any_systems,
              .measures = {{"time_us"},
                           {"simulated_us"},
                           {"simulated_compute_us"},
                           {"simulated_communication_us"},
                           {"simulated_host_us"},
                           {"tokens_per_second"},
                           {"mfu"}}},
             {.name = "decode",
              .said = {{"decode", "true"}},
              .systems = "systems",
              .usual_systems = {"deepep-ll", "moe-hub"},
              .measures = {{"tpot_us"}, {"step_us"}, {"tokens_per_second_per_gpu"}, {"hidden_us"}}},
             {.name = "prefill",
              .said = {{"prefill", "true"}},
              .systems = "systems",
              .usual_systems = {"deepep", "moe-hub"},
              .measures = {{"step_us"}, {"tokens_per_second_per_gpu"}, {"hidden_us"}}}},
        .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
