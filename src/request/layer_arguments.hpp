/// The options that describe a layer to simulate, shared by `moehub compare`, `run` and `model`.
#pragma once
#include "request/html_output.hpp"
#include "request/nouns.hpp"
#include "request/option.hpp"
#include "request/trace_output.hpp"
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
    std::optional<std::string> tokens_per_gpu;
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
    std::string baseline;  ///< of comparisons; empty: the usual
    bool verify = false;
    bool json = false;
    std::string output;
    HtmlOutput html;
    TraceArguments trace;
};

/// `--layer-type` and `--sublayer`.
void add_layer_type_options(std::vector<Option>& options, LayerArguments& arguments);
void add_layer_options(std::vector<Option>& options, LayerArguments& arguments);
/// `--baseline`.
Option baseline_option(std::string& baseline);
/// `--tokens` and `--tokens-per-gpu`; `usual` says what is without both.
void add_token_options(std::vector<Option>& options, LayerArguments& arguments,
                       const std::string& usual);
void add_pass_option(std::vector<Option>& options, LayerArguments& arguments);

/// The software that all systems are to have.
Software software_of(const LayerArguments& arguments);
void add_software_options(std::vector<Option>& options, LayerArguments& arguments);

/// The systems with what `--set system.NAME.KEY=VALUE` changes. Throws InputError.
std::vector<SystemSpec> load_systems(const LayerArguments& arguments,
                                     const std::vector<std::string>& names);
/// Those that are given, with the software that all are to have. Throws InputError.
std::vector<SystemSpec> given_systems(const LayerArguments& arguments,
                                      const std::vector<SystemSpec>& given);

/// Which layer of a layout is simulated where `--layer` does not say.
enum class LayoutLayer { first, mean };

/// Loads what is named and not given, and makes the routing and the placement. Throws InputError.
LayerCase load_layer(const LayerArguments& arguments, LayoutLayer usual = LayoutLayer::first,
                     const LayerNouns& given = {});

/// Whether tensor-parallel sub-layers are asked for. Throws InputError for options that do not go
/// together with the type of layer.
bool wants_tp(const LayerArguments& arguments);
/// Loads what is named and not given. With `several`, "all" stands for a dense layer's four. Throws
/// InputError.
TpCase load_tp(const LayerArguments& arguments, bool several, const LayerNouns& given = {});

/// Whether the model has no experts. Throws InputError.
bool is_dense(const LayerArguments& arguments, const LayerNouns& given = {});
/// As load_tp, for a whole model; throws InputError for options that only experts have, too.
TpCase load_dense(const LayerArguments& arguments, const LayerNouns& given = {});

/// Tokens over so many GPUs, if either option is there. Throws InputError.
std::optional<std::int64_t> asked_tokens(const LayerArguments& arguments, int gpus);

/// As given, else as named, with what `--gpus` and `--set` change. Throw InputError.
Machine machine_of(const LayerArguments& arguments, const std::string& name,
                   const LayerNouns& given = {});
Model model_of(const LayerArguments& arguments, const std::string& name,
               const LayerNouns& given = {});
/// What they are called: given, else typed, else as usual.
std::string machine_name(const LayerArguments& arguments, const LayerNouns& given,
                         const char* usual);
std::string model_name(const LayerArguments& arguments, const LayerNouns& given, const char* usual);

/// What was changed, for the reader of a result: `--set`s, those of nouns that are given, and the
/// kernel library if not PyTorch's.
std::vector<std::string> settings_of(const LayerArguments& arguments, const LayerNouns& given = {});
inline constexpr std::int64_t kMostTokens = 1 << 24;  ///< far more than a layer is ever run on

}  // namespace moehub
