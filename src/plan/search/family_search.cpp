// A member is not timed when it can neither be among the fastest so far nor on the front: by what
// it takes at least of time, and of memory. The one that saves nothing takes no longer at least
// than any other, so that it speaks for the family.
#include "plan/search/families.hpp"
#include "plan/search/search.hpp"
#include "plan/step_model.hpp"

#include <moehub/error.hpp>

#include <algorithm>

namespace moehub {
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
        double least;  ///< of memory
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

    /// Against what is known; `memory`: at least.
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
