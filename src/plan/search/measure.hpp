#pragma once
#include <moehub/training.hpp>
namespace moehub {
inline StepMemory memory_of(TrainingClock& clock, const ParallelLayout& layout) { return clock.step(layout).memory; }
inline double capacity_of(const TrainingRun& run) { return static_cast<double>(run.machine.gpu.hbm_capacity); }
}
