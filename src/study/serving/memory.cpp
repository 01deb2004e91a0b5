/// Weights and cache of one GPU, and which parts of a checkpoint are quantised.
#include "model/attention_weights.hpp"
#include "sim/kernels/kernels.hpp"
#include "study/serving/operators.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr double kMostRequests = 1e9;

void weigh(const ServingCase& what, ServingMemory& memory) {
    const Model& model = what.model;
    const ServingFormats& formats = what.formats;
    const double tp = what.layout.attention_tp;
    const double hidden = model.hidden;
    const double matrices = model.gated ? 3 : 2;
    const int ep = what.layout.moe_ep;
    const int local = model.experts > 0 ? (model.experts + ep - 1) / ep : 0;
    const double attention = model.layers * attention_weights(model, what.layout.attention_tp);
    const double dense = (model.layers - model.moe_layers()) * matrices * hidden * model.dense_ffn;
    const double shared =
        model.moe_layers() * matrices * hidden * model.shared_experts * model.shared_ffn;
    const double experts =
        model.moe_layers() * matrices * hidden * model.expert_ffn / what.layout.moe_tp * local;
    const double ends = (model.tied_embeddings ? 1 : 2) * hidden * model.vocab / tp;
    memory.experts = experts * weight_bytes_of(formats.experts);
    memory.ends = ends * weight_bytes_of(formats.head);
    memory.weights = attention * weight_bytes_of(formats.attention) +
                     (dense + shared) / tp * weight_bytes_of(formats.dense) + memory.experts +
                     memory.ends;
}

}  // namespace

ServingMemory serving_memory(const ServingCase& what) {
    const Attention& a = what.model.attention;
    const double element = bytes_of(what.formats.cache);
    const int windowed = a.window > 0 ? a.window_layers : 0;
    double token = a.kv_lora_rank + a.qk_rope_head_dim;
    if (a.kind == Attention::Form::gqa)
        token = 2.0 * a.head_dim * std::max(1, a.kv_heads / what.layout.attention_tp);
    ServingMemory memory;
    weigh(what, memory);
    memory.cache_per_token = token * element * (what.model.layers - windowed);
    memory.window_cache = token * element * windowed * a.window;
    memory.capacity = static_cast<double>(what.machine.gpu.hbm_capacity);
    memory.cache = what.engine.memory * std::max(0.0, memory.capacity - memory.weights);
    return memory;
}

std::int64_t ServingMemory::most_requests(double context) const {
    const double each = context * cache_per_token + window_cache;
    return static_cast<std::int64_t>(std::min(kMostRequests, cache / each));
}

ServingFormats checkpoint_formats(const Model& model, const Gpu& gpu, NumberFormat weights) {
    using enum NumberFormat;
    ServingFormats formats;
    if (weights == bf16) return formats;
    const bool latent = model.attention.kind == Attention::Form::mla;
    formats.cache = fp8;
    if (weights == fp8 || weights == fp8_block) {
        const NumberFormat used = latent ? fp8_block : weights;
        formats.attention = formats.dense = formats.experts = used;
        return formats;
    }
    const bool native = weights == nvfp4 && gpu.nvfp4_flops > 0;
    formats.experts = native ? nvfp4 : w4a16;
    if (native) formats.dense = nvfp4;
    if (native && model.experts == 0) formats.attention = nvfp4;
    return formats;
}

ServingFormats engine_formats(const EngineSpec& engine, const Model& model, const Gpu& gpu,
                              NumberFormat weights) {
    ServingFormats formats = checkpoint_formats(model, gpu, weights);
    if (!engine.overheads(gpu.generation).fp8_cache) formats.cache = NumberFormat::bf16;
    return formats;
}

}  // namespace moehub
