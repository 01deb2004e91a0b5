#include "study/model_rest.hpp"

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

}  // namespace moehub
