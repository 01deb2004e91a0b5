// Experts on GPUs from recorded routing.
#include "answers/layer_request.hpp"
#include "answers/placed.hpp"
#include "answers/profiles.hpp"
#include "answers/question.hpp"
#include "base/utf8.hpp"
#include "place/counts.hpp"
#include "report/number.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr Range kGpuCount{1, 4096};
constexpr double kMost = 1e6;

struct Request {
    ProfileRequest profiles;
    Wanted<Machine> machine{"dgx-h100"};
    std::optional<int> gpus;
    std::optional<int> nodes;
    int groups = 1;
    int replicas = 0;
    std::optional<Bytes> memory;
    int weight_bits = 16;
    PlaceOptions search;
    int threads = 0;
    Wanted<ExpertLayout> current;
    bool pareto = false;
    Wanted<SystemSpec> system;
    std::vector<Wanted<SystemSpec>> simulate;
    std::optional<LayoutFormat> format;
    std::string output;
};

Options file_options(Request& request) {
    ProfileRequest& profiles = request.profiles;
    Options options{
        {"dumps", to_texts(profiles.ranks, ValueKind::profile),
         "recorded routing; several are what the ranks of a server dumped of one recording, a file "
         "each, and make one profile",
         kMany},
        {"--profile", to_profiles(profiles.profiles),
         "recorded routing, FILE[:from-to][@weight]: a part as fractions of its tokens, a weight "
         "beside others; every file is a profile; repeatable",
         kMany},
        {"--evaluate", to_profiles(profiles.held_out),
         "tokens to judge the layout by, held out from the search; repeatable", kMany},
    };
    append(options, profile_options(profiles));
    options.push_back(
        {"--dense-layers", to(profiles.dense_layers, {0, 10'000}),
         "layers of the model before the first recorded one, where neither file nor --model says",
         excludes({"--model"})});
    return options;
}

Options machine_options(Request& request) {
    return {
        {"--machine", to(request.machine), "preset or TOML file (moehub list machines)"},
        {"--gpus", to(request.gpus, kGpuCount),
         "that share the experts; without it 8, of a machine at hand all"},
        {"--nodes", to(request.nodes, kGpuCount),
         "of as many GPUs each; without it by the GPUs that one node of the machine has"},
        {"--groups", to(request.groups, at_least(1)), "of experts, for eplb over several nodes"},
        {"--replicas", to(request.replicas, {0, 1'000'000}),
         "slots of a layer beyond one per expert"},
        {"--memory", to_size(request.memory),
         "of a GPU for experts; without it all that the machine's GPU has", needs("--model")},
        {"--weight-bits", to(request.weight_bits, {1, 64}), "of an expert's weights, for --memory"},
    };
}

Option method_option(std::string& method) {
    Named<std::string> names;
    for (const PlaceMethod& one : place_methods()) names.emplace_back(one.name, one.name);
    Target target = to(method, names);
    return {"--method", target, fmt::format("{}", fmt::join(target.choices, ", "))};
}

Target to_objective(std::optional<Objective>& objective) {
    Target target;
    target.read = [&objective](std::string_view, const std::string& text) {
        objective = parse_objective(text);
    };
    return target;
}

Options search_options(Request& request) {
    PlaceOptions& search = request.search;
    return {
        method_option(search.method),
        {"--objective", to_objective(search.objective),
         "what is minimised, as gpus+4*transitions: load, gpus, nodes, transitions, "
         "node-transitions, pair, activated, moved; without it gpus, over nodes gpus+4*nodes, of "
         "counts load"},
        {"--load-cap", to(search.load_cap, kMost, "1 or more, or 0 for none"),
         "busiest GPU over the mean, at most, in every layer; 0: none"},
        {"--load-blocks", to(search.load_blocks, {1, 64}),
         "the cap holds in each of so many runs of the tokens; a balance found so lasts longer"},
        {"--worst-profile", to(search.worst_profile),
         "minimise for the worst profile, not the mean"},
        {"--unequal", to(search.unequal),
         "moetuner: GPUs may differ in how many experts they hold"},
        {"--batch", to(search.batch, at_least(1)),
         "tokens of a decode step, for activated experts"},
        {"--current", to(request.current), "layout in use, any format, to move few from"},
        {"--max-moves", to(search.max_moves, at_least(0)),
         "experts to copy from the current layout, at most", needs("--current")},
        {"--time-limit", to(search.time_limit, kMost, "seconds above 0, at most 1e6"),
         "of the search, in seconds"},
        {"--seed", to(search.seed), "of the search"},
        {"--threads", to(request.threads, kThreads), "same result; without it as many as cores"},
    };
}

Options output_options(Request& request) {
    Named<LayoutFormat> formats;
    for (const std::string& name : layout_formats())
        formats.emplace_back(name, parse_layout_format(name));
    Target simulate = to(request.simulate);
    simulate.list = true;
    return {
        {"--pareto", to(request.pareto),
         "also try other objectives and caps, in half of the time; print those of which none is "
         "better in everything"},
        {"--system", to(request.system),
         "that the layout is for (moehub list systems): what it gains in time over EPLB with the "
         "same slots; where that or another layout is faster, it is taken",
         needs("--model")},
        {"--simulate",
         std::move(simulate),
         "further systems to simulate with and without the layout; without --system the first "
         "decides; commas between, or repeated",
         {.many = true, .needs = "--model"}},
        {"--format", to(request.format, formats),
         fmt::format("of the file: {}; without it by its ending, .csv, .yaml (trtllm), else sglang",
                     fmt::join(layout_formats(), ", "))},
        {"-o,--output", to_file(request.output), "write the layout to this file"},
    };
}

Options options_of(Request& request) {
    return joined({file_options(request), machine_options(request), search_options(request),
                   output_options(request)});
}

// From what was asked to what is placed.

/// Nodes that share the experts: as many as the GPUs fill, where it is not said.
int nodes_of(const Request& request, const Machine& machine, int gpus) {
    if (request.nodes) return *request.nodes;
    const int each = machine.gpus_per_node;
    if (gpus <= each) return 1;
    if (gpus % each != 0)
        bad_input(
            "--gpus: found {}, allowed: up to the {} of one node of {}, or a multiple "
            "of it; or say --nodes",
            gpus, each, printable(request.machine.name_or("")));
    return gpus / each;
}

LayoutFormat format_of(const Request& request) {
    const std::string ending = std::filesystem::path(request.output).extension().string();
    const LayoutFormat by_ending = ending == ".csv"                        ? LayoutFormat::csv
                                   : ending == ".yaml" || ending == ".yml" ? LayoutFormat::trtllm
                                                                           : LayoutFormat::sglang;
    const LayoutFormat format = request.format.value_or(by_ending);
    const std::string why = why_equal_slots(format);
    if (request.search.unequal && !request.output.empty() && !why.empty())
        bad_input("--unequal: found --format {}, {}, allowed: with csv, json", to_string(format),
                  why);
    return format;
}

void check_search(const PlaceOptions& search) {
    if (search.unequal && search.method != "moetuner")
        bad_input("--unequal: found --method {}, allowed: with moetuner", search.method);
}

/// Whether the experts' weights find room.
void check_memory(const Request& request, const PlaceTask& task) {
    if (!task.model) return;
    const Model& model = *task.model;
    const double limit =
        static_cast<double>(request.memory.value_or(task.machine.gpu.hbm_capacity));
    const double expert =
        (model.gated ? 3.0 : 2.0) * model.hidden * model.expert_ffn * request.weight_bits / 8;
    const int slots =
        (model.experts + task.input.redundant + task.input.gpus - 1) / task.input.gpus;
    const double all = expert * slots * model.moe_layers();
    if (limit <= 0 || all <= limit) return;
    bad_input(
        "--memory: found {} of {} a GPU in {}, {}, allowed: {}; fewer "
        "--replicas or more --gpus{}",
        several(slots, "slot"), byte_size(expert), several(model.moe_layers(), "layer"),
        byte_size(all), byte_size(limit),
        request.weight_bits == 16 ? ", or --weight-bits 8 where weights are FP8" : "");
}

void load_systems_of(const Request& request, PlaceTask& task) {
    std::vector<Wanted<SystemSpec>> wanted;
    if (request.system.said()) wanted.push_back(request.system);
    for (const auto& one : request.simulate)
        if (std::none_of(wanted.begin(), wanted.end(),
                         [&](const auto& other) { return other.name_or("") == one.name_or(""); }))
            wanted.push_back(one);
    if (wanted.empty()) return;
    task.systems = load_systems(wanted, {}, {});
    task.machine = with_gpus(task.machine, task.input.gpus);
    if (task.machine.nodes != task.input.nodes)
        bad_input("{}: found {} nodes, allowed: {}, as {} of {} GPUs has",
                  request.system.said() ? "--system" : "--simulate", task.input.nodes,
                  task.machine.nodes, printable(task.machine_name), task.input.gpus);
}

/// Numbers of the layers in the model, where --dense-layers or the model says more than the file.
void number_layers(std::vector<Profile>& profiles, const Request& request, const Model* model) {
    const int dense = request.profiles.dense_layers.value_or(0);
    for (Profile& profile : profiles) {
        const int first = profile.layer_numbers.front();
        if (dense > 0 && first > 0 && first != dense)
            bad_input("--dense-layers: found {}, allowed: {}, as {} has it", dense, first,
                      printable(profile.name));
        if (dense > 0 && first == 0) {
            for (int& number : profile.layer_numbers) number += dense;
            profile.model_layers += dense;
        }
        if (model != nullptr || request.profiles.dense_layers) profile.layers_said = true;
        if (model != nullptr) profile.model_layers = std::max(profile.model_layers, model->layers);
    }
}

/// All profiles at once, so that those held out fit the others.
void read_profiles(const Request& request, PlaceTask& task) {
    if (request.profiles.count() == 0) throw InputError("--profile: found nothing, allowed: FILE");
    const Model* const model = task.model ? &*task.model : nullptr;
    std::vector<Profile> all = load_profiles(request.profiles, model);
    number_layers(all, request, model);
    const auto held_out = all.begin() + static_cast<std::ptrdiff_t>(request.profiles.count());
    task.held_out.assign(std::make_move_iterator(held_out), std::make_move_iterator(all.end()));
    all.erase(held_out, all.end());
    task.input.profiles = std::move(all);
    const Profile& first = task.input.profiles.front();
    if (task.file.empty() || task.format != LayoutFormat::sglang || first.layers_said) return;
    bad_input(
        "--format sglang: found no word in {} on how many dense layers the model "
        "begins with, and SGLang wants a row for every layer, allowed: with --model M "
        "or --dense-layers N (0: none)",
        printable(first.name));
}

void read_current(const Request& request, PlaceTask& task) {
    if (!request.current.said()) return;
    const LayoutShape shape = shape_of(task.input.profiles.front());
    const int gpus = task.input.gpus;
    if (request.current.given == nullptr) {
        task.options.current = read_layout(request.current.name, gpus, shape);
        return;
    }
    const ExpertLayout& layout = request.current.given->value;
    if (layout.gpus != gpus || layout.experts != shape.experts || layout.layers() != shape.layers)
        bad_input("--current: found {} layers of {} experts on {} GPUs, allowed: {} of {} on {}",
                  layout.layers(), layout.experts, layout.gpus, shape.layers, shape.experts, gpus);
    task.options.current = layout;
}

PlaceTask load_task(const Request& request) {
    PlaceTask task;
    task.options = request.search;
    task.options.threads = request.threads;
    check_search(task.options);
    task.format = format_of(request);
    task.file = request.output;
    task.machine = machine_of(request.machine, {});
    task.machine_name = request.machine.name_or("");
    task.model = profiled_model(request.profiles);
    task.model_name = request.profiles.model.name_or("");
    task.settings = settings_of({}, request.machine, request.profiles.model);
    constexpr int kUsualGpus = 8;
    task.input.gpus =
        request.gpus.value_or(request.machine.given ? task.machine.gpus() : kUsualGpus);
    task.input.nodes = nodes_of(request, task.machine, task.input.gpus);
    task.input.groups = request.groups;
    task.input.redundant = request.replicas;
    check_memory(request, task);
    load_systems_of(request, task);
    read_profiles(request, task);
    read_current(request, task);
    return task;
}

// The search.

/// With `pareto` what was asked for has half of the time, other objectives and caps share the rest.
Placed search_layout(PlaceTask& task, bool pareto, const Asker& asker) {
    PlaceOptions& options = task.options;
    options.stop = asker.stop;
    const double parts = pareto ? 2 : 1;
    options.time_limit /= parts;
    const auto progress_from = [&](double begin) {
        options.progress = [&asker, begin, parts](double share, double) {
            if (asker.progress) asker.progress("placing", {begin + share / parts});
        };
    };
    progress_from(0);
    if (pareto) pareto_tries(task.input, options);  // refuses what cannot be, before long work
    Placed placed;
    placed.result = place(task.input, options);
    placed.interrupted = asker.stop.stop_requested();
    if (pareto) {
        progress_from(0.5);
        placed.tries = place_pareto(task.input, options, task.held_out);
        if (asker.stop.stop_requested())
            placed.result.notes.emplace_back(
                "interrupted: other objectives and caps were not all tried");
    }
    options.progress = {};
    if (asker.stop.stop_requested() && asker.tell)
        asker.tell("this is the best found until the interruption");
    return placed;
}

void write(const PlaceTask& task, const Placed& placed, const Asker& asker) {
    if (!task.file.empty()) asker.save(task.file, layout_text(placed.result.layout, task.format));
}

void simulate(PlaceTask& task, Placed& placed, const Asker& asker) {
    if (task.systems.empty()) return;
    if (asker.stop.stop_requested())
        placed.result.notes.emplace_back("interrupted: nothing was simulated");
    else if (take_fastest(task, placed, asker.pieces("simulating")))
        write(task, placed, asker);
}

/// Layers of the model that the profile lacks stand in the files of some servers all the same.
void note_layers_in_order(const PlaceTask& task, Placed& placed) {
    const int layers = placed.result.layout.layers();
    if (task.model && layers < task.model->moe_layers())
        placed.result.notes.push_back(fmt::format(
            "The profile has {} of the model's {} MoE layers; in the others experts stay in order.",
            layers, task.model->moe_layers()));
}

Answer answer_of(const Request& request, const Asker& asker) {
    PlaceTask task = load_task(request);
    Placed placed = search_layout(task, request.pareto, asker);
    write(task, placed, asker);  // before what takes long or can fail
    simulate(task, placed, asker);
    note_layers_in_order(task, placed);
    Answer answer = placement_answer(placement_report(task, placed));
    add_configuration(answer.configuration, "Machine", task.machine);
    if (task.model) add_configuration(answer.configuration, "Model", *task.model);
    for (const SystemSpec& system : task.systems)
        add_configuration(answer.configuration, "System", system);
    answer.layout = std::move(placed.result.layout);
    return answer;
}

}  // namespace

Question place_question() {
    return {.first = "profile",
            .forms = {.output = false},
            .ends_softly = true,
            .ask = asking(
                options_of, answer_of,
                [](const Request& request) { return files_of(request.profiles); },
                [](const Request& request) { return output_to("-o", request.output); })};
}

}  // namespace moehub
