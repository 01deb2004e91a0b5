// A member is not timed when neither its speed nor its place on the front can matter:
//   it is not the family's fastest, as one that never is slower fits, or the family has no chance
//   against the fastest so far; and
//   one on the front takes no longer than the member at least takes, and no more memory.
// What a member at least takes is what those took that are never slower (families.hpp), first of
// all the one that saves nothing, whether it fits or not.
#include "plan/search/family_search.hpp"

#include "plan/search/measure.hpp"

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

/// A member that was timed.
struct Timed {
    const Saving* saving;
    double seconds;
    bool fits;
};

class Members {
  public:
    Members(const FamilySearch& search, const ParallelLayout& family, TrainingClock& clock)
        : search_(search), family_(family), clock_(clock) {}

    FamilyResult look() {
        result_.layouts = search_.savings.size();
        std::vector<double> memories;
        for (const Saving& saving : search_.savings) memories.push_back(memory_of(saving));
        if (result_.too_large == result_.layouts) return std::move(result_);
        result_.smallest.reset();
        for (std::size_t i = 0; i < memories.size(); ++i) {
            const Saving& saving = search_.savings[i];
            const bool is_bound = i == 0 && search_.prune;
            const bool fits = memories[i] <= capacity_of(clock_.run());
            if (!fits && !is_bound) continue;
            if (search_.prune && !matters(saving, memories[i])) continue;
            time(saving, fits);
        }
        std::stable_sort(result_.steps.begin(), result_.steps.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
        return std::move(result_);
    }

  private:
    double memory_of(const Saving& saving) {
        const ParallelLayout layout = with(family_, saving);
        const double memory = moehub::memory_of(clock_, layout).sum();
        if (memory > capacity_of(clock_.run())) {
            ++result_.too_large;
            if (!result_.smallest || memory < result_.smallest->memory)
                result_.smallest = SizedLayout{layout, memory};
        }
        return memory;
    }

    bool matters(const Saving& saving, double memory) const {
        double least = 0;
        bool faster_fits = false;
        for (const Timed& one : timed_) {
            if (!never_slower(*one.saving, saving)) continue;
            least = std::max(least, one.seconds);
            faster_fits = faster_fits || one.fits;
        }
        if (!faster_fits && !search_.record.closed_to(family_.system, least)) return true;
        return !search_.record.front.beats(least, memory);
    }

    void time(const Saving& saving, bool fits) {
        TrainingStep step = clock_.step(with(family_, saving));
        ++result_.timed;
        timed_.push_back({&saving, step.seconds, fits});
        if (fits) result_.steps.push_back(std::move(step));
    }

    const FamilySearch& search_;
    const ParallelLayout& family_;
    TrainingClock& clock_;
    FamilyResult result_;
    std::vector<Timed> timed_;
};

}  // namespace

FamilyResult FamilySearch::look_at(const ParallelLayout& family, TrainingClock& clock) const {
    FamilyResult refused;
    refused.refused = why_not(clock.run(), family);
    if (!refused.refused.empty()) return refused;
    try {
        return Members(*this, family, clock).look();
    } catch (const InputError& error) {  // a system that cannot run on so many GPUs
        refused.refused = error.what();
        return refused;
    }
}

}  // namespace moehub
