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

/// How many of each there are: in the whole model, or in a piece of it.
using UnitCounts = std::array<int, kUnits>;

inline int count_of(const UnitCounts& counts, Unit unit) {
    return counts[static_cast<std::size_t>(unit)];
}

UnitCounts units_of(const TrainingRun& run);
int unit_count(const TrainingRun& run);

/// Megatron's own all-to-all, the system whose rows reach all GPUs that share an expert.
inline constexpr const char* kSharedExperts = "megatron-te";

/// The system that moves rows: the layout's, or the trainer's dispatcher, which knows whole experts
/// alone.
std::string exchange_of(const TrainingRun& run, const ParallelLayout& layout);

/// One way through a unit: seconds of one micro-batch on one GPU.
struct PassTime {
    ComputeWork work;
    double recomputed = 0;  ///< backward: compute for the second time
    double tp = 0;          ///< communication that nothing hides
    double cp = 0;
    double ep = 0;         ///< the layer under its system, beyond compute; with it repeated
    double ep_alone = 0;   ///< of that, rows underway: what another micro-batch's compute may hide
    double dp = 0;         ///< fsdp: gathering and summing beyond what compute hides
    double imbalance = 0;  ///< the fullest expert rank beyond the mean
    double host = 0;       ///< kernels wait to be issued
    double issue = 0;      ///< that the host takes to issue all of them

    double compute() const { return work.sum() + recomputed; }
    /// All that the GPU has to do, or waits for other GPUs.
    double device() const { return compute() + tp + cp + ep + dp + imbalance; }
    double seconds() const { return device() + host; }
};

struct UnitTime {
    PassTime forward;
    PassTime backward;
    double gradients = 0;  ///< of backward: gradients of weights
    int sms = 0;           ///< that the exchange of rows holds while it runs
};

using UnitTimes = std::array<UnitTime, kUnits>;

/// Cuts the model's units into pieces, in order, so that the longest piece is as short as it can
/// be. As many pieces as asked for, none empty.
std::vector<UnitCounts> cut(const UnitCounts& all, int pieces,
                            const std::array<double, kUnits>& seconds);

}  // namespace moehub
