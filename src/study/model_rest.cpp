#include "study/model_rest.hpp"

namespace moehub {
namespace {

Block block_of(const Gpu& gpu, const Operations& operations, int count,
               const ModelOptions& options) {
    Block block{count, block_time(gpu, operations, Pass::forward, options.eager), {}, 0};
    if (!options.training) return block;
    block.backward = block_time(gpu, operations, Pass::backward, options.eager);
    block.weight_gradients = weight_gradients_time(gpu, operations);
    return block;
}

}  // namespace

Rest rest_of(const Model& model, const Gpu& gpu, const Sequences& sequences,
             const ModelOptions& options) {
    const Attention& attention = model.attention;
    const int windowed = attention.window > 0 ? attention.window_layers : 0;
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
    for (const Block* block : {&rest.attention, &rest.windowed, &rest.dense, &rest.head}) {
        host.forward += block->count * block->forward.host;
        host.backward += block->count * block->backward.host;
    }
    return host;
}

}  // namespace moehub
