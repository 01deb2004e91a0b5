/// A model as a row of units, from embedding to head, and what one micro-batch takes in each under
/// a parallel layout.
#pragma once
#include "plan/communication.hpp"
#include "plan/layer_work.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace moehub {

enum class Unit { embedding, dense, moe, mtp, head };
inline constexpr std::size_t kUnits = 5;

/// How many of each unit there are: in the whole model, or in a piece of it.
using UnitCounts = std::array<int, kUnits>;

inline int count_of(const UnitCounts& counts, Unit unit) {
    return counts[static_cast<std::size_t>(unit)];
}

/// Σ counts · value_of(unit's index), added to `start` unit by unit.
template <class ValueOf>
double sum_over(const UnitCounts& counts, const ValueOf& value_of, double start = 0) {
    for (std::size_t u = 0; u < kUnits; ++u) start += counts[u] * value_of(u);
    return start;
}

UnitCounts units_of(const TrainingRun& run);
int unit_count(const TrainingRun& run);

inline std::int64_t sequence_of(const TrainingRun& run) {
    return run.sequence > 0 ? run.sequence : run.model.sequence;
}

/// Micro-batches of a step; 0 where the batch does not divide.
std::int64_t micro_batches_of(const TrainingRun& run, const ParallelLayout& layout);

/// Which pieces of the model stage `stage` of `stages` has; DualPipe's stages have two.
std::vector<std::size_t> pieces_of_stage(std::size_t stage, std::size_t stages, std::size_t pieces,
                                         PassOverlap overlap);

/// Megatron's own all-to-all, the system whose rows reach all GPUs that share an expert.
inline constexpr const char* kSharedExperts = "megatron-te";

/// The system that moves rows: the layout's, or the trainer's dispatcher, which knows whole experts
/// alone.
std::string exchange_of(const TrainingRun& run, const ParallelLayout& layout);

/// One way through a unit: seconds of one micro-batch on one GPU.
struct PassTime {
    ComputeWork work;
    double recomputed = 0;  ///< seconds that backward computes for the second time
    double tp = 0;          ///< seconds of communication that nothing hides
    double cp = 0;
    double ep = 0;  ///< seconds of the layer under its system, beyond compute; with it repeated
    double ep_alone =
        0;          ///< rows underway, a part of ep: what another micro-batch's compute may hide
    double dp = 0;  ///< seconds of fsdp's gathering and summing beyond what compute hides
    double imbalance = 0;  ///< seconds of the fullest expert rank beyond the mean
    double host = 0;       ///< seconds that kernels wait to be issued
    double issue = 0;      ///< seconds that the host takes to issue all kernels

    double compute() const { return work.sum() + recomputed; }
    /// Seconds in which the GPU works, or waits for other GPUs.
    double device() const { return compute() + tp + cp + ep + dp + imbalance; }
    double seconds() const { return device() + host; }
};

struct UnitTime {
    PassTime forward;
    PassTime backward;
    double gradients = 0;  ///< seconds of gradients of weights, a part of backward
    int sms = 0;           ///< SMs that the exchange of rows holds while it runs
};

using UnitTimes = std::array<UnitTime, kUnits>;

/// Cuts the model's units into pieces, in order, so that the longest piece is as short as it can
/// be. As many pieces as asked for, none empty.
std::vector<UnitCounts> cut(const UnitCounts& all, int pieces,
                            const std::array<double, kUnits>& seconds);

}  // namespace moehub
