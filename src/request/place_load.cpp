// From what was typed to what is placed.
#include "base/utf8.hpp"
#include "place/counts.hpp"
#include "request/place_arguments.hpp"
#include "request/place_checks.hpp"
#include "request/values.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <limits>

namespace moehub {
namespace {

constexpr std::int64_t kMostGpus = 4096;
constexpr std::int64_t kMostReplicas = 1'000'000;
constexpr std::int64_t kMostBlocks = 64;
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();

int int_of(std::string_view option, const std::string& text, Range allowed) {
    return static_cast<int>(count_of(option, text, allowed));
}

constexpr double kMost = 1e6;

/// As many as the machine's nodes make, where it is not said.
int nodes_of(const PlaceArguments& arguments, const Machine& machine, int gpus) {
    if (arguments.nodes) return int_of("--nodes", *arguments.nodes, {1, kMostGpus});
    const int each = machine.gpus_per_node;
    if (gpus <= each) return 1;
    if (gpus % each != 0)
        throw InputError(
            fmt::format("--gpus: found {}, allowed: up to the {} of one node of {}, or a multiple "
                        "of it; or say --nodes",
                        gpus, each, printable(arguments.machine)));
    return gpus / each;
}

PlaceOptions options_of(const PlaceArguments& arguments) {
    PlaceOptions options;
    options.method = arguments.method;
    if (arguments.objective) options.objective = parse_objective(*arguments.objective);
    options.load_cap =
        number_of("--load-cap", arguments.load_cap, kMost, "1 or more, or 0 for none");
    options.load_blocks = int_of("--load-blocks", arguments.load_blocks, {1, kMostBlocks});
    options.worst_profile = arguments.worst_profile;
    options.unequal = arguments.unequal;
    options.batch = int_of("--batch", arguments.batch, {1, kMostInt});
    if (arguments.max_moves && !arguments.current)
        throw InputError("--max-moves: found no current layout, allowed: with --current");
    if (arguments.max_moves)
        options.max_moves = count_of("--max-moves", *arguments.max_moves, {0, kMostCount});
    options.time_limit =
        number_of("--time-limit", arguments.time_limit, kMost, "seconds above 0, at most 1e6");
    options.seed = static_cast<std::uint64_t>(count_of("--seed", arguments.seed, {0, kMostCount}));
    if (arguments.threads) options.threads = int_of("--threads", *arguments.threads, {1, 4096});
    if (arguments.unequal && arguments.method != "moetuner")
        throw InputError(fmt::format("--unequal: found --method {}, allowed: with moetuner",
                                     printable(arguments.method)));
    return options;
}

/// Numbers of the layers in the model, where --dense-layers or the model says more than the file.
void number_layers(std::vector<Profile>& profiles, const PlaceArguments& arguments,
                   const std::optional<Model>& model) {
    const int dense =
        int_of("--dense-layers", arguments.dense_layers.value_or("0"), {0, kMostLayers});
    for (Profile& profile : profiles) {
        const int first = profile.layer_numbers.front();
        if (dense > 0 && first > 0 && first != dense)
            throw InputError(fmt::format("--dense-layers: found {}, allowed: {}, as {} has it",
                                         dense, first, printable(profile.name)));
        if (dense > 0 && first == 0) {
            for (int& number : profile.layer_numbers) number += dense;
            profile.model_layers += dense;
        }
        if (model || arguments.dense_layers) profile.layers_said = true;
        if (model) profile.model_layers = std::max(profile.model_layers, model->layers);
    }
}

void load_systems_of(const PlaceArguments& arguments, PlaceTask& task) {
    std::vector<std::string> names;
    if (arguments.system) names.push_back(*arguments.system);
    for (const std::string& list : arguments.simulate)
        for (const std::string& name : listed(list))
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (names.empty()) return;
    const char* const option = arguments.system ? "--system" : "--simulate";
    task.systems = load_systems(names);
    if (!task.model)
        throw InputError(fmt::format(
            "{}: found without --model, whose layers are simulated, allowed: with it", option));
    task.machine = with_gpus(task.machine, task.input.gpus);
    if (task.machine.nodes != task.input.nodes)
        throw InputError(
            fmt::format("{}: found {} nodes, allowed: {}, as {} of {} GPUs "
                        "has",
                        option, task.input.nodes, task.machine.nodes, printable(arguments.machine),
                        task.input.gpus));
}

/// All profiles at once, so that those held out fit the others.
void read_profiles(const PlaceArguments& arguments, PlaceTask& task) {
    ProfileArguments all = arguments.profiles;
    if (profile_count(all) == 0) throw InputError("--profile: found none, allowed: at least one");
    all.files.insert(all.files.end(), arguments.evaluate.begin(), arguments.evaluate.end());
    std::vector<Profile> profiles = load_profiles(all);
    number_layers(profiles, arguments, task.model);
    const auto held_out =
        profiles.begin() + static_cast<std::ptrdiff_t>(profile_count(arguments.profiles));
    task.held_out.assign(std::make_move_iterator(held_out),
                         std::make_move_iterator(profiles.end()));
    profiles.erase(held_out, profiles.end());
    task.input.profiles = std::move(profiles);
}

}  // namespace

PlaceTask load_place(const PlaceArguments& arguments) {
    PlaceTask task;
    task.options = options_of(arguments);
    task.format = format_of(arguments);
    check_output(arguments);
    task.machine = load_machine(arguments.machine);
    if (arguments.profiles.model) task.model = load_model(*arguments.profiles.model);
    task.input.gpus = int_of("--gpus", arguments.gpus, {1, kMostGpus});
    task.input.nodes = nodes_of(arguments, task.machine, task.input.gpus);
    task.input.groups = int_of("--groups", arguments.groups, {1, kMostInt});
    task.input.redundant = int_of("--replicas", arguments.replicas, {0, kMostReplicas});
    check_memory(arguments, task);
    load_systems_of(arguments, task);
    read_profiles(arguments, task);
    check_dense_layers(arguments, task);
    if (arguments.current)
        task.options.current =
            read_layout(*arguments.current, task.input.gpus, shape_of(task.input.profiles.front()));
    return task;
}

}  // namespace moehub
