/// Which layer is simulated and how, as compare, run, gain, model, place and sweeps ask for it.
#pragma once
#include "answers/question.hpp"

#include <moehub/compare.hpp>
#include <moehub/layer.hpp>
#include <moehub/tp.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

inline constexpr std::int64_t kUsualTokens = 8192;  ///< tokens of a model that names no number

/// Forms of a question about layers; options say which of them have them.
inline constexpr unsigned kExperts = 1;  ///< a MoE layer, or a model of such
inline constexpr unsigned kDense = 2;    ///< tensor-parallel sub-layers, or a model of such
inline constexpr unsigned kServed =
    12;  ///< a step of a serving engine: it decodes, or reads prompts

/// Tokens' choices that are asked for: drawn, from a file, or at hand.
struct WantedRouting {
    RoutingSpec drawn = {};  ///< where neither of the others is
    std::string file = {};   ///< recorded tokens or counts
    Held<NamedRouting> given = {};

    bool is_recorded() const { return given != nullptr || !file.empty(); }
};

struct LayerRequest {
    std::optional<std::vector<SubLayer>> sub_layers;  ///< sub-layers of tensor parallelism
    Wanted<Machine> machine;
    Wanted<Model> model;
    std::optional<int> gpus;
    Settings settings;
    std::optional<std::int64_t> tokens;
    std::optional<std::int64_t> tokens_per_gpu;
    std::optional<WantedRouting> routing;
    std::optional<std::uint64_t> seed;
    std::optional<int> layer;
    int tensor_parallel = 1;
    Wanted<ExpertLayout> layout;
    std::optional<int> replicas;
    std::optional<ReplicaPolicy> replica_policy;
    LayerOptions options;  ///< options that need nothing else
    Software software;     ///< software that all systems are to have
    std::string kernels = "torch";
    std::string baseline;  ///< empty: the usual
};

/// Machine, model, --gpus, --set.
Options machine_options(LayerRequest& request, const std::string& usual_machine,
                        const std::string& usual_model);
Options token_options(LayerRequest& request, const std::string& usual);
/// Experts, routing, regions, grain.
Options layer_options(LayerRequest& request);
Options routing_options(LayerRequest& request);
Option pass_option(LayerRequest& request);
Option sub_layer_option(LayerRequest& request);
Option baseline_option(LayerRequest& request);
/// Host, fused activation, FP8.
Options software_options(LayerRequest& request);

/// Where a layer's experts stand by a file (`--layout`).
struct LayoutUse {
    std::string file;
    int layer = 0;      ///< place among the MoE layers, from 0
    int number = 0;     ///< layer's number in the model
    bool mean = false;  ///< chosen as the one that stands for all
};

/// A MoE layer or tensor-parallel sub-layers, with what they were made from.
struct LayerCase {
    std::vector<SubLayer> parts;  ///< one, or several that are added up; none: a MoE layer
    std::string machine_name;     ///< preset or file, as asked for
    std::string model_name;
    std::vector<std::string> settings;  ///< "KEY=VALUE" that changed them; a model's as "model.KEY"
    std::string routing_name;           ///< generator or trace
    std::optional<std::uint64_t> seed;  ///< generator's seed
    std::optional<int> trace_layer;
    int replicas = 0;                 ///< redundant copies of experts
    std::optional<LayoutUse> layout;  ///< without it experts stand in order
    Software software;                ///< what all systems were asked to have
    std::int64_t tokens = 0;
    LayerInput input;  ///< sub-layers have its machine and model alone
    LayerOptions options;
    std::string idle;  ///< a sentence where GPUs hold no expert

    bool is_moe() const { return parts.empty(); }
    /// Refers to this object.
    TpInput input_of(SubLayer part) const { return {input.machine, input.model, tokens, part}; }
    TpOptions options_of_parts() const {
        return {.grain = options.grain, .verify = options.verify, .timeline = options.timeline};
    }
};

/// Which layer of a layout is simulated where `--layer` does not say.
enum class LayoutLayer { first, mean };

/// Load what is named and make routing and placement. Throw InputError.
LayerCase load_layer(const LayerRequest& request, LayoutLayer usual = LayoutLayer::first);
LayerCase load_tp(const LayerRequest& request);

/// Machine as sized and with its kernels; model; whether that has no experts. Throw InputError.
Machine sized_machine(const LayerRequest& request, const char* usual);
bool is_dense(const LayerRequest& request, const char* usual_model);
/// Tokens over so many GPUs, if either option is there.
std::optional<std::int64_t> asked_tokens(const LayerRequest& request, int gpus);
/// What was changed, for the reader of a result; the kernel library, too, if not PyTorch's.
std::vector<std::string> settings_of(const LayerRequest& request);

/// Systems with what `--set system.NAME.KEY=VALUE` and the software change. Throws InputError for a
/// setting that concerns none of them, and systems of one name.
std::vector<SystemSpec> load_systems(const std::vector<Wanted<SystemSpec>>& wanted,
                                     const Settings& settings, const Software& software);
/// Systems that are wanted by their names.
std::vector<Wanted<SystemSpec>> wanted_systems(const std::vector<std::string>& names);
/// The names of those that are named. Throws InputError as check_systems() does; objects are
/// checked where they are loaded.
void check_wanted(const std::vector<Wanted<SystemSpec>>& systems,
                  void (*check)(const std::vector<std::string>&));

/// Everything that numbers depend on, as bytes to compare.
std::string inputs_of(const Routing& routing);
std::string inputs_of(const Placement& placement);
std::string inputs_of(const LayerCase& layer);
std::string inputs_of(const std::vector<SystemSpec>& systems);

/// Recorded tokens: layer by layer, all that have experts in each.
Routing recorded_routing(const std::string& file, const Model& model);
/// The layout of that file or at hand, of this model on so many ranks. Throws InputError.
ExpertLayout load_layout(const Wanted<ExpertLayout>& wanted, const Model& model, int ranks);

/// Routing, layer and, where there is a layout, placement of `made`, whose machine, model and
/// options are there already. Throws InputError.
void load_routing(const LayerRequest& request, const std::optional<ExpertLayout>& layout,
                  LayoutLayer usual, LayerCase& made);

/// The MoE layer, from 0, that is nearest to the mean of all in the rows of its busiest rank and in
/// the rows that are sent once per rank, and so stands for them: a whole model simulates one layer.
/// Rows are those of the same layer of the routing, or of its only one.
int mean_layer(const ExpertLayout& layout, const Routing& routing);

inline constexpr std::int64_t kMostTokens = 1 << 24;  ///< far more than a layer is ever run on

// Which systems are compared, and why others are not.

struct ChosenSystems {
    std::vector<SystemSpec> systems;
    std::vector<LeftOut> left_out;
};

/// Systems that are wanted and can run the layer; none wanted: all that can, but for the proposals'
/// ablations, what later versions replaced, and those that compute in FP8, which the others do not.
/// Throws InputError for names that there are not, and where none of those wanted can run it.
ChosenSystems choose_systems(const LayerCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings);

}  // namespace moehub
