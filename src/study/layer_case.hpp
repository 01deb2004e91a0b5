/// One layer to simulate with everything it was made from, for titles and for JSON.
#pragma once
#include <moehub/layer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Where a layer's experts stand by a file (`--layout`).
struct LayoutUse {
    std::string file;
    int layer = 0;      ///< of the MoE layers, from 0
    int number = 0;     ///< the same in the model
    bool mean = false;  ///< chosen as the one that stands for all
};

struct LayerCase {
    std::string machine_name;  ///< preset or file, as asked for
    std::string model_name;
    std::vector<std::string> settings;  ///< "KEY=VALUE" that changed them; a model's as "model.KEY"
    std::string routing_name;           ///< generator or trace
    std::optional<std::uint64_t> seed;  ///< of the generator
    std::optional<int> trace_layer;     ///< of the trace
    int replicas = 0;                   ///< redundant copies of experts
    std::optional<LayoutUse> layout;    ///< without it experts stand in order
    Software software;                  ///< asked for, of all systems

    Machine machine;  ///< of the size wanted
    Model model;
    Routing routing;
    Placement placement;
    LayerOptions options;

    /// Refers to this object.
    LayerInput input() const { return {machine, model, routing, placement}; }
};

}  // namespace moehub
