/// What programs ask for, of a layer and of a system's parameters.
#pragma once
#include <moehub/layer.hpp>

namespace moehub::systems {

/// What a program asks for beyond what every layer needs.
struct Needs {
    bool one_gpu = false;        ///< which has all experts
    bool one_node = false;       ///< all GPUs reach each other's memory
    bool in_switch = false;      ///< switches that multicast and reduce
    bool whole_experts = false;  ///< no tensor parallelism inside experts
    bool even_experts = false;   ///< the same number of experts on every GPU
    bool computes = false;       ///< rows do not move in steps of their own
    bool sends = false;          ///< SMs that read rows and store them
    bool combines = false;       ///< SMs that load sums of results
    bool spare_sms = false;      ///< SMs beside those that communication holds
    bool one_kernel = false;     ///< all of it, so there is none between the GEMMs
    bool as_sent = false;        ///< experts read rows as they were sent
    bool one_piece = false;      ///< regions have room for every token, in one piece
    bool plain = false;          ///< BF16, and no kernel that does two things
};

/// Throws InputError, one line, when the layer or the system does not have what is needed.
void check_needs(const LayerInput& in, const SystemSpec& system, const Needs& needs,
                 const LayerOptions& options);

}  // namespace moehub::systems
