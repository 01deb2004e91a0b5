/// What a search over parallel layouts consists of: clocks for its threads, what it has found so
/// far, one family looked at, and the last round.
#pragma once
#include "plan/search/families.hpp"

#include <moehub/plan.hpp>
#include <moehub/training.hpp>

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// What a layout at least takes of memory.
struct SizedLayout {
    ParallelLayout layout;
    double memory = 0;
};

/// The fastest so far, at most `room` of them; of equals the first.
class Fastest {
  public:
    explicit Fastest(std::size_t room) : room_(room) {}

    void add(const TrainingStep& step);
    /// Whether nothing that takes so long gets in.
    bool closed_to(double seconds) const;
    const std::vector<TrainingStep>& steps() const { return steps_; }

  private:
    std::size_t room_;
    std::vector<TrainingStep> steps_;  ///< fastest first
};

/// Steps that no other beats in both speed and memory; of equals the first.
class Front {
  public:
    void add(const TrainingStep& step);
    /// Whether one that is there takes neither longer nor more.
    bool beats(double seconds, double memory) const;
    const std::vector<TrainingStep>& steps() const { return steps_; }

  private:
    std::vector<TrainingStep> steps_;  ///< fastest, and largest, first
};

struct SearchRecord {
    explicit SearchRecord(std::size_t most) : room(most) {}

    /// By system, so that the best of each is known.
    Fastest& fastest_of(const std::string& system);
    /// Whether a layout of that system that takes so long is none of the fastest.
    bool closed_to(const std::string& system, double seconds) const;

    std::size_t room;
    std::map<std::string, Fastest> fastest = {};
    Front front = {};
    std::vector<SizedLayout> smallest = {};  ///< of each family, as long as nothing fits
};

/// Clocks for threads: each remembers what its kernels take, so that one is handed on rather than
/// copied anew.
class ClockPool {
  public:
    explicit ClockPool(const TrainingClock& first) : first_(first) {}

    /// Calls work(clock) with one that no other thread uses meanwhile.
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
    std::string refused;                  ///< why_not, of all its members; empty: allowed
    std::string cannot_run;               ///< what its system says; empty: it runs
    std::vector<TrainingStep> steps;      ///< that fit and were timed; the first is the fastest
    std::optional<SizedLayout> smallest;  ///< where nothing fits: by least_memory()
    std::size_t layouts = 0;
    std::size_t timed = 0;
    std::size_t too_large = 0;
};

struct FamilySearch {
    const std::vector<Saving>& savings;
    const SearchRecord& record;  ///< does not change meanwhile
    bool prune = true;

    /// `family`: as layout_families gives it.
    FamilyResult look_at(const ParallelLayout& family, TrainingClock& clock) const;
};

/// Fills best, systems, front and, where nothing fits, nearest.
void add_finalists(ClockPool& clocks, const PlanOptions& options, const SearchRecord& record,
                   Plan& plan);

}  // namespace moehub
