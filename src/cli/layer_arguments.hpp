/// The options that describe a layer to simulate, shared by `moehub compare`, `run` and `model`.
#pragma once
#include "cli/command.hpp"
#include "cli/html_output.hpp"
#include "cli/trace.hpp"
#include "study/layer_case.hpp"
#include "study/tp_case.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours. What is not typed is as usual for
/// the kind of layer.
struct LayerArguments {
    std::optional<std::string> layer_type;
    std::optional<std::string> sub_layer;
    std::optional<std::string> machine;
    std::optional<std::string> model;
    std::optional<std::string> gpus;
    std::optional<std::string> tokens;
    std::optional<std::string> routing;
    std::optional<std::string> seed;
    std::optional<std::string> layer;
    std::optional<std::string> pass;
    std::string grain = "row";
    std::vector<std::string> settings;
    std::string kernels = "torch";
    std::optional<std::string> host;
    bool fused_activation = false;
    bool fp8 = false;
    std::optional<std::string> tensor_parallel;
    std::optional<std::string> layout;
    std::optional<std::string> replicas;
    std::optional<std::string> replica_policy;
    std::optional<std::string> region_rows;
    std::optional<std::string> page_rows;
    std::optional<std::string> page_pool;
    bool verify = false;
    bool json = false;
    std::string output;
    HtmlOutput html;
    TraceArguments trace;
};

/// `--layer-type` and `--sublayer`.
void add_layer_type_options(std::vector<Option>& options, LayerArguments& arguments);
void add_layer_options(std::vector<Option>& options, LayerArguments& arguments);
void add_pass_option(std::vector<Option>& options, LayerArguments& arguments);

/// The software that all systems are to have.
Software software_of(const LayerArguments& arguments);
void add_software_options(std::vector<Option>& options, LayerArguments& arguments);

/// The systems with what `--set system.NAME.KEY=VALUE` changes. Throws InputError.
std::vector<SystemSpec> load_systems(const LayerArguments& arguments,
                                     const std::vector<std::string>& names);

/// Which layer of a layout is simulated where `--layer` does not say.
enum class LayoutLayer { first, mean };

/// Loads what is named and makes the routing and the placement. Throws InputError.
LayerCase load_layer(const LayerArguments& arguments, LayoutLayer usual = LayoutLayer::first);

/// Whether tensor-parallel sub-layers are asked for. Throws InputError for options that do not go
/// together with the type of layer.
bool wants_tp(const LayerArguments& arguments);
/// Loads what is named. With `several`, "all" stands for a dense layer's four. Throws InputError.
TpCase load_tp(const LayerArguments& arguments, bool several);

/// Whether the model has no experts. Throws InputError.
bool is_dense(const LayerArguments& arguments);
/// As load_tp, for a whole model; throws InputError for options that only experts have, too.
TpCase load_dense(const LayerArguments& arguments);

/// With what `--gpus` and `--set` change. Throw InputError.
Machine machine_of(const LayerArguments& arguments, const std::string& name);
Model model_of(const LayerArguments& arguments, const std::string& name);

/// What was changed, for the reader of a result: `--set`s, and the kernel library if not PyTorch's.
std::vector<std::string> settings_of(const LayerArguments& arguments);
inline constexpr std::int64_t kMostTokens = 1 << 24;  ///< far more than a layer is ever run on

}  // namespace moehub
