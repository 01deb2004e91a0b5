/// Tensor-parallel sub-layers to simulate with what they were made from, for titles and for JSON.
#pragma once
#include <moehub/tp.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

struct TpCase {
    std::string machine_name;  ///< preset or file, as asked for
    std::string model_name;
    std::vector<std::string> settings;  ///< "KEY=VALUE" that changed them; a model's as "model.KEY"

    Machine machine;  ///< of the size wanted
    Model model;
    std::int64_t tokens = 0;
    std::vector<SubLayer> parts;  ///< one, or several that are added up
    TpOptions options;

    /// Refers to this object.
    TpInput input() const { return {machine, model, tokens, parts.front()}; }
};

}  // namespace moehub
