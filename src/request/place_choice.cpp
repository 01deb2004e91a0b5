#include "request/place_choice.hpp"

#include "report/progress.hpp"
#include "report/table.hpp"
#include "request/place_simulated.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr const char* kEplb = "eplb";

/// Methods that look for a layout; who asks for another one gets it.
bool searches(const PlaceOptions& options) {
    return options.method != kEplb && options.method != "contiguous" &&
           options.method != "round-robin";
}

/// Without bounds: most candidates are only timed.
Candidate candidate(std::string name, const PlaceTask& task, PlaceOptions options) {
    options.bounds = false;
    PlaceResult result = place(task.input, options);
    return {std::move(name), std::move(options), std::move(result)};
}

/// With what EPLB does not know left out.
PlaceOptions eplb_options(const PlaceOptions& asked) {
    PlaceOptions options = asked;
    options.method = kEplb;
    options.load_blocks = 1;
    options.worst_profile = options.unequal = false;
    options.max_moves.reset();
    return options;
}

/// What was found last: of equally fast ones it is taken.
std::vector<Candidate> candidates_of(const PlaceTask& task, const PlaceResult& found) {
    const PlaceOptions& asked = task.options;
    std::vector<Candidate> all;
    if (asked.method != kEplb) all.push_back(candidate(kEplb, task, eplb_options(asked)));
    const bool has_other_aim = found.objective != Objective{.load = 1};
    if (asked.method == "joint" && !asked.objective && !asked.max_moves && has_other_aim) {
        PlaceOptions even = asked;
        even.objective = Objective{.load = 1};
        even.time_limit = asked.time_limit / 10;  // load alone is easy
        all.push_back(candidate("joint, load", task, std::move(even)));
    }
    all.push_back({asked.method, asked, found});
    return all;
}

std::vector<NamedLayout> layouts_of(const PlaceTask& task, const std::vector<Candidate>& all) {
    const ExpertLayout& found = all.back().result.layout;
    std::vector<NamedLayout> layouts{
        {"contiguous", contiguous_layout(shape_of(found), task.input.gpus)}};
    if (task.options.current) layouts.push_back({"current", *task.options.current});
    for (const Candidate& one : all)
        if (one.name != layouts.front().name) layouts.push_back({one.name, one.result.layout});
    return layouts;
}

/// System by system, so that one that cannot run a layout leaves the others.
void simulate(const PlaceTask& task, std::vector<NamedLayout> layouts, LayoutChoice& choice) {
    const Profile profile = simulated_part(task, layouts, choice.notes);
    Progress progress("simulating");
    for (std::size_t i = 0; i < task.systems.size(); ++i) {
        EffectOptions options;
        options.threads = task.options.threads;
        options.progress = [&](std::size_t done, std::size_t all) {
            progress.update(i * all + done, task.systems.size() * all);
        };
        try {
            const std::vector<SystemSpec> one{task.systems[i]};
            PlacementEffect effect =
                placement_effect({task.machine, *task.model, profile, layouts, one}, options);
            if (!choice.effect) {
                choice.effect = std::move(effect);
                continue;
            }
            auto& all = choice.effect->layouts;
            all.insert(all.end(), effect.layouts.begin(), effect.layouts.end());
        } catch (const InputError& error) {
            choice.notes.push_back(
                fmt::format("not simulated under {}: {}", task.systems[i].name, error.what()));
        }
    }
}

bool can_be_written(const PlaceTask& task, const Candidate& one, LayoutChoice& choice) {
    try {
        layout_text(one.result.layout, task.format);
        return true;
    } catch (const InputError& error) {
        choice.notes.push_back(fmt::format("{} cannot be taken: {}", one.name, error.what()));
        return false;
    }
}

/// Under the first system.
const LayoutEffect* effect_of(const PlaceTask& task, const LayoutChoice& choice,
                              const std::string& layout) {
    if (!choice.effect) return nullptr;
    for (const LayoutEffect& one : choice.effect->layouts)
        if (one.layout == layout && one.system == task.systems.front().name) return &one;
    return nullptr;
}

std::string taken_sentence(const LayoutEffect& own, const LayoutEffect& best) {
    return fmt::format(
        "Under {} a MoE layer takes {} µs with the layout of {} and {} µs with that of {} ({}), "
        "which is taken instead.",
        own.system, tenths(to_us(own.layer.mean)), own.layout, tenths(to_us(best.layer.mean)),
        best.layout, percent(-saved(own.layer.mean, best.layer.mean), true));
}

}  // namespace

LayoutChoice choose_layout(const PlaceTask& task, const PlaceResult& found) {
    LayoutChoice choice;
    std::vector<Candidate> all = candidates_of(task, found);
    simulate(task, layouts_of(task, all), choice);
    std::size_t taken = all.size() - 1;
    const LayoutEffect* const own = effect_of(task, choice, all.back().name);
    if (own != nullptr && searches(task.options)) {
        const LayoutEffect* best = own;
        for (std::size_t i = 0; i + 1 < all.size(); ++i) {
            const LayoutEffect* const other = effect_of(task, choice, all[i].name);
            if (other->moe_layers >= best->moe_layers) continue;
            if (task.options.max_moves) {
                choice.notes.push_back(
                    fmt::format("Under {} the layout of {} would be {:.3f} times as fast; it moves "
                                "more experts than --max-moves allows.",
                                own->system, other->layout, faster(*other, *own)));
                continue;
            }
            if (!can_be_written(task, all[i], choice)) continue;
            best = other;
            taken = i;
        }
        if (best != own) choice.notes.insert(choice.notes.begin(), taken_sentence(*own, *best));
    }
    double seconds = 0;
    for (const Candidate& one : all) seconds += one.result.seconds;
    choice.taken = std::move(all[taken]);
    if (!choice.taken.options.bounds) {
        choice.taken.options.bounds = true;
        choice.taken.result = place(task.input, choice.taken.options);
    }
    choice.taken.result.seconds = seconds;
    return choice;
}

}  // namespace moehub
