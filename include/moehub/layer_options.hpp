/// How a layer is simulated, whichever the system.
#pragma once
#include <moehub/collective.hpp>
#include <moehub/timeline.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <functional>

namespace moehub {

/// Which copy of a replicated expert a row goes to.
enum class ReplicaPolicy { round_robin, least_loaded };

enum class Pass {
    forward,
    backward,  ///< training's way back: gradients of outputs to the experts, of inputs back
};

struct LayerOptions {
    Grain grain = Grain::row;
    int tensor_parallel = 1;  ///< GPUs that share the FFN of each expert; a divisor of the GPUs
    ReplicaPolicy replicas = ReplicaPolicy::round_robin;
    std::int64_t region_rows = 0;  ///< rows of an expert's region; 0: enough for every token
    int page_rows = 0;             ///< regions grow by pages of so many rows; 0: all at once
    Bytes page_pool = 0;           ///< bytes of one GPU for all its pages; 0: no limit
    Pass pass = Pass::forward;
    bool recorded = false;  ///< forward: autograd notes every operator for the way back
    bool router = true;     ///< false: tokens come with their experts chosen
    bool compute = true;    ///< false: only rows move; routing and experts take no time
    bool verify = false;    ///< rows carry numbers, compared with the reference layer
    TimelineOptions timeline = {};
    /// Called, by the thread that simulates, whenever the layer must be simulated once more: an
    /// eager host's lead over its GPU is found by up to 13 rounds. May be empty; no number depends
    /// on it.
    std::function<void()> another_round = {};
};

}  // namespace moehub
