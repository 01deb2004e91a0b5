/// What a search has found so far, and what can therefore not come of the rest.
#pragma once
#include <moehub/training.hpp>

#include <cstddef>
#include <limits>
#include <map>
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

}  // namespace moehub
