// What a search has found, and its last round: the best by tables are simulated exactly and sorted
// again. And one family looked at.
#include "base/parallel.hpp"
#include "plan/search/search.hpp"
#include "plan/step_model.hpp"

#include <moehub/error.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr std::size_t kOfEachSystem = 2;  ///< fewest layouts of each system

bool faster(const TrainingStep& one, const TrainingStep& other) {
    return one.seconds < other.seconds;
}

/// Steps of the front: at most `most`, evenly along it, both ends included.
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

/// The fastest steps of all systems, and of each.
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

/// The step of a layout; none where its system cannot run it.
std::optional<TrainingStep> step_of(TrainingClock& clock, const ParallelLayout& layout) {
    try {
        return clock.step(layout);
    } catch (const InputError&) {
        return {};
    }
}

/// Steps of layouts in the order of their bounds, until what follows cannot be smaller.
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

// A member is not timed when it can neither be among the fastest so far nor on the front: by what
// it takes at least of time, and of memory. The one that saves nothing takes no longer at least
// than any other, so that it speaks for the family.

namespace {

ParallelLayout with(const ParallelLayout& family, const Saving& saving) {
    ParallelLayout layout = family;
    layout.recompute = saving.recompute;
    layout.offload = saving.offload;
    return layout;
}

class Members {
  public:
    Members(const FamilySearch& search, const ParallelLayout& family, TrainingClock& clock)
        : search_(search),
          family_(family),
          clock_(clock),
          capacity_(static_cast<double>(clock.run().machine.gpu.hbm_capacity)) {}

    FamilyResult look() {
        for (const Saving& saving : search_.savings) add(saving);
        result_.layouts = members_.size();
        if (members_.empty()) return std::move(result_);
        result_.refused.clear();
        try {
            time_members();
        } catch (const InputError& error) {  // a system that cannot run on so many GPUs
            result_.cannot_run = error.what();
            return std::move(result_);
        }
        if (!result_.steps.empty()) result_.smallest.reset();
        std::stable_sort(result_.steps.begin(), result_.steps.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
        return std::move(result_);
    }

  private:
    struct Member {
        ParallelLayout layout;
        double least;  ///< bytes of memory at least
    };

    void time_members() {
        const double smallest = result_.smallest->memory;
        const bool hopeless =
            search_.prune && (smallest > capacity_ || loses(members_.front().layout, smallest));
        for (const Member& member : members_) {
            const bool too_large = member.least > capacity_;
            if (!search_.prune || !(hopeless || too_large || loses(member.layout, member.least)))
                time(member.layout);
            else if (too_large)
                ++result_.too_large;
        }
    }

    void add(const Saving& saving) {
        ParallelLayout layout = with(family_, saving);
        if (std::string why = why_not(clock_.run(), layout); !why.empty()) {
            if (result_.refused.empty()) result_.refused = std::move(why);
            return;
        }
        const double least = least_memory(clock_.run(), layout);
        if (!result_.smallest || least < result_.smallest->memory)
            result_.smallest = SizedLayout{layout, least};
        members_.push_back({std::move(layout), least});
    }

    /// Whether a layout loses against what is known; `memory`: what it takes at least.
    bool loses(const ParallelLayout& layout, double memory) {
        const double seconds = clock_.least_seconds(layout);
        return search_.record.closed_to(family_.system, seconds) &&
               search_.record.front.beats(seconds, memory);
    }

    void time(const ParallelLayout& layout) {
        TrainingStep step = clock_.step(layout);
        ++result_.timed;
        if (step.fits)
            result_.steps.push_back(std::move(step));
        else
            ++result_.too_large;
    }

    const FamilySearch& search_;
    const ParallelLayout& family_;
    TrainingClock& clock_;
    double capacity_;
    FamilyResult result_;
    std::vector<Member> members_;
};

// The stage that has most has at least the mean of all:
//
//     least = (weights + gradients + states + activations of the model) / stages + what every
//             stage has
//
// with activations of as many passes as the last stage holds, which holds fewest: one, or of an
// interleaved pipeline (pieces − 1) · stages + 1 of a piece.

/// Micro-batches whose activations a stage holds at least.
double fewest_held(const TrainingRun& run, const ParallelLayout& layout) {
    if (layout.vpp == 1) return 1;
    const double passes = (layout.vpp - 1.0) * layout.pp + 1;
    const auto all = static_cast<double>(micro_batches_of(run, layout) * layout.vpp);
    const double held = std::min(passes, all) / layout.vpp;
    return layout.offload.activations ? std::min(held, 2.0) : held;
}

}  // namespace

FamilyResult FamilySearch::look_at(const ParallelLayout& family, TrainingClock& clock) const {
    return Members(*this, family, clock).look();
}

double least_memory(const TrainingRun& run, const ParallelLayout& layout) {
    const StepMemory model = memory_of(run, layout, {units_of(run)}, {1});
    const StepMemory empty = memory_of(run, layout, {UnitCounts{}}, {1});
    const double shared_out = model.weights + model.gradients + model.optimizer +
                              model.activations * fewest_held(run, layout);
    const double share_of_margin = empty.margin / (empty.sum() - empty.margin);
    return (shared_out / layout.pp + empty.buffers + empty.workspace) * (1 + share_of_margin);
}

}  // namespace moehub
