// A training run: the fastest parallel layouts, one in full, the fastest shapes of its model, or
// how published runs are ordered.
#include "answers/plan_answers.hpp"
#include "answers/question.hpp"
#include "report/number.hpp"

#include <moehub/compare.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Forms of the question, a bit each.
enum Form : unsigned { kSearch = 1, kExplain = 2, kRank = 4, kShapes = 8 };
const OptionRules kOfRuns = in_forms(kSearch | kExplain | kShapes);
const OptionRules kOfSearches = in_forms(kSearch | kShapes);
const OptionRules kOfShapes = in_forms(kShapes);

constexpr std::int64_t kMostSequence = 1 << 24;
constexpr std::int64_t kMostBatch = 100'000'000;
constexpr std::int64_t kMostTop = 1'000;

struct Request {
    Wanted<Model> model;
    Wanted<Machine> machine;
    std::optional<int> gpus;
    std::optional<std::int64_t> sequence;
    std::optional<std::int64_t> global_batch;
    NumberFormat precision = NumberFormat::bf16;
    std::optional<std::string> trainer;
    std::vector<Wanted<SystemSpec>> systems;
    RoutingSpec routing{.shares = RoutingSpec::Shares::balanced};
    PartialLayout fixed;
    int top = 10;
    PartialLayout explained;
    std::optional<std::string> ranked;
    bool no_mtp = false;
    bool search_model = false;
    std::optional<ParameterWindow> parameters;
    std::optional<ParameterWindow> active;
    std::string shapes = "default";
    Settings settings;
    int threads = 0;
};

/// The run that stands for what is not said.
struct Usual {
    const char* model;
    const char* machine;
    int gpus;
    std::int64_t global_batch;
    const char* trainer;
};
constexpr Usual kMixtral{"mixtral-8x22b", "h100-cluster", 128, 256, "megatron-26.04"};
constexpr Usual kPangu{"pangu-ultra-moe", "ascend-910b-cluster", 6144, 6144, "mindspeed"};

/// "…; without it A; of --search-model alone B".
template <class Value>
std::string usually(const char* doc, Value Usual::*member) {
    return fmt::format("{}; without it {}; of --search-model alone {}", doc, kMixtral.*member,
                       kPangu.*member);
}

/// Keys of a parallel layout, each once however they are said.
Target to_keys(PartialLayout& layout, std::string type) {
    Target target;
    target.kind = ValueKind::settings;
    target.commas = true;
    target.type = std::move(type);
    target.keys = parallel_keys;
    target.clear = [&layout] { layout = {}; };
    target.read = [&layout](std::string_view option, const std::string& text) {
        try {
            layout = parse_partial_layout(text, layout);
            if (layout.system) check_systems({*layout.system});
        } catch (const InputError& error) {
            bad_input("{}: {}", option, error.what());
        }
    };
    return target;
}

/// Plans know systems by their names.
Target to_names(std::vector<Wanted<SystemSpec>>& systems) {
    Target target = to(systems);
    target.type = "A,B";
    target.give = {};
    return target;
}

Target to_window(std::optional<ParameterWindow>& window) {
    using Window = std::optional<ParameterWindow>;
    return to_parsed<Window>(
        window, [](const std::string& text) -> Window { return parse_parameter_window(text); },
        "N±W");
}

Options run_options(Request& request) {
    return {
        {"--model", to(request.model),
         usually("preset or TOML file (moehub list models)", &Usual::model), kOfRuns},
        {"--machine", to(request.machine),
         usually("preset or TOML file (moehub list machines)", &Usual::machine), kOfRuns},
        {"--gpus", to(request.gpus, at_least(1)), usually("how many train", &Usual::gpus), kOfRuns},
        {"--sequence", to(request.sequence, {1, kMostSequence}),
         "tokens of a sequence; without it the model's", kOfRuns},
        {"--global-batch", to(request.global_batch, {1, kMostBatch}),
         usually("sequences of a step", &Usual::global_batch), kOfRuns},
        {"--precision", to(request.precision, named({NumberFormat::bf16, NumberFormat::fp8})),
         "of linear layers and experts", kOfRuns},
        {"--trainer", to_text(request.trainer, "", ValueKind::trainer),
         usually("preset or TOML file (moehub list trainers)", &Usual::trainer), kOfRuns},
        {"--system", to_names(request.systems),
         "systems of MoE layers, names or TOML files with commas between; the best layout of each "
         "is shown beside the others'; without it the trainer's dispatcher",
         kOfSearches},
        {"--routing", to_parsed(request.routing, parse_routing, "R"),
         "balanced, uniform, normal:STD, zipf:S, lognormal:SIGMA: how full experts are; without "
         "it balanced",
         kOfRuns},
        {"--fix", to_keys(request.fixed, "tp=8,pp=4"),
         "keys of a layout that are not searched: tp, cp, pp, vpp, ep, etp, mb, "
         "sharding=none|zero1|zero2|fsdp, recompute=none|selective|full or norms, activations, "
         "attention, latents, experts joined by +, offload=none|optimizer|activations|"
         "optimizer+activations, overlap=none|1f1b|dualpipe, system",
         kOfSearches},
        {"--no-mtp", to(request.no_mtp),
         "train without multi-token prediction where the model has it", kOfRuns},
        {"--set", to(request.settings, {"machine", "model", "trainer"}),
         "change a machine's value; as model.KEY a model's, as trainer.KEY a trainer's; repeatable",
         kOfRuns},
        {"--threads", to(request.threads, kThreads), "same result; without it as many as cores",
         kOfRuns},
    };
}

Options options_of(Request& request) {
    Options options = run_options(request);
    append(
        options,
        {{"--top", to(request.top, {1, kMostTop}), "layouts to list", kOfSearches},
         {"--explain", to_keys(request.explained, "LAYOUT"),
          "one layout in full, keys as --fix has them; what is not named is 1, zero1 or none",
          in_forms(kExplain)},
         {"--rank", to_file(request.ranked),
          "published runs, as validation/published_training.csv has them: do predicted and "
          "published orders of layouts agree?",
          in_forms(kRank)},
         {"--search-model", to(request.search_model),
          "search the model's shape as well: --model is the base, with its attention and "
          "vocabulary",
          kOfShapes},
         {"--params", to_window(request.parameters),
          "with --search-model: parameters, such as 718e9±5% or 718e9+-5%; without: the base's "
          "± 5 %",
          kOfShapes},
         {"--active", to_window(request.active),
          "likewise those that multiply a token (no input embedding), such as 39e9±5%", kOfShapes},
         {"--shapes", to_text(request.shapes, "", ValueKind::shapes),
          "with --search-model: what each axis may be, a preset or a TOML file", kOfShapes}});
    return options;
}

/// The GPUs that train: as many as asked for, else as usual, all of a machine that has fewer.
Machine part_of(const Machine& whole, const std::optional<int>& gpus, int usual) {
    const int most = whole.max_gpus > 0 ? whole.max_gpus : whole.gpus();
    if (!gpus) return training_machine(whole, std::min(most, usual));
    count_of("--gpus", fmt::format("{}", *gpus), {1, most});
    return training_machine(whole, *gpus);
}

std::vector<std::string> systems_of(const Request& request, const PlanCase& what) {
    std::vector<std::string> names;
    for (const Wanted<SystemSpec>& one : request.systems) names.push_back(one.name);
    if (names.empty()) return names;
    if (what.run.model.experts == 0)
        bad_input("--system: {} has no experts, allowed: without it",
                  moehub::quoted(what.model_name));
    if (request.fixed.system)
        throw InputError("--fix: system is found, and --system as well, allowed: one of the two");
    check_systems(names);
    return names;
}

PlanCase load(const Request& request) {
    const bool nothing_named = !request.model.said() && !request.machine.said();
    const Usual& usual = request.search_model && nothing_named ? kPangu : kMixtral;
    const std::string trainer = request.trainer.value_or(usual.trainer);
    PlanCase what{{},
                  request.model.name_or(usual.model),
                  request.machine.name_or(usual.machine),
                  trainer,
                  machine_of(request.machine, request.settings, usual.machine),
                  settings_of(request.settings, request.machine, request.model),
                  request.fixed};
    TrainingRun& run = what.run;
    run.machine = part_of(what.whole, request.gpus, usual.gpus);
    run.model = model_of(request.model, request.settings, usual.model);
    run.trainer = load_trainer(trainer, request.settings.of("trainer"));
    run.sequence = request.sequence.value_or(run.model.sequence);
    run.global_batch = request.global_batch.value_or(usual.global_batch);
    run.precision = request.precision;
    run.routing = request.routing;
    run.mtp = !request.no_mtp;
    what.systems = systems_of(request, what);
    check(run);
    return what;
}

/// Everything that the numbers of a search, or of a layout, which names its system, depend on.
std::string inputs_of(const PlanCase& what, const PartialLayout& layout) {
    std::vector<std::string> systems = what.systems;
    if (layout.system) systems.push_back(*layout.system);
    std::string text =
        to_toml(what.run.machine) + to_toml(what.run.model) + to_toml(what.run.trainer);
    for (const std::string& name : systems) text += to_toml(load_system(name));
    return text;
}

/// One line: by how much the smallest misses, and what would do.
std::string nothing_fits(const PlanCase& what, const PlanOptions& options, const Plan& plan) {
    const TrainingStep& least = plan.nearest.front();
    const bool here = least.memory.sum() > least.capacity;
    const double memory = here ? least.memory.sum() : least.memory.host;
    return fmt::format(
        "nothing fits: of {} parallel layouts the smallest, {}, takes {} {}, {} more than it has; "
        "{}",
        grouped(static_cast<std::int64_t>(plan.layouts)), to_text(least.layout), byte_size(memory),
        here ? "a GPU" : "of the host's memory for each GPU",
        byte_size(memory - (here ? least.capacity : least.host_capacity)),
        what_would_fit(what.run, options, what.whole));
}

Answer search(const Request& request, const Asker& asker) {
    const PlanCase what = load(request);
    asker.loaded([&] { return inputs_of(what, request.fixed); });
    PlanOptions options;
    options.fixed = what.fixed;
    options.systems = what.systems;
    options.top = static_cast<std::size_t>(request.top);
    options.threads = request.threads;
    options.progress = asker.pieces("planning");
    const Plan plan = plan_training(what.run, options);
    if (plan.best.empty()) throw InputError(nothing_fits(what, options, plan));
    return searched_answer(what, plan);
}

Answer explain(const Request& request, const Asker& asker) {
    if (request.explained == PartialLayout{})
        throw InputError("--explain: found nothing, allowed: KEY=VALUE, as in tp=2,pp=8,ep=8");
    const PlanCase what = load(request);
    asker.loaded([&] { return inputs_of(what, request.explained); });
    return explained_answer(what, std::make_shared<TrainingClock>(what.run),
                            completed(request.explained));
}

Answer search_shapes(const Request& request, const Asker& asker) {
    const PlanCase what = load(request);
    const Model& base = what.run.model;
    const auto around = [](std::int64_t count) {
        return parse_parameter_window(fmt::format("{}", count));
    };
    ShapeSearchOptions options;
    options.axes = load_shape_axes(request.shapes, base);
    options.total = request.parameters ? *request.parameters : around(parameters(base));
    options.active = request.active ? *request.active : around(multiplied_parameters(base));
    options.fixed = what.fixed;
    options.systems = what.systems;
    options.top = static_cast<std::size_t>(request.top);
    options.threads = request.threads;
    options.progress = asker.pieces("timing shapes");
    return shapes_answer(what, options, search_shapes(what.run, options));
}

Answer rank(const std::string& file, const Asker& asker) {
    const RunRanking ranking = rank_runs(file, asker.pieces("timing runs"));
    if (ranking.groups.empty() && !ranking.left_out.empty())
        bad_input("{}:{}: {}", file, ranking.left_out.front().line, ranking.left_out.front().why);
    if (ranking.groups.empty())
        bad_input("{}: fewer than {} runs of any model, nothing to rank", file, kFewestRanked);
    return ranked_answer(ranking);
}

Answer answer_of(const Request& request, const Asker& asker) {
    const unsigned form = request.ranked              ? kRank
                          : asker.was_said("explain") ? kExplain
                          : request.search_model      ? kShapes
                                                      : kSearch;
    asker.require_form(form);
    if (form == kRank) return rank(*request.ranked, asker);
    if (form == kExplain) return explain(request, asker);
    return form == kShapes ? search_shapes(request, asker) : search(request, asker);
}

/// A study without systems plans by the trainer's dispatcher.
void check_any_systems(const std::vector<std::string>& systems) {
    if (systems != std::vector<std::string>{""}) check_systems(systems);
}

}  // namespace

Question plan_question() {
    return {.first = "model",
            .form_words = {"a search of layouts", "--explain", "--rank", "--search-model"},
            .sweeps = {{.name = "plan",
                        .systems = "system",
                        .usual_systems = {""},
                        .check = check_any_systems,
                        .measures = {{"step_seconds"},
                                     {"tokens_per_second_per_gpu"},
                                     {"flops_per_second_per_gpu"},
                                     {"mfu"},
                                     {"memory_bytes.sum"},
                                     {"host_bytes"}},
                        .forms = kSearch | kExplain,
                        .first_row = true}},
            .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
