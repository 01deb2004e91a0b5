/// Tensor-parallel sub-layers of a transformer: a GEMM whose inner width is cut over the GPUs, so
/// that each makes partial sums of all rows; their sum, normalised; and a GEMM whose columns are
/// cut, so that each GPU reads all of it. Simulated packet by packet under a system.
///
///     const Machine machine = load_machine("dgx-h100");
///     const Model model = load_model("llama-7b");
///     const LayerResult result = simulate_tp({machine, model, 9216, SubLayer::l1}, "cais");
///
/// Every run checks that each GPU's second GEMM read every row, as the sum of every GPU's partial
/// sums, each once; with `verify` also what it computes. A run that fails throws std::logic_error.
#pragma once
#include <moehub/layer.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace moehub {

/// What lies between two GEMMs. The first four are a dense layer's, two forward, two backward; the
/// last two are halves, for attention beside experts: rows are whole on one GPU at the other end.
enum class SubLayer {
    l1,             ///< attention's output → norm → FFN's first
    l2,             ///< FFN's second → norm → attention's input
    l3,             ///< gradients: FFN's first → norm → attention's output
    l4,             ///< gradients: attention's input → norm → FFN's second
    attention_out,  ///< attention's output → norm
    attention_in,   ///< norm → attention's input
};
std::string_view name_of(SubLayer part);
std::optional<SubLayer> sub_layer_named(std::string_view name);
std::vector<std::string> sub_layer_names();
/// The sub-layer's steps in words: "attention output, norm, FFN up".
std::string words_of(SubLayer part);

struct TpInput {
    const Machine& machine;  ///< all of its GPUs share the sub-layer
    const Model& model;
    std::int64_t tokens = 0;
    SubLayer part = SubLayer::l1;
};

struct TpOptions {
    Grain grain = Grain::row;
    bool verify = false;   ///< rows carry numbers, compared with a plain reference
    bool residual = true;  ///< the norm's kernel adds the residual, too, which costs its bytes
    TimelineOptions timeline = {};
};

/// Throws InputError when the system cannot run this.
void check_tp(const TpInput& input, const SystemSpec& system, const TpOptions& options = {});

LayerResult simulate_tp(const TpInput& input, const SystemSpec& system,
                        const TpOptions& options = {});
LayerResult simulate_tp(const TpInput& input, std::string_view system,
                        const TpOptions& options = {});

/// All systems that run tensor-parallel sub-layers, in the order of their table.
std::vector<SystemInfo> all_tp_systems();

}  // namespace moehub
