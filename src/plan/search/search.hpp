/// What a search over parallel layouts consists of: the layouts that a run may have, in families
/// (members of a family differ in what is recomputed and what waits on the host alone, so that what
/// cuts the work is looked at once); clocks for its threads, what it has found so far, one family
/// looked at, and the last round.
#pragma once
#include "plan/units.hpp"

#include <moehub/plan.hpp>
#include <moehub/training.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// One layout of each family, with nothing recomputed and nothing on the host unless these are
/// fixed. Values that are fixed are taken as they are; all others divide what they have to, so that
/// why_not() refuses few.
std::vector<ParallelLayout> layout_families(const TrainingRun& run, const PlanOptions& options);

/// What members of a family differ in.
struct Saving {
    Recompute recompute;
    Offload offload;
};

/// The savings that are searched; the first saves least.
std::vector<Saving> savings(const TrainingRun& run, const PartialLayout& fixed);

// Values that each key of a parallel layout may take.

/// A whole number of a parallel layout, and its values where those before it are chosen.
struct Axis {
    int ParallelLayout::*member;
    std::optional<int> PartialLayout::*fixed;
    std::vector<int> (*values)(const TrainingRun& run, const ParallelLayout& chosen);
};

/// Axes in the order in which they are to be chosen.
const std::vector<Axis>& layout_axes();

/// Values of sharding: where nothing is left to share, it changes nothing: zero1 alone.
std::vector<Sharding> sharding_values(const TrainingRun& run, const ParallelLayout& chosen);
std::vector<PassOverlap> overlap_values(const TrainingRun& run, const ParallelLayout& chosen);

/// Bytes that some stage's GPUs take at least, however the model is cut.
double least_memory(const TrainingRun& run, const ParallelLayout& layout);

/// A layout and what it takes of memory at least.
struct SizedLayout {
    ParallelLayout layout;
    double memory = 0;
};

/// The fastest steps so far, at most `room`; of equals the first.
class Fastest {
  public:
    explicit Fastest(std::size_t room) : room_(room) {}

    void add(const TrainingStep& step);
    /// Whether no step that takes so long gets in.
    bool closed_to(double seconds) const {
        return room_ == 0 || (steps_.size() == room_ && seconds >= steps_.back().seconds);
    }
    const std::vector<TrainingStep>& steps() const { return steps_; }

  private:
    std::size_t room_;
    std::vector<TrainingStep> steps_;  ///< fastest first
};

/// Steps that no other beats in both speed and memory; of equals the first.
class Front {
  public:
    void add(const TrainingStep& step);
    /// Whether a step on the front takes neither longer nor more memory.
    bool beats(double seconds, double memory) const;
    const std::vector<TrainingStep>& steps() const { return steps_; }

  private:
    std::vector<TrainingStep> steps_;  ///< fastest and largest first
};

struct SearchRecord {
    explicit SearchRecord(std::size_t most) : room(most) {}

    /// The fastest of one system: the best of each is kept.
    Fastest& fastest_of(const std::string& system) {
        return fastest.try_emplace(system, room).first->second;
    }
    /// Whether a layout of that system that takes so long is none of the fastest.
    bool closed_to(const std::string& system, double seconds) const {
        const auto found = fastest.find(system);
        return found != fastest.end() && found->second.closed_to(seconds);
    }

    std::size_t room;
    std::map<std::string, Fastest> fastest = {};
    Front front = {};
    std::vector<SizedLayout> smallest =
        {};  ///< the smallest of each family, as long as nothing fits
};

/// Clocks for threads: each remembers what its kernels take, so that one is handed on rather than
/// copied anew.
class ClockPool {
  public:
    explicit ClockPool(const TrainingClock& first) : first_(first) {}

    /// Calls work(clock) with a clock that no other thread uses meanwhile.
    template <class Work>
    void with_clock(const Work& work) {
        std::unique_ptr<TrainingClock> clock = take();
        work(*clock);
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(clock));
    }

  private:
    std::unique_ptr<TrainingClock> take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return std::make_unique<TrainingClock>(first_);
        std::unique_ptr<TrainingClock> clock = std::move(free_.back());
        free_.pop_back();
        return clock;
    }

    const TrainingClock& first_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<TrainingClock>> free_;
};

struct FamilyResult {
    std::string refused;                  ///< reason of why_not, of all members; empty: allowed
    std::string cannot_run;               ///< what the system says; empty: it runs
    std::vector<TrainingStep> steps;      ///< timed steps that fit; the first is the fastest
    std::optional<SizedLayout> smallest;  ///< smallest by least_memory(), where nothing fits
    std::size_t layouts = 0;
    std::size_t timed = 0;
    std::size_t too_large = 0;
};

struct FamilySearch {
    const std::vector<Saving>& savings;
    const SearchRecord& record;  ///< does not change meanwhile
    bool prune = true;

    /// Times the members of a family, given as layout_families gives it.
    FamilyResult look_at(const ParallelLayout& family, TrainingClock& clock) const;
};

/// Fills the plan's best, systems, front and, where nothing fits, nearest.
void add_finalists(ClockPool& clocks, const PlanOptions& options, const SearchRecord& record,
                   Plan& plan);

}  // namespace moehub
