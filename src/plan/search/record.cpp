// What a search has found, and its last round: the best by tables are simulated exactly and sorted
// again.
#include "base/parallel.hpp"
#include "plan/search/search.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <optional>

namespace moehub {
namespace {

constexpr std::size_t kOfEachSystem = 2;  ///< at least, so that each has its best

bool faster(const TrainingStep& one, const TrainingStep& other) {
    return one.seconds < other.seconds;
}

/// At most `most` of the front, evenly along it, both ends included.
std::vector<TrainingStep> thinned(const std::vector<TrainingStep>& front, std::size_t most) {
    if (front.size() <= most) return front;
    std::vector<TrainingStep> out;
    for (std::size_t i = 0; i < most; ++i)
        out.push_back(front[most == 1 ? 0 : i * (front.size() - 1) / (most - 1)]);
    return out;
}

void add_new(std::vector<TrainingStep>& list, const TrainingStep& step) {
    const bool known = std::any_of(list.begin(), list.end(), [&](const TrainingStep& one) {
        return one.layout == step.layout;
    });
    if (!known) list.push_back(step);
}

/// The fastest of all systems, and of each.
std::vector<TrainingStep> fastest_of(const SearchRecord& record) {
    std::vector<TrainingStep> all;
    std::vector<TrainingStep> of_each;
    for (const auto& [system, fastest] : record.fastest) {
        const std::vector<TrainingStep>& steps = fastest.steps();
        all.insert(all.end(), steps.begin(), steps.end());
        of_each.insert(
            of_each.end(), steps.begin(),
            steps.begin() + static_cast<std::ptrdiff_t>(std::min(steps.size(), kOfEachSystem)));
    }
    std::stable_sort(all.begin(), all.end(), faster);
    if (all.size() > record.room) all.resize(record.room);
    for (const TrainingStep& step : of_each) add_new(all, step);
    return all;
}

void simulate(ClockPool& clocks, const PlanOptions& options, std::vector<TrainingStep>& steps) {
    run_parallel(steps.size(),
                 [&](std::size_t i) {
                     clocks.with_clock(
                         [&](TrainingClock& clock) { steps[i] = clock.exact(steps[i].layout); });
                 },
                 {.threads = options.threads, .progress = options.progress});
}

/// None where its system cannot run it.
std::optional<TrainingStep> step_of(TrainingClock& clock, const ParallelLayout& layout) {
    try {
        return clock.step(layout);
    } catch (const InputError&) {
        return {};
    }
}

/// In the order of their bounds, until those that follow cannot be smaller.
std::vector<TrainingStep> nearest_of(TrainingClock& clock, const SearchRecord& record,
                                     std::size_t most) {
    std::vector<SizedLayout> order = record.smallest;
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.memory < b.memory; });
    std::vector<TrainingStep> nearest;
    for (const SizedLayout& one : order) {
        if (nearest.size() == most && nearest.back().memory.sum() <= one.memory) break;
        const std::optional<TrainingStep> step = step_of(clock, one.layout);
        if (!step) continue;
        const auto behind = std::upper_bound(
            nearest.begin(), nearest.end(), step->memory.sum(),
            [](double sum, const TrainingStep& other) { return sum < other.memory.sum(); });
        nearest.insert(behind, *step);
        if (nearest.size() > most) nearest.pop_back();
    }
    return nearest;
}

}  // namespace

void Fastest::add(const TrainingStep& step) {
    if (closed_to(step.seconds)) return;
    const auto behind = std::upper_bound(
        steps_.begin(), steps_.end(), step.seconds,
        [](double seconds, const TrainingStep& one) { return seconds < one.seconds; });
    steps_.insert(behind, step);
    if (steps_.size() > room_) steps_.pop_back();
}

bool Fastest::closed_to(double seconds) const {
    return room_ == 0 || (steps_.size() == room_ && seconds >= steps_.back().seconds);
}

bool Front::beats(double seconds, double memory) const {
    // The smallest of those that are as fast is the last of them.
    const auto slower =
        std::upper_bound(steps_.begin(), steps_.end(), seconds,
                         [](double limit, const TrainingStep& one) { return limit < one.seconds; });
    return slower != steps_.begin() && std::prev(slower)->memory.sum() <= memory;
}

void Front::add(const TrainingStep& step) {
    const double memory = step.memory.sum();
    if (beats(step.seconds, memory)) return;
    const auto from = std::lower_bound(
        steps_.begin(), steps_.end(), step.seconds,
        [](const TrainingStep& one, double seconds) { return one.seconds < seconds; });
    const auto to = std::find_if(
        from, steps_.end(), [&](const TrainingStep& one) { return one.memory.sum() < memory; });
    steps_.insert(steps_.erase(from, to), step);
}

Fastest& SearchRecord::fastest_of(const std::string& system) {
    return fastest.try_emplace(system, room).first->second;
}

bool SearchRecord::closed_to(const std::string& system, double seconds) const {
    const auto found = fastest.find(system);
    return found != fastest.end() && found->second.closed_to(seconds);
}

void add_finalists(ClockPool& clocks, const PlanOptions& options, const SearchRecord& record,
                   Plan& plan) {
    plan.best = fastest_of(record);
    const std::size_t candidates = plan.best.size();
    std::vector<TrainingStep> steps = plan.best;
    for (const TrainingStep& step : thinned(record.front.steps(), options.top))
        add_new(steps, step);
    if (options.exact) simulate(clocks, options, steps);

    Front front;
    for (const TrainingStep& step : steps) front.add(step);
    plan.front = front.steps();
    plan.best.assign(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(candidates));
    std::stable_sort(plan.best.begin(), plan.best.end(), faster);
    for (const std::string& system : options.systems) {
        const auto found =
            std::find_if(plan.best.begin(), plan.best.end(),
                         [&](const TrainingStep& one) { return one.layout.system == system; });
        if (found != plan.best.end()) plan.systems.push_back(*found);
    }
    if (plan.best.size() > options.top) plan.best.resize(options.top);
    if (plan.best.empty())
        clocks.with_clock(
            [&](TrainingClock& clock) { plan.nearest = nearest_of(clock, record, options.top); });
}

}  // namespace moehub
