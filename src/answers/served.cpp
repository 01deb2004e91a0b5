#include "answers/served.hpp"

#include "answers/layer_answer.hpp"
#include "report/number.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr const char* kServedMachine = "dgx-h200";
constexpr const char* kServedModel = "deepseek-v3";
constexpr const char* kEngine = "engine";  ///< among systems: its own MoE layers
constexpr std::int64_t kMostContext = 1 << 24;
constexpr std::int64_t kMostBatch = 1 << 20;

std::string machine_name(const LayerRequest& layer) {
    return layer.machine.name_or(kServedMachine);
}

NumberFormat weights_of(const ServedQuestion& question, const Machine& machine) {
    return question.served.weights.value_or(machine.gpu.fp8_flops > 0 ? NumberFormat::fp8
                                                                      : NumberFormat::bf16);
}

/// Tokens that a step gives each request: one, and the guesses that were right.
void set_tokens_per_step(Serving& serving, double tokens) {
    const Model& model = serving.what.model;
    if (model.mtp_layers == 0)
        bad_input("--mtp: found with {}, which has no layer for it", moehub::quoted(model.name));
    if (tokens < 1) bad_input("--mtp: found {}, allowed: tokens a step, 1 to 9", tokens);
    serving.accepted = tokens - 1;
    serving.drafts = static_cast<int>(std::ceil(serving.accepted));
}

/// Recorded tokens and a layout's experts, of the layer that stands for all.
void use_recorded(Serving& serving, LayerRequest layer, int copies) {
    const bool recorded = layer.routing && layer.routing->is_recorded();
    if (!recorded && !layer.layout.said()) return;
    layer.machine.name = layer.machine.name_or(kServedMachine);
    layer.model.name = layer.model.name_or(kServedModel);
    if (!layer.layout.said()) layer.replicas.reset();
    const LayerCase made = load_layer(layer, LayoutLayer::mean);
    if (recorded) serving.recorded = made.input.routing;
    const int ranks = serving.what.layout.moe_ep;
    if (layer.layout.said())
        serving.placement = made.input.placement;
    else if (copies > 0 || serving.what.model.experts % ranks != 0)
        serving.placement = eplb_placement(made.input.routing, ranks, copies);
}

ServingSetup setup_of(const ServedQuestion& question, const LayerRequest& layer,
                      const Machine& machine, const Model& model) {
    const int gpus = machine.gpus();
    const auto group = [&](std::string_view option, int size) {
        const auto count = static_cast<int>(count_of(option, std::to_string(size), {1, gpus}));
        if (gpus % count == 0) return count;
        bad_input("{}: found {}, allowed: divisors of the {} GPUs", option, count, gpus);
    };
    ServingSetup setup;
    setup.weights = weights_of(question, machine);
    setup.attention_tp = group("--attention-tp", question.attention_gpus.value_or(1));
    if (model.experts == 0 && !question.attention_gpus)
        setup.attention_tp = std::min(gpus, machine.gpus_per_node);
    setup.expert_tp = group("--tp", layer.tensor_parallel);
    const std::int64_t most = std::max(1, model.experts) * (std::int64_t{gpus} - 1);
    setup.copies = static_cast<int>(
        count_of("--replicas", std::to_string(layer.replicas.value_or(0)), {0, most}));
    if (layer.routing) setup.routing = layer.routing->drawn;
    if (layer.seed) setup.routing.seed = *layer.seed;
    return setup;
}

Serving load_serving(const ServedQuestion& question, const LayerRequest& layer) {
    const ServedRequest& asked = question.served;
    const Machine machine = sized_machine(layer, kServedMachine);
    const Model model = model_of(layer.model, layer.settings, kServedModel);
    const ServingSetup setup = setup_of(question, layer, machine, model);
    Serving serving = serving_on(machine, model, load_engine(asked.engine), setup);
    use_recorded(serving, layer, setup.copies);
    if (asked.cache) serving.what.formats.cache = *asked.cache;
    serving.prefill = asked.prefill;
    const auto& tokens = asked.prefill ? asked.prompt : asked.context;
    if (!tokens)
        bad_input("{}: found nothing, allowed: tokens", asked.prefill ? "--prompt" : "--context");
    serving.context = *tokens;
    serving.overlap = asked.overlap;
    if (asked.tokens_per_step) set_tokens_per_step(serving, *asked.tokens_per_step);
    serving.layer.grain = layer.options.grain;
    return serving;
}

/// One for each number of GPUs.
std::vector<Serving> load_servings(const ServedQuestion& question) {
    LayerRequest layer = question.layer;
    if (question.served.gpus.empty()) return {load_serving(question, layer)};
    std::vector<Serving> servings;
    for (const std::int64_t gpus : question.served.gpus) {
        layer.gpus = static_cast<int>(gpus);
        servings.push_back(load_serving(question, layer));
    }
    return servings;
}

/// Systems simulate MoE layers whose tokens cross between GPUs; all else is the engine's own.
bool has_systems(const Serving& serving) {
    return serving.what.model.moe_layers() > 0 && serving.gpus() > 1;
}

/// What today's engines call for such steps.
std::string todays_system(const Serving& serving) {
    return serving.prefill ? "deepep" : "deepep-ll";
}

std::vector<std::string> usual_systems(const Serving& serving) {
    if (!has_systems(serving)) return {kEngine};
    std::vector<std::string> names{todays_system(serving), "moe-hub"};
    if (serving.what.machine.nodes == 1) names.insert(names.begin(), kEngine);
    return names;
}

/// A table of sizes is of one system: the one that was named, else what servers run today, which
/// works on one node and on several.
Wanted<SystemSpec> system_of_sizes(const ServedQuestion& question, const Serving& serving) {
    if (!question.systems) return {has_systems(serving) ? todays_system(serving) : kEngine};
    if (question.systems->size() == 1) return question.systems->front();
    throw InputError("--systems: found several, allowed of a table: one");
}

bool is_engine(const Wanted<SystemSpec>& system) {
    return system.given == nullptr && system.name == kEngine;
}

SystemSpec load(const ServedQuestion& question, const Wanted<SystemSpec>& system) {
    return load_systems({system}, question.layer.settings, {}).front();
}

/// A step under each system. Those that were named must run; of the usual ones those that cannot
/// are left out.
struct Steps {
    std::vector<ServedStep> steps;
    std::vector<LeftOut> left_out;
    std::vector<SystemSpec> systems;
};

/// Everything that the numbers of a step under these systems depend on.
std::string inputs_of(const ServedQuestion& question, const Serving& serving,
                      const std::vector<Wanted<SystemSpec>>& systems) {
    const ServingCase& what = serving.what;
    std::string inputs = to_toml(what.machine) + to_toml(what.model) + to_toml(what.engine) +
                         inputs_of(serving.placement);
    if (serving.recorded) inputs += inputs_of(*serving.recorded);
    for (const auto& one : systems)
        if (!is_engine(one)) inputs += to_toml(load(question, one));
    return inputs;
}

Steps simulate(const ServedQuestion& question, const Serving& serving, const Asker& asker) {
    const auto wanted = question.systems.value_or(wanted_systems(usual_systems(serving)));
    asker.loaded([&] { return inputs_of(question, serving, wanted); });
    ServeOptions options{question.threads, ServingClock(serving.what).costs(), {}};
    check(serving);
    const auto progress = asker.pieces("simulating");
    Steps made;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        progress(i, wanted.size());
        try {
            if (is_engine(wanted[i])) {
                made.steps.push_back(serve_by_engine(serving, options));
                continue;
            }
            made.systems.push_back(load(question, wanted[i]));
            made.steps.push_back(serve(serving, {made.systems.back()}, options).front());
        } catch (const InputError& error) {
            if (question.systems && wanted.size() == 1) throw;
            made.left_out.push_back({wanted[i].name_or(""), error.what()});
        }
    }
    if (made.steps.empty()) throw InputError(made.left_out.front().reason);
    return made;
}

std::string_view what_is_served(const Serving& serving) {
    return serving.prefill ? "prompts" : "requests";
}

/// A card may lack the format that was asked for.
std::string weights_words(const ServedQuestion& question, const Serving& serving) {
    const NumberFormat weights = weights_of(question, serving.what.machine);
    const bool falls_back =
        serving.what.formats.experts == NumberFormat::w4a16 && weights == NumberFormat::nvfp4;
    return falls_back ? "nvfp4, as w4a16: the card multiplies no nvfp4"
                      : std::string(name_of(weights));
}

std::string layout_words(const Serving& serving) {
    const ServingLayout& layout = serving.what.layout;
    std::string text = layout.gpus() == 1 ? std::string("all on one GPU")
                       : layout.attention_dp == 1
                           ? fmt::format("attention on all {} GPUs", layout.attention_tp)
                       : layout.attention_tp == 1
                           ? std::string("attention data parallel")
                           : fmt::format("attention in groups of {} GPUs", layout.attention_tp);
    if (serving.what.model.moe_layers() == 0) return text;
    std::size_t slots = 0;
    for (const std::vector<int>& hosts : serving.placement.hosts) slots += hosts.size();
    text += fmt::format("; experts over {} GPUs", layout.moe_ep);
    if (layout.moe_tp > 1) text += fmt::format(", {} share each", layout.moe_tp);
    const auto copies = static_cast<std::int64_t>(slots) - serving.what.model.experts;
    if (copies > 0) text += fmt::format(", {} slots with {} copies", slots, copies);
    if (serving.overlap != BatchOverlap::none)
        text += fmt::format("; {} overlap", name_of(serving.overlap));
    return text;
}

/// A file's name, or what was drawn.
std::string routing_words(const LayerRequest& layer) {
    if (!layer.routing) return "uniform";
    if (layer.routing->given != nullptr) return layer.routing->given->name;
    return layer.routing->file.empty() ? to_string(layer.routing->drawn) : layer.routing->file;
}

std::string title_of(const ServedQuestion& question, const Serving& serving) {
    return fmt::format("{} {} on {}", serving.what.model.name,
                       serving.prefill ? "reading prompts" : "decoding",
                       machine_name(question.layer));
}

std::vector<std::string> lead_of(const ServedQuestion& question, const Serving& serving) {
    const Machine& machine = serving.what.machine;
    std::vector<std::string> lead{
        fmt::format("{}: {} GPU{}{}, by {}, weights {}", title_of(question, serving),
                    serving.gpus(), serving.gpus() > 1 ? "s" : "",
                    machine.nodes > 1 ? fmt::format(" in {} nodes", machine.nodes) : "",
                    serving.what.engine.name, weights_words(question, serving))};
    if (serving.batch_per_gpu > 0)
        lead.push_back(fmt::format("{} {} a GPU of {} tokens", grouped(serving.batch_per_gpu),
                                   what_is_served(serving), grouped(serving.context)));
    lead.push_back(layout_words(serving));
    if (serving.what.model.moe_layers() > 0)
        lead.push_back(fmt::format("{} routing{}", routing_words(question.layer),
                                   question.layer.layout.said()
                                       ? ", experts as in " + question.layer.layout.name_or("")
                                       : ""));
    const ServingMemory memory = memory_of(serving);
    lead.push_back(fmt::format(
        "memory a GPU: weights {}, {} for the cache, {} a token: room for {} {}",
        byte_size(memory.weights), byte_size(memory.cache), byte_size(memory.cache_per_token),
        grouped(most_batch_per_gpu(serving)), what_is_served(serving)));
    const auto settings = settings_of(question.layer);
    if (!settings.empty()) lead.push_back(fmt::format("with {}", fmt::join(settings, ", ")));
    return lead;
}

Json facts_of(const ServedQuestion& question, const Serving& serving) {
    const ServingMemory memory = memory_of(serving);
    const ServingLayout& layout = serving.what.layout;
    const auto& file = question.layer.layout;
    return {{"machine", machine_name(question.layer)},
            {"model", serving.what.model.name},
            {"engine", serving.what.engine.name},
            {"phase", serving.prefill ? "prefill" : "decode"},
            {"gpus", serving.gpus()},
            {"batch_per_gpu", serving.batch_per_gpu},
            {serving.prefill ? "prompt" : "context", serving.context},
            {"weights", name_of(weights_of(question, serving.what.machine))},
            {"overlap", name_of(serving.overlap)},
            {"routing", routing_words(question.layer)},
            {"layout_file", value_if(file.said(), file.name_or(""))},
            {"layout",
             {{"attention_tp", layout.attention_tp},
              {"attention_dp", layout.attention_dp},
              {"moe_tp", layout.moe_tp},
              {"moe_ep", layout.moe_ep}}},
            {"memory_bytes",
             {{"weights", memory.weights},
              {"cache_per_token", memory.cache_per_token},
              {"cache", memory.cache},
              {"capacity", memory.capacity}}},
            {"most_batch_per_gpu", most_batch_per_gpu(serving)},
            {"set", settings_of(question.layer)}};
}

/// The largest part, and the busiest link where rows bound the layer.
std::string limit_of(const ServedStep& step) {
    constexpr double kBusy = 0.5;
    const std::vector<ServedPart> parts = parts_of(step);
    const auto most = std::max_element(
        parts.begin(), parts.end(),
        [](const ServedPart& a, const ServedPart& b) { return a.seconds < b.seconds; });
    std::string text = fmt::format("{} {:.0f} %", most->name, 100 * most->seconds / step.seconds);
    if (step.network_busy > kBusy)
        text += fmt::format(" ({} busy {:.0f} %)", step.busiest_link, 100 * step.network_busy);
    return text;
}

constexpr Show kMilliseconds = scaled(fixed(3), 1e-3);  ///< shows µs as ms

Table steps_table(const Serving& serving, const std::vector<ServedStep>& steps) {
    using Step = ServedStep;
    const bool prefill = serving.prefill;
    const bool nodes = serving.what.machine.nodes > 1;
    const double per_node = serving.what.machine.gpus_per_node;
    const bool hides =
        std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.hidden > 0; });
    return table_of<Step>(
        "results", "",
        {{{"system", "system"}, &Step::system},
         {{"tokens/s a GPU", "tokens_per_second_per_gpu", kTenths}, &Step::tokens_per_second},
         {{"a node", "tokens_per_second_per_node", nodes ? kTenths : kHidden, 3},
          [per_node](const Step& step) { return step.tokens_per_second * per_node; }},
         {{"ms a token", "tpot_us", prefill ? kHidden : scaled(fixed(2), 1e-3)},
          [](const Step& step) { return value_if(step.tpot > 0, 1e6 * step.tpot); }},
         {{"step ms", "step_us", prefill ? scaled(fixed(2), 1e-3) : kMilliseconds, 2},
          [](const Step& step) { return 1e6 * step.seconds; }},
         {{"hidden by overlap ms", "hidden_us", hides ? kMilliseconds : kHidden, 4},
          [](const Step& step) { return 1e6 * step.hidden; }},
         {hidden("busiest_link.name"), [](const Step& step) { return or_null(step.busiest_link); }},
         {hidden("busiest_link.busy"),
          [](const Step& step) { return value_if(!step.busiest_link.empty(), step.network_busy); }},
         {{"largest part", "", kProse}, limit_of}},
        steps);
}

/// One of the parts or operators of a system's step.
template <class One>
struct OfSystem {
    std::string system;
    One one;
};

/// Parts in the order of a layer, whichever system has them.
Table parts_table(const std::vector<ServedStep>& steps) {
    using Part = OfSystem<ServedPart>;
    std::vector<Part> parts;
    for (const std::string_view name : served_part_names())
        for (const ServedStep& step : steps)
            if (const double seconds = part_seconds(step, name); seconds > 0)
                parts.push_back({step.system, {std::string(name), seconds}});
    return table_of<Part>(
        "parts", "",
        {{{"ms of a step", "name"}, [](const Part& part) { return part.one.name; }},
         {{"system", "system"}, &Part::system},
         {{"ms", "time_us", kMilliseconds},
          [](const Part& part) { return 1e6 * part.one.seconds; }}},
        parts);
}

Table operators_table(const std::vector<ServedStep>& steps) {
    using Operator = OfSystem<StepOperator>;
    std::vector<Operator> operators;
    for (const ServedStep& step : steps)
        for (const StepOperator& one : step.operators) operators.push_back({step.system, one});
    const auto of = [](auto StepOperator::*member) {
        return [member](const Operator& row) { return row.one.*member; };
    };
    return table_of<Operator>(
        "operators", "",
        {{{"system", "system", kOnce}, &Operator::system},
         {{"operator", "name"}, of(&StepOperator::name)},
         {{"kind", "kind"}, [](const Operator& row) { return name_of(row.one.kind); }},
         {{"count", "count", kSignificant}, of(&StepOperator::count)},
         {{"ms each", "time_us", kMilliseconds},
          [](const Operator& row) { return 1e6 * row.one.seconds; }}},
        operators);
}

BarChart parts_chart(const std::vector<ServedStep>& steps) {
    BarChart chart{"Where a step's time goes", "ms", {}, {}, true};
    for (const ServedStep& step : steps) chart.categories.push_back(step.system);
    for (const std::string_view name : served_part_names()) {
        ChartSeries series{std::string(name), {}};
        for (const ServedStep& step : steps)
            series.values.emplace_back(1e3 * part_seconds(step, name));
        chart.series.push_back(std::move(series));
    }
    return chart;
}

void add_inputs(Answer& answer, const Serving& serving, const std::vector<SystemSpec>& systems) {
    add_configuration(answer.configuration, "Machine", serving.what.machine);
    add_configuration(answer.configuration, "Model", serving.what.model);
    add_configuration(answer.configuration, "Engine", serving.what.engine);
    for (const SystemSpec& system : systems)
        add_configuration(answer.configuration, "System", system);
}

Answer step_answer(const ServedQuestion& question, const Serving& serving, const Asker& asker) {
    const Steps made = simulate(question, serving, asker);
    const Table steps = steps_table(serving, made.steps);
    const Table parts = parts_table(made.steps);
    Answer answer{.title = title_of(question, serving),
                  .lead = lead_of(question, serving),
                  .facts = facts_of(question, serving)};
    answer.main = "results";
    answer.sections = {
        {"A step",
         {},
         {pivoted(parts, 1, 1, 2),
          {parts, Reader::program},
          parts_chart(made.steps),
          system_bars(steps, "Tokens per second and GPU", "tokens_per_second_per_gpu", "tokens/s"),
          steps},
         {{"Parts that overlap are shown in full: their sum may exceed the step.", Reader::page}}},
        {"Operators", {}, {{operators_table(made.steps), Reader::page}}}};
    answer.sections.front().blocks.push_back({left_out_table(made.left_out), Reader::program});
    for (std::string& one : left_out_sentences(made.left_out))
        answer.sections.front().notes.push_back(std::move(one));
    add_inputs(answer, serving, made.systems);
    return answer;
}

double latency_of(const ServedPoint& point, bool prefill) {
    return prefill ? point.step->seconds : point.step->tpot;
}

Table sizes_table(const std::vector<ServedPoint>& points, bool prefill) {
    using Point = ServedPoint;
    const auto of_step = [](double ServedStep::*member, double scale) {
        return [member, scale](const Point& point) {
            return point.step ? Json(scale * (*point.step.*member)) : Json(nullptr);
        };
    };
    return table_of<Point>(
        "points", "",
        {{{"GPUs", "gpus", kWhole}, &Point::gpus},
         {{prefill ? "prompts a GPU" : "requests a GPU", "batch_per_gpu", kWhole},
          &Point::batch_per_gpu},
         {{"step ms", "step_us", prefill ? scaled(fixed(2), 1e-3) : kHidden},
          of_step(&ServedStep::seconds, 1e6)},
         {{"ms a token", "tpot_us", prefill ? kHidden : scaled(fixed(2), 1e-3)},
          of_step(&ServedStep::tpot, 1e6)},
         {{"tokens/s a GPU", "tokens_per_second_per_gpu", kTenths},
          of_step(&ServedStep::tokens_per_second, 1)},
         {hidden("hidden_us"), of_step(&ServedStep::hidden, 1e6)},
         {hidden("busiest_link.name"),
          [](const Point& point) {
              return point.step ? or_null(point.step->busiest_link) : Json(nullptr);
          }},
         {hidden("busiest_link.busy"), of_step(&ServedStep::network_busy, 1)},
         {hidden("best"), &Point::best},
         {hidden("reason"),
          [](const Point& point) { return value_if(!point.step, point.why_not); }},
         {{"", "", kProse},
          [](const Point& point) {
              return !point.step ? point.why_not : point.best ? "best" : "";
          }}},
        points);
}

/// Tokens a GPU over time a token, a line for each number of GPUs.
LineChart sizes_chart(const std::vector<ServedPoint>& points, bool prefill) {
    LineChart chart{"Throughput against latency",
                    {prefill ? "step, ms" : "time a token, ms", false, false},
                    {"tokens/s a GPU"},
                    {}};
    for (const ServedPoint& point : points) {
        if (!point.step) continue;
        const std::string name = fmt::format("{} GPUs", point.gpus);
        series_named(chart.series, name)
            .points.push_back(
                {1e3 * latency_of(point, prefill), point.step->tokens_per_second,
                 fmt::format("{}, {} {} a GPU{}", name, grouped(point.batch_per_gpu),
                             prefill ? "prompts" : "requests", point.best ? ", best" : ""),
                 grouped(point.batch_per_gpu)});
    }
    return chart;
}

std::vector<ServedPoint> find_batches(const std::vector<Serving>& servings,
                                      const std::optional<SystemSpec>& system,
                                      const ServedQuestion& question, const Asker& asker) {
    const double limit = to_seconds(*question.served.tpot);
    const auto progress = asker.pieces("simulating");
    std::vector<ServedPoint> points;
    for (const Serving& serving : servings) {
        points.push_back(find_batch(serving, system, limit, {question.threads, nullptr, {}}));
        progress(points.size(), servings.size());
    }
    if (std::any_of(points.begin(), points.end(), [](const auto& one) { return one.step; }))
        return points;
    bad_input("--find: no batch keeps --tpot {}: {}", print_time(*question.served.tpot),
              points.front().why_not);
}

Answer sizes_answer(const ServedQuestion& question, const std::vector<Serving>& servings,
                    const Asker& asker) {
    const Serving& first = servings.front();
    const bool prefill = first.prefill;
    const Wanted<SystemSpec> wanted = system_of_sizes(question, first);
    std::optional<SystemSpec> system;
    if (!is_engine(wanted)) system = load(question, wanted);
    asker.loaded([&] {
        std::string inputs;
        for (const Serving& one : servings) inputs += inputs_of(question, one, {wanted});
        return inputs;
    });
    const std::string name = system ? wanted.name_or("") : first.what.engine.name;
    const auto points = question.served.find
                            ? find_batches(servings, system, question, asker)
                            : serve_sizes(servings, question.served.batches, system,
                                          {question.threads, nullptr, asker.pieces("simulating")});
    std::vector<ServedStep> steps;
    for (const ServedPoint& point : points)
        if (point.step) {
            steps.push_back(*point.step);
            steps.back().system = fmt::format("{}/{}", point.gpus, point.batch_per_gpu);
        }
    Answer answer{.title = title_of(question, first), .facts = facts_of(question, first)};
    answer.facts["system"] = name;
    answer.lead = {
        fmt::format("{}, by {}, weights {}, {} tokens a {}, overlap {}", title_of(question, first),
                    first.what.engine.name, weights_words(question, first), grouped(first.context),
                    prefill ? "prompt" : "request", name_of(first.overlap)),
        name};
    Table operators = operators_table(steps);
    operators.columns.front().key = "point";
    Table parts = parts_table(steps);
    parts.columns[1].key = "point";
    answer.sections = {
        {"Sizes",
         {},
         {sizes_chart(points, prefill),
          sizes_table(points, prefill),
          {std::move(parts), Reader::program},
          {std::move(operators), Reader::program}},
         {"best: no other gives as many tokens/s a GPU in as little time.",
          {fmt::format("Beside each point: {} of a GPU.", prefill ? "prompts" : "requests"),
           Reader::page}}}};
    add_inputs(answer, first, system ? std::vector{*system} : std::vector<SystemSpec>{});
    return answer;
}

}  // namespace

Options served_options(ServedRequest& request) {
    const auto weights = named({NumberFormat::bf16, NumberFormat::fp8, NumberFormat::fp8_block,
                                NumberFormat::nvfp4, NumberFormat::w4a16});
    const OptionRules served = in_forms(kServed);
    return {
        {"--decode", to(request.decode),
         "serve: a step of decoding; needs --context and --batch-per-gpu; without "
         "--machine and --model dgx-h200 and deepseek-v3",
         excludes({"--prefill"})},
        {"--prefill", to(request.prefill),
         "serve: a step that reads prompts; needs --prompt and --batch-per-gpu"},
        {"--context", to(request.context, {1, kMostContext}),
         "tokens that each request has in the cache", in_forms(kDecode)},
        {"--prompt", to(request.prompt, {1, kMostContext}), "tokens of a prompt",
         in_forms(kPrefill)},
        {"--batch-per-gpu", to(request.batches, {1, kMostBatch}),
         "requests, or prompts, of a GPU at a time; several with commas, and several --gpus, make "
         "a table",
         excludes({"--find"}, kServed)},
        {"--engine", to_text(request.engine, "", ValueKind::engine),
         "preset or TOML file (moehub list engines)", served},
        {"--weights", to(request.weights, weights), "without it fp8 where the card has it", served},
        {"--cache", to(request.cache, named({NumberFormat::bf16, NumberFormat::fp8})),
         "of keys and values; without it as checkpoints of those weights", served},
        {"--overlap",
         to(request.overlap,
            named({BatchOverlap::none, BatchOverlap::single_batch, BatchOverlap::two_batch})),
         "what runs while rows travel", served},
        {"--mtp", to(request.tokens_per_step, 9, "tokens a step, 1 to 9"),
         "tokens that a step gives a request by multi-token prediction, as 1.8; without it 1",
         in_forms(kDecode)},
        {"--find", to(request.find, Named<bool>{{"batch", true}}),
         "batch: the largest that keeps --tpot and fits in memory", needs("--tpot", kServed)},
        {"--tpot", to_time(request.tpot),
         "longest time per token, or of a step of prompts, as 50ms", needs("--find", kServed)},
    };
}

Answer served_answer(const ServedQuestion& question, const Asker& asker) {
    const ServedRequest& asked = question.served;
    asker.require_one_point("--gpus", asked.gpus.size());
    asker.require_one_point("--batch-per-gpu", asked.batches.size());
    if (question.systems) {
        std::vector<Wanted<SystemSpec>> simulated = *question.systems;
        std::erase_if(simulated, is_engine);
        if (!simulated.empty()) check_wanted(simulated, check_systems);
    }
    std::vector<Serving> servings = load_servings(question);
    if (asked.batches.empty() && !asked.find)
        throw InputError("--batch-per-gpu: found nothing, allowed: requests of a GPU, or --find");
    if (asked.find || servings.size() > 1 || asked.batches.size() > 1)
        return sizes_answer(question, servings, asker);
    servings.front().batch_per_gpu = asked.batches.front();
    return step_answer(question, servings.front(), asker);
}

}  // namespace moehub
