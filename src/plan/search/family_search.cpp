// A member is not timed when it can neither be among the fastest so far nor on the front: by what
// it takes at least of time, and of memory. The one that saves nothing takes no longer at least
// than any other, so that it speaks for the family.
#include "plan/search/family_search.hpp"

#include "plan/search/least_memory.hpp"

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

}  // namespace

FamilyResult FamilySearch::look_at(const ParallelLayout& family, TrainingClock& clock) const {
    return Members(*this, family, clock).look();
}

}  // namespace moehub
