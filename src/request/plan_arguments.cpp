#include "request/plan_arguments.hpp"

#include "request/values.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>
#include <moehub/routing.hpp>

#include <algorithm>
#include <cstdlib>

namespace moehub {
namespace {

constexpr std::string_view kModelPrefix = "model.";
constexpr std::string_view kTrainerPrefix = "trainer.";
constexpr std::int64_t kMostSequence = 1 << 24;
constexpr std::int64_t kMostBatch = 100'000'000;
constexpr std::int64_t kMostTop = 1'000;
constexpr std::int64_t kMostThreads = 4096;

/// Those with the prefix, without it; of an empty prefix those that have none of the others'.
Overrides settings_for(const std::vector<std::string>& settings, std::string_view prefix) {
    Overrides found;
    for (const std::string& one : settings) {
        const bool machine = !one.starts_with(kModelPrefix) && !one.starts_with(kTrainerPrefix);
        if (prefix.empty() ? machine : one.starts_with(prefix))
            found.push_back(one.substr(prefix.size()));
    }
    return found;
}

/// The run that stands for what is not typed.
struct Usual {
    const char* model;
    const char* machine;
    const char* gpus;
    const char* global_batch;
    const char* trainer;
};
constexpr Usual kMixtral{"mixtral-8x22b", "h100-cluster", "128", "256", "megatron-26.04"};
constexpr Usual kPangu{"pangu-ultra-moe", "ascend-910b-cluster", "6144", "6144", "mindspeed"};

/// "…; without it A; of --search-model alone B".
std::string usually(const char* doc, const char* Usual::*key) {
    return fmt::format("{}; without it {}; of --search-model alone {}", doc, kMixtral.*key,
                       kPangu.*key);
}

/// All of a machine that has fewer than usual.
Machine part_of(const Machine& whole, const std::optional<std::string>& gpus, const char* usual) {
    const int most = whole.max_gpus > 0 ? whole.max_gpus : whole.gpus();
    if (!gpus) return training_machine(whole, std::min(most, std::atoi(usual)));
    return training_machine(whole, static_cast<int>(count_of("--gpus", *gpus, {1, most})));
}

NumberFormat precision_of(const std::string& name) {
    std::optional<NumberFormat> format;
    if (name == "bf16") format = NumberFormat::bf16;
    if (name == "fp8") format = NumberFormat::fp8;
    return named("--precision", name, format, {"bf16", "fp8"});
}

std::string routing_of(const std::string& text) {
    if (text == "balanced") return text;
    try {
        return to_string(parse_routing(text));
    } catch (const InputError& error) {
        throw InputError(fmt::format("--routing: {}", error.what()));
    }
}

}  // namespace

std::vector<Option> plan_options(PlanArguments& a) {
    std::vector<Option> options = {
        {"--model", &a.model, usually("preset or TOML file (moehub list models)", &Usual::model),
         "M"},
        {"--machine", &a.machine,
         usually("preset or TOML file (moehub list machines)", &Usual::machine), "M"},
        {"--gpus", &a.gpus, usually("how many train", &Usual::gpus), "N"},
        {"--sequence", &a.sequence, "tokens of a sequence; without it the model's", "N"},
        {"--global-batch", &a.global_batch, usually("sequences of a step", &Usual::global_batch),
         "N"},
        {"--precision", &a.precision, "of linear layers and experts", "bf16|fp8"},
        {"--trainer", &a.trainer,
         usually("preset or TOML file (moehub list trainers)", &Usual::trainer), "T"},
        {"--system", &a.systems,
         "systems of MoE layers, names or TOML files with commas between; the best layout of each "
         "is shown beside the others'; without it the trainer's dispatcher",
         "A,B"},
        {"--routing", &a.routing,
         "balanced, uniform, normal:STD, zipf:S, lognormal:SIGMA: how full experts are", "R"},
        {"--fix", &a.fixed,
         "keys of a layout that are not searched: tp, cp, pp, vpp, ep, etp, mb, "
         "sharding=none|zero1|zero2|fsdp, recompute=none|selective|full or norms, activations, "
         "attention, latents, experts joined by +, offload=none|optimizer|activations|"
         "optimizer+activations, overlap=none|1f1b|dualpipe, system",
         "tp=8,pp=4"},
        {"--top", &a.top, "layouts to list", "N"},
        {"--explain",
         &a.explain,
         "one layout in full, keys as --fix has them; what is not named is 1, zero1 or none",
         "LAYOUT",
         {.excludes = {"--top", "--fix", "--system"}}},
        {"--rank", &a.rank,
         "published runs, as validation/published_training.csv has them: do predicted and "
         "published "
         "orders of layouts agree? With --json and -o alone",
         "FILE"},
        {"--no-mtp", &a.no_mtp, "train without multi-token prediction where the model has it"},
        {"--set", &a.settings,
         "change a machine's value; as model.KEY a model's, as trainer.KEY a trainer's; repeatable",
         "KEY=VALUE"},
        {"--threads", &a.threads, "same result; without it as many as cores", "N"},
        {"--json", &a.json, "print JSON; times in seconds, sizes in bytes"},
        {"-o,--output", &a.output, "write to this file instead", "FILE"},
    };
    add_html_option(options, a.html);
    for (Option& option : shape_options(a.shapes)) options.push_back(std::move(option));
    return options;
}

void require_rank_alone(const PlanArguments& a) {
    const PlanArguments plain;
    const std::pair<const char*, bool> typed[] = {
        {"--model", a.model.has_value()},
        {"--machine", a.machine.has_value()},
        {"--gpus", a.gpus.has_value()},
        {"--sequence", a.sequence.has_value()},
        {"--global-batch", a.global_batch.has_value()},
        {"--precision", a.precision != plain.precision},
        {"--trainer", a.trainer.has_value()},
        {"--system", a.systems.has_value()},
        {"--routing", a.routing != plain.routing},
        {"--fix", a.fixed != plain.fixed},
        {"--top", a.top != plain.top},
        {"--explain", a.explain.has_value()},
        {"--no-mtp", a.no_mtp},
        {"--set", !a.settings.empty()},
        {"--threads", a.threads.has_value()},
        {"--search-model", a.shapes.search_model},
    };
    for (const auto& [name, is_typed] : typed)
        if (is_typed)
            throw InputError(
                fmt::format("{}: found beside --rank, whose runs say it; allowed: without", name));
}

PlanCase load_plan(const PlanArguments& arguments) {
    const bool nothing_named = !arguments.model && !arguments.machine;
    const Usual& usual = arguments.shapes.search_model && nothing_named ? kPangu : kMixtral;
    PlanCase what;
    what.model_name = arguments.model.value_or(usual.model);
    what.machine_name = arguments.machine.value_or(usual.machine);
    what.trainer_name = arguments.trainer.value_or(usual.trainer);
    what.settings = arguments.settings;
    what.fixed = arguments.fixed;
    TrainingRun& run = what.run;
    what.whole = load_machine(what.machine_name, settings_for(arguments.settings, ""));
    run.machine = part_of(what.whole, arguments.gpus, usual.gpus);
    run.model = load_model(what.model_name, settings_for(arguments.settings, kModelPrefix));
    run.trainer = load_trainer(what.trainer_name, settings_for(arguments.settings, kTrainerPrefix));
    run.sequence = arguments.sequence
                       ? count_of("--sequence", *arguments.sequence, {1, kMostSequence})
                       : run.model.sequence;
    run.global_batch = count_of(
        "--global-batch", arguments.global_batch.value_or(usual.global_batch), {1, kMostBatch});
    run.precision = precision_of(arguments.precision);
    run.routing = routing_of(arguments.routing);
    run.mtp = !arguments.no_mtp;
    if (arguments.systems) {
        if (run.model.experts == 0)
            throw InputError(fmt::format("--system: {} has no experts, allowed: without it",
                                         moehub::quoted(what.model_name)));
        what.systems = listed(*arguments.systems);
        check_systems(what.systems);
    }
    return what;
}

PlanOptions search_options(const PlanArguments& arguments, const PlanCase& what) {
    PlanOptions options;
    options.top = static_cast<std::size_t>(count_of("--top", arguments.top, {1, kMostTop}));
    options.systems = what.systems;
    options.fixed = what.fixed;
    if (arguments.threads)
        options.threads =
            static_cast<int>(count_of("--threads", *arguments.threads, {1, kMostThreads}));
    try {
        const std::vector<std::string> keys = parallel_keys_of(what.fixed);
        const ParallelLayout fixed = parse_parallel_layout(what.fixed);
        const bool has_system = std::find(keys.begin(), keys.end(), "system") != keys.end();
        if (has_system && !what.systems.empty())
            throw InputError("system is found, and --system as well, allowed: one of the two");
        if (has_system) check_systems({fixed.system});
    } catch (const InputError& error) {
        throw InputError(fmt::format("--fix: {}", error.what()));
    }
    return options;
}

}  // namespace moehub
