// A member is not timed when neither its speed nor its place on the front can matter: it is not
// among the fastest so far, and one on the front takes no longer than the member at least takes,
// and no more memory. What it at least takes is what those took that are never slower
// (families.hpp), first of all the one that saves nothing, whether it fits or not.
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

/// Who computes more may be cut into stages that happen to be more even: by up to 5 % of the step
/// in what was tried.
constexpr double kLuckOfTheCut = 0.93;

/// A member that was timed.
struct Timed {
    const Saving* saving;
    double seconds;
};

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
        const bool hopeless = result_.smallest->memory > capacity_;
        for (const Member& member : members_)
            if (!search_.prune || (!hopeless && matters(member)))
                time(member);
            else if (member.least > capacity_)
                ++result_.too_large;
        if (!result_.steps.empty()) result_.smallest.reset();
        std::stable_sort(result_.steps.begin(), result_.steps.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
        return std::move(result_);
    }

  private:
    struct Member {
        const Saving* saving;
        ParallelLayout layout;
        double least;  ///< of memory
    };

    void add(const Saving& saving) {
        ParallelLayout layout = with(family_, saving);
        if (std::string why = why_not(clock_.run(), layout); !why.empty()) {
            if (result_.refused.empty()) result_.refused = std::move(why);
            return;
        }
        const double least = least_memory(clock_.run(), layout);
        if (!result_.smallest || least < result_.smallest->memory)
            result_.smallest = SizedLayout{layout, least};
        members_.push_back({&saving, std::move(layout), least});
    }

    /// What is too large matters only as the first: it says how fast the others are at best.
    bool matters(const Member& member) const {
        if (member.least > capacity_) return timed_.empty();
        double seconds = 0;
        for (const Timed& one : timed_)
            if (never_slower(*one.saving, *member.saving))
                seconds = std::max(seconds, kLuckOfTheCut * one.seconds);
        return !search_.record.closed_to(family_.system, seconds) ||
               !search_.record.front.beats(seconds, member.least);
    }

    void time(const Member& member) {
        TrainingStep step = clock_.step(member.layout);
        ++result_.timed;
        timed_.push_back({member.saving, step.seconds});
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
    std::vector<Timed> timed_;
};

}  // namespace

FamilyResult FamilySearch::look_at(const ParallelLayout& family, TrainingClock& clock) const {
    try {
        return Members(*this, family, clock).look();
    } catch (const InputError& error) {  // a system that cannot run on so many GPUs
        FamilyResult refused;
        refused.refused = error.what();
        return refused;
    }
}

}  // namespace moehub
