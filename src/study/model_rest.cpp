#include "study/model_rest.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

RestBlock block_of(const Gpu& gpu, const Operations& operations, int count,
                   const ModelOptions& options) {
    RestBlock block{count, block_time(gpu, operations, Pass::forward, options.eager), {}, 0};
    if (!options.training) return block;
    block.backward = block_time(gpu, operations, Pass::backward, options.eager);
    block.weight_gradients = weight_gradients_time(gpu, operations);
    return block;
}

int windowed_layers(const Model& model) {
    return model.attention.window > 0 ? model.attention.window_layers : 0;
}

void check_group(const LayerInput& input, const ModelOptions& options) {
    const int node = input.machine.gpus_per_node;
    if (options.attention_gpus < 1 || node % options.attention_gpus != 0)
        throw input_error(
            "attention under tensor parallelism: found groups of {} GPUs, allowed: divisors of the "
            "{} of a node",
            options.attention_gpus, node);
    if (options.training)
        throw InputError(
            "attention under tensor parallelism: found training, allowed: forward passes, its "
            "gradients are not modelled");
}

}  // namespace

void share_attention(Rest& rest, const Model& slice, const Gpu& gpu, const Sequences& sequences,
                     const ModelOptions& options) {
    const int windowed = windowed_layers(slice);
    rest.attention =
        block_of(gpu, attention_core(slice, sequences, 0), slice.layers - windowed, options);
    if (windowed > 0)
        rest.windowed = block_of(gpu, attention_core(slice, sequences, slice.attention.window),
                                 windowed, options);
}

Rest rest_of_slice(const Model& slice, const Gpu& gpu, const Sequences& sequences,
                   const ModelOptions& options) {
    Rest rest;
    share_attention(rest, slice, gpu, sequences, options);
    rest.dense = block_of(gpu, activation_alone(slice, sequences.tokens), slice.layers, options);
    rest.head = block_of(gpu, head(slice, sequences.tokens, options.training), 1, options);
    return rest;
}

Rest rest_of(const Model& model, const Gpu& gpu, const Sequences& sequences,
             const ModelOptions& options) {
    const Attention& attention = model.attention;
    const int windowed = windowed_layers(model);
    Rest rest;
    rest.attention =
        block_of(gpu, attention_block(model, sequences, 0), model.layers - windowed, options);
    if (windowed > 0)
        rest.windowed =
            block_of(gpu, attention_block(model, sequences, attention.window), windowed, options);
    if (model.dense_layers > 0)
        rest.dense = block_of(gpu, dense_ffn(model, sequences.tokens), model.dense_layers, options);
    rest.head = block_of(gpu, head(model, sequences.tokens, options.training), 1, options);
    return rest;
}

LayerTypeTime host_of(const Rest& rest) {
    LayerTypeTime host{"host", 1, 0, 0};
    for (const RestBlock* block : {&rest.attention, &rest.windowed, &rest.dense, &rest.head}) {
        host.forward += block->count * block->forward.host;
        host.backward += block->count * block->backward.host;
    }
    return host;
}

Model slice_of(const Model& model, int gpus) {
    const auto refuse = [&](int found, const char* what, const char* allowed) {
        throw input_error("model {}: found {} {}, allowed: {} of the {} GPUs that share them",
                          quoted(model.name), found, what, allowed, gpus);
    };
    Model slice = model;
    Attention& a = slice.attention;
    if (a.heads % gpus != 0) refuse(a.heads, "attention heads", "a multiple");
    if (a.kv_heads % gpus != 0 && gpus % a.kv_heads != 0)
        refuse(a.kv_heads, "key-value heads", "a multiple or a divisor");
    const auto share = [gpus](int width) { return width == 0 ? 0 : (width - 1) / gpus + 1; };
    a.heads /= gpus;
    a.kv_heads = share(a.kv_heads);
    slice.dense_ffn = share(model.dense_ffn);
    slice.vocab = share(model.vocab);
    return slice;
}

// With tensor parallelism in groups of N GPUs a layer's attention is
//
//     attention-in (norm, its input matrix) + attention on heads / N + attention-out (its output
//         matrix, norm),
//
// on the tokens of the N GPUs; norms and residual adds are inside the two halves.

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

void add_attention(std::vector<LayerTypeTime>& parts, const Model& model, const Rest& rest) {
    if (rest.attention.count > 0)
        parts.push_back(rest.attention.part("attention", Part::attention));
    if (rest.windowed.count > 0)
        parts.push_back(rest.windowed.part(
            fmt::format("attention, window {}", model.attention.window), Part::attention));
}

void add(Breakdown& sum, const Breakdown& one) {
    sum.compute += one.compute;
    sum.communication += one.communication;
    sum.host += one.host;
}

void sum_up(ModelTime& time, const Machine& machine, std::int64_t tokens) {
    for (const LayerTypeTime& part : time.parts) time.total += part.total();
    const double seconds = to_seconds(time.total);
    time.tokens_per_second = static_cast<double>(tokens) / seconds;
    time.mfu = time.flops / (seconds * machine.gpus() * machine.gpu.bf16_flops);
}

}  // namespace moehub
