// With tensor parallelism in groups of N GPUs a layer's attention is
//
//     attention-in (norm, its input matrix) + attention on heads / N + attention-out (its output
//         matrix, norm),
//
// on the tokens of the N GPUs; norms and residual adds are inside the two halves.
#include "study/model_attention.hpp"

#include "study/model_slice.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp_compare.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

void check_group(const LayerInput& input, const ModelOptions& options) {
    const int node = input.machine.gpus_per_node;
    if (options.attention_gpus < 1 || node % options.attention_gpus != 0)
        throw InputError(
            fmt::format("attention under tensor parallelism: found groups of {} GPUs, allowed: "
                        "divisors of the {} of a node",
                        options.attention_gpus, node));
    if (options.training)
        throw InputError(
            "attention under tensor parallelism: found training, allowed: forward passes, its "
            "gradients are not modelled");
}

}  // namespace

SharedAttention shared_attention(const LayerInput& input, const ModelOptions& options) {
    check_group(input, options);
    const int gpus = options.attention_gpus;
    SharedAttention made;
    made.slice = slice_of(input.model, gpus);
    const std::int64_t share = (input.routing.tokens - 1) / input.machine.gpus() + 1;
    made.sequences = sequences_of(input.model, share * gpus, 1, options.sequence);

    const Machine group = with_gpus(input.machine, gpus);
    const SystemSpec system =
        options.attention_system ? *options.attention_system : load_system("tp-nvls");
    TpCompareOptions how;
    how.layer = {options.layer.grain, options.layer.verify};
    how.threads = options.threads;
    const std::vector<SubLayer> parts{SubLayer::attention_in, SubLayer::attention_out};
    const std::vector<Comparison> halves = compare_tp_parts(
        {group, input.model, made.sequences.tokens, parts.front()}, parts, {system}, how);
    for (std::size_t i = 0; i < parts.size(); ++i)
        made.halves.push_back({parts[i], halves[i].rows.front().result});
    return made;
}

}  // namespace moehub
