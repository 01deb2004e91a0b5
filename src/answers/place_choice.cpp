// Which layout is fastest: the one found, EPLB's or another, simulated under the systems named.
#include "answers/placed.hpp"
#include "answers/question.hpp"
#include "report/number.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A layout that may be taken, and how it was found.
struct Candidate {
    std::string name;
    PlaceOptions options;
    PlaceResult result;
};

/// What was simulated, and what is to be known of it.
struct Simulated {
    std::optional<PlacementEffect> effect;
    std::vector<std::string> notes;
};

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

/// The options asked for without what EPLB does not know.
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

/// Held-out tokens where there are some, else the first profile's; drawn where only counts are
/// known, which is noted.
Profile with_tokens(const PlaceTask& task, std::vector<std::string>& notes) {
    const Profile& profile = task.judges().front();
    if (profile.has_tokens()) return profile;
    notes.emplace_back(
        "Simulated tokens were drawn by the counts, each layer by itself: loads are as counted; "
        "which experts go together is not known, so fewer GPUs per token gain nothing here.");
    return with_drawn_tokens(profile, *task.model);
}

/// The recorded layers that are simulated: none behind the model's, of multi-token prediction, and
/// on many GPUs some evenly chosen ones: a layer takes a second there.
std::vector<std::size_t> chosen_layers(const PlaceTask& task, int recorded) {
    constexpr int kLayersTimesGpus = 256;
    constexpr int kFewest = 8;
    const int layers = std::min(recorded, task.model->moe_layers());
    const int count = std::min(layers, std::max(kFewest, kLayersTimesGpus / task.input.gpus));
    std::vector<std::size_t> chosen;
    for (int i = 0; i < count; ++i)
        chosen.push_back(static_cast<std::size_t>((2 * i + 1) * layers / (2 * count)));
    return chosen;
}

Profile with_layers(const Profile& whole, const std::vector<std::size_t>& kept) {
    Profile part;
    part.name = whole.name;
    part.layers = static_cast<int>(kept.size());
    part.experts = whole.experts;
    part.top_k = whole.top_k;
    part.tokens = whole.tokens;
    part.model_layers = whole.model_layers;
    const auto size = whole.tokens * whole.top_k;
    for (const std::size_t layer : kept) {
        const auto first = whole.chosen.begin() + static_cast<std::ptrdiff_t>(layer) * size;
        part.chosen.insert(part.chosen.end(), first, first + size);
        part.layer_numbers.push_back(whole.layer_numbers[layer]);
    }
    count_choices(part);
    return part;
}

/// What of a recording is simulated; the layouts keep the same layers.
Profile simulated_part(const PlaceTask& task, std::vector<NamedLayout>& layouts,
                       std::vector<std::string>& notes) {
    const Profile whole = with_tokens(task, notes);
    const std::vector<std::size_t> kept = chosen_layers(task, whole.layers);
    for (NamedLayout& one : layouts) {
        const ExpertLayout all = one.layout;
        one.layout.on.clear();
        one.layout.layer_numbers.clear();
        for (const std::size_t layer : kept) {
            one.layout.on.push_back(all.on[layer]);
            one.layout.layer_numbers.push_back(all.layer_numbers[layer]);
        }
    }
    return with_layers(whole, kept);
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
Simulated simulate(const PlaceTask& task, std::vector<NamedLayout> layouts,
                   const std::function<void(std::size_t, std::size_t)>& pieces) {
    Simulated made;
    const Profile profile = simulated_part(task, layouts, made.notes);
    for (std::size_t i = 0; i < task.systems.size(); ++i) {
        EffectOptions options;
        options.threads = task.options.threads;
        options.progress = [&](std::size_t done, std::size_t all) {
            pieces(i * all + done, task.systems.size() * all);
        };
        try {
            const std::vector<SystemSpec> one{task.systems[i]};
            PlacementEffect effect =
                placement_effect({task.machine, *task.model, profile, layouts, one}, options);
            if (!made.effect) {
                made.effect = std::move(effect);
                continue;
            }
            auto& all = made.effect->layouts;
            all.insert(all.end(), effect.layouts.begin(), effect.layouts.end());
        } catch (const InputError& error) {
            made.notes.push_back(
                fmt::format("not simulated under {}: {}", task.systems[i].name, error.what()));
        } catch (const Ended&) {
            made.notes.emplace_back("interrupted: not all systems were simulated");
            break;
        }
    }
    return made;
}

bool can_be_written(const PlaceTask& task, const Candidate& one, std::vector<std::string>& notes) {
    try {
        layout_text(one.result.layout, task.format);
        return true;
    } catch (const InputError& error) {
        notes.push_back(fmt::format("{} cannot be taken: {}", one.name, error.what()));
        return false;
    }
}

/// A layout's effect under the first system; null where that was not simulated.
const LayoutEffect* effect_of(const PlaceTask& task, const Simulated& made,
                              const std::string& layout) {
    return made.effect ? effect_of(*made.effect, layout, task.systems.front().name) : nullptr;
}

std::string taken_sentence(const LayoutEffect& own, const LayoutEffect& best) {
    return fmt::format(
        "Under {} a MoE layer takes {} µs with the layout of {} and {} µs with that of {} ({}), "
        "which is taken instead.",
        own.system, tenths(to_us(own.layer.mean)), own.layout, tenths(to_us(best.layer.mean)),
        best.layout, percent(-saved(own.layer.mean, best.layer.mean), true));
}

/// The place of the fastest in the list, whose last one was found by what was asked for.
std::size_t fastest(const PlaceTask& task, const std::vector<Candidate>& all, Simulated& made) {
    std::size_t taken = all.size() - 1;
    const LayoutEffect* const own = effect_of(task, made, all.back().name);
    if (own == nullptr || !searches(task.options)) return taken;
    const LayoutEffect* best = own;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        const LayoutEffect* const other = effect_of(task, made, all[i].name);
        if (other->moe_layers >= best->moe_layers) continue;
        if (task.options.max_moves) {
            made.notes.push_back(
                fmt::format("Under {} the layout of {} would be {:.3f} times as fast; it moves "
                            "more experts than --max-moves allows.",
                            own->system, other->layout, faster(*other, *own)));
            continue;
        }
        if (!can_be_written(task, all[i], made.notes)) continue;
        best = other;
        taken = i;
    }
    if (best != own) made.notes.insert(made.notes.begin(), taken_sentence(*own, *best));
    return taken;
}

}  // namespace

bool take_fastest(PlaceTask& task, Placed& placed,
                  const std::function<void(std::size_t, std::size_t)>& pieces) {
    std::vector<Candidate> all = candidates_of(task, placed.result);
    Simulated made = simulate(task, layouts_of(task, all), pieces);
    Candidate& taken = all[fastest(task, all, made)];
    double seconds = 0;
    for (const Candidate& one : all) seconds += one.result.seconds;
    if (!taken.options.bounds) {
        taken.options.bounds = true;
        taken.result = place(task.input, taken.options);
    }
    taken.result.seconds = seconds;
    taken.result.notes.insert(taken.result.notes.begin(), made.notes.begin(), made.notes.end());
    const bool another = taken.name != task.options.method;
    placed.effect = std::move(made.effect);
    placed.taken = taken.name;
    task.options = std::move(taken.options);
    placed.result = std::move(taken.result);
    return another;
}

}  // namespace moehub
