#include "plan/search/record.hpp"

#include <algorithm>

namespace moehub {

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

}  // namespace moehub
