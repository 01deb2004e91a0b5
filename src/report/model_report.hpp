/// Times of whole models for people and for programs.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"
#include "study/layer_case.hpp"
#include "study/tp_case.hpp"

#include <moehub/model_time.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// A model that was timed under several systems.
struct ModelCase {
    LayerCase layer;
    ModelOptions options;
    std::vector<ModelTime> times;
};

/// A dense model that was.
struct DenseCase {
    TpCase layer;
    ModelOptions options;
    std::vector<ModelTime> times;
};

/// What was simulated: the layer, the model around it, and what differs from the usual.
std::string head_text(const ModelCase& model);
std::string head_text(const DenseCase& model);

/// A table per system: its parts, how often, how long, and their shares as bars.
std::string parts_text(const std::vector<ModelTime>& times, bool training, const TextStyle& style);

/// The systems side by side, end to end; `baseline` as baseline_of() takes it.
std::string table_text(const std::vector<ModelTime>& times, std::string_view baseline,
                       const TextStyle& style);

/// Each system's time as a bar divided into compute, exposed communication and host.
std::string bars_text(const std::vector<ModelTime>& times, const TextStyle& style);

/// What was checked in the simulated layers, forward.
std::string checks_text(const ModelCase& model);
std::string checks_text(const DenseCase& model);

/// The model, "results", one per system, and under "moe_layer" what the simulations of the layer
/// gave, as `moehub compare` prints it; times in µs, sizes in bytes. Of dense models "sub_layers"
/// is what `moehub compare --layer-type tp` prints.
Json model_json(const ModelCase& model);
Json model_json(const DenseCase& model);

}  // namespace moehub
