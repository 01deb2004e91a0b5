// Which trainer a published run is of, and what the planner chooses where a row says nothing.
#include "study/training_runs.hpp"

#include <moehub/error.hpp>
#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr const char* kNewest = "megatron-26.04";  ///< of runs whose source no trainer names

/// Length of the longest part of the list that is in the text; 0: none is.
std::size_t longest_part(std::string_view list, std::string_view text) {
    std::size_t longest = 0;
    for (const std::string& part : parts_of_list(list))
        if (text.find(part) != std::string_view::npos) longest = std::max(longest, part.size());
    return longest;
}

/// Of all that was searched.
struct Found {
    std::optional<TrainingStep> fastest;   ///< that fits
    std::optional<TrainingStep> smallest;  ///< when none does
};

void search(const TrainingClock& clock, const PartialLayout& fixed, Found& found) {
    PlanOptions options;
    options.fixed = fixed;
    options.top = 1;
    options.exact = false;
    const Plan plan = plan_training(clock, options);
    if (!plan.best.empty() &&
        (!found.fastest || plan.best.front().seconds < found.fastest->seconds))
        found.fastest = plan.best.front();
    if (!plan.nearest.empty() &&
        (!found.smallest || plan.nearest.front().memory.sum() < found.smallest->memory.sum()))
        found.smallest = plan.nearest.front();
}

/// With each of the overlaps that the trainer can do. One that no layout of the row allows does not
/// count, unless it is the last.
void search_overlaps(const TrainingClock& clock, const PartialLayout& fixed, Found& found) {
    if (fixed.overlap) return search(clock, fixed, found);
    const TrainingRun& run = clock.run();
    const TrainerCosts& costs = run.trainer.costs(run.machine.gpu.generation);
    std::string why = "the trainer names no overlaps";
    for (const std::string& overlap : parts_of_list(costs.overlaps)) {
        try {
            search(clock, parse_partial_layout("overlap=" + overlap, fixed), found);
        } catch (const InputError& error) {
            why = error.what();
        }
    }
    if (!found.fastest && !found.smallest) throw InputError(why);
}

TrainingStep best_step(const TrainingClock& clock, const PartialLayout& fixed) {
    Found found;
    PartialLayout kept = fixed;
    kept.offload = Offload{};
    search_overlaps(clock, kept, found);
    if (found.fastest) return *found.fastest;
    Found offloaded;
    search_overlaps(clock, fixed, offloaded);
    return offloaded.fastest ? *offloaded.fastest : *found.smallest;
}

}  // namespace

RunTrainer trainer_of(const PublishedRun& run) {
    const std::string about =
        fmt::format("{} {} {} {}", run.model, run.machine, run.precision, run.note);
    RunTrainer best{kNewest, false};
    std::pair<std::size_t, std::size_t> longest{0, 0};
    for (const std::string& name : preset_names("trainers")) {
        const TrainerSpec trainer = load_trainer(name);
        const std::size_t source = longest_part(trainer.sources, run.source);
        const std::size_t note = longest_part(trainer.notes, about);
        if (source == 0 || (note == 0 && !trainer.notes.empty())) continue;
        if (best.known && std::pair{source, note} <= longest) continue;
        best = {name, true};
        longest = {source, note};
    }
    return best;
}

const PublishedAnswer& RunAnswers::answer(const PublishedRun& run) {
    const RunTrainer trainer = trainer_of(run);
    return answer(run, trainer, load_trainer(trainer.name));
}

TrainingClock RunAnswers::clock(const PublishedRun& row, const TrainerSpec& trainer) {
    TrainingRun run = training_run(row, trainer, machine_);
    std::shared_ptr<TrainingClock>& first = clocks_[fmt::format(
        "{} {} {} {}", row.model, row.machine, row.gpus, to_string(run.routing))];
    if (!first) first = std::make_shared<TrainingClock>(run);
    return {std::move(run), *first};
}

const PublishedAnswer& RunAnswers::answer(const PublishedRun& row, const RunTrainer& named,
                                          const TrainerSpec& trainer) {
    const TrainingClock timed = clock(row, trainer);
    const TrainingRun& run = timed.run();
    const PartialLayout fixed = fixed_layout(row, trainer);
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {}\n{}", row.model, row.machine, row.gpus,
                    row.precision, run.sequence, run.global_batch, to_string(run.routing), run.mtp,
                    to_text(fixed), to_toml(trainer));
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = {named, best_step(timed, fixed)};
}

}  // namespace moehub
