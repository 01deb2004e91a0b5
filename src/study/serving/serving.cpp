/// What is served: layout, copies of experts, room for the cache.
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "model/attention_weights.hpp"
#include "place/eplb.hpp"
#include "sim/kernels/kernels.hpp"
#include "study/serving/operators.hpp"

#include <moehub/served_model.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr double kGigabyte = 1e9;

void check_memory(const Serving& serving) {
    const ServingMemory memory = memory_of(serving);
    if (memory.weights >= memory.capacity)
        throw input_error(
            "{} does not fit: weights take {:.1f} GB of each GPU, allowed {:.1f} GB of {}: more "
            "GPUs, or weights of fewer bits",
            serving.what.model.name, memory.weights / kGigabyte, memory.capacity / kGigabyte,
            serving.what.machine.gpu_name);
    const std::int64_t most = most_batch_per_gpu(serving);
    if (serving.batch_per_gpu > most)
        throw input_error(
            "--batch-per-gpu: found {}, allowed: at most {}: with {} tokens each the cache has "
            "{:.1f} GB beside {:.1f} GB of weights",
            serving.batch_per_gpu, most, serving.context, memory.cache / kGigabyte,
            memory.weights / kGigabyte);
}

/// Gives the rank one more copy: of the expert with most rows a copy that it does not have.
void host_busiest(Placement& placement, const Matrix& rows, int rank) {
    std::vector<int>* busiest = nullptr;
    double most = -1;
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert) {
        std::vector<int>& hosts = placement.hosts[expert];
        const double each = rows(0, static_cast<int>(expert)) / static_cast<double>(hosts.size());
        if (each <= most || std::find(hosts.begin(), hosts.end(), rank) != hosts.end()) continue;
        most = each;
        busiest = &hosts;
    }
    if (busiest == nullptr) return;  // the rank has all experts
    busiest->insert(std::upper_bound(busiest->begin(), busiest->end(), rank), rank);
}

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

ServingMemory memory_of(const Serving& serving) {
    ServingMemory memory = serving_memory(serving.what);
    const Model& model = serving.what.model;
    if (model.moe_layers() == 0 || serving.placement.ranks == 0) return memory;
    std::size_t most = 0;
    for (const std::vector<int>& experts : experts_by_rank(serving.placement))
        most = std::max(most, experts.size());
    const int ep = serving.what.layout.moe_ep;
    const double more = static_cast<double>(most) - (model.experts + ep - 1) / ep;
    const double copies = std::max(0.0, more) * model.moe_layers() * (model.gated ? 3.0 : 2.0) *
                          model.hidden * model.expert_ffn / serving.what.layout.moe_tp *
                          weight_bytes_of(serving.what.formats.experts);
    memory.weights += copies;
    memory.cache = std::max(0.0, memory.cache - serving.what.engine.memory * copies);
    return memory;
}

std::string_view name_of(BatchOverlap overlap) {
    constexpr std::string_view kNames[] = {"none", "single-batch", "two-batch"};
    return kNames[static_cast<std::size_t>(overlap)];
}

std::int64_t Serving::tokens_per_gpu() const {
    return batch_per_gpu * (prefill ? context : 1 + drafts);
}

Placement eplb_placement(const Routing& routing, int ranks, int copies) {
    const int slots = (routing.experts + copies + ranks - 1) / ranks * ranks;
    Matrix rows(1, routing.experts);
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const std::uint16_t expert : routing.chosen_by(0, token)) ++rows(0, expert);
    const EplbResult packed = eplb(rows, {.slots = slots, .gpus = ranks});
    Placement placement{ranks, {}};
    placement.hosts.resize(static_cast<std::size_t>(routing.experts));
    const int each = slots / ranks;
    std::vector<int> twins;  // ranks on which two copies met
    for (int slot = 0; slot < slots; ++slot) {
        const int expert = packed.expert_of[0][static_cast<std::size_t>(slot)];
        std::vector<int>& hosts = placement.hosts[static_cast<std::size_t>(expert)];
        if (hosts.empty() || hosts.back() != slot / each)
            hosts.push_back(slot / each);
        else
            twins.push_back(slot / each);
    }
    for (const int rank : twins) host_busiest(placement, rows, rank);
    return placement;
}

Serving serving_on(const Machine& machine, const Model& model, const EngineSpec& engine,
                   const ServingSetup& setup) {
    Serving serving;
    const int gpus = machine.gpus();
    const int ranks = gpus / setup.expert_tp;
    serving.what = {machine, model, engine, {}, {}};
    serving.what.formats = engine_formats(engine, model, machine.gpu, setup.weights);
    serving.what.layout = {setup.attention_tp, gpus / setup.attention_tp, setup.expert_tp, ranks};
    serving.routing = setup.routing;
    if (setup.routing.shares == RoutingSpec::Shares::uniform) serving.what.expert_skew = 0;
    if (model.moe_layers() == 0) return serving;
    constexpr std::int64_t kSample = 65536;  // tokens
    const bool full = setup.copies == 0 && model.experts % ranks == 0;
    serving.placement =
        full ? contiguous_placement(model.experts, ranks)
             : eplb_placement(make_routing(setup.routing, model, kSample), ranks, setup.copies);
    return serving;
}

std::int64_t most_batch_per_gpu(const Serving& serving) {
    const double context = static_cast<double>(serving.context) + (serving.prefill ? 0 : 1);
    return memory_of(serving).most_requests(context) / serving.what.layout.attention_tp;
}

void check(const Serving& serving) {
    check(serving.what);
    const auto refuse = [](std::string_view what, std::int64_t found, std::string_view allowed) {
        throw input_error("{}: found {}, allowed: {}", what, found, allowed);
    };
    if (serving.context < 1)
        refuse(serving.prefill ? "--prompt" : "--context", serving.context, "1 or more tokens");
    if (serving.batch_per_gpu < 1) refuse("--batch-per-gpu", serving.batch_per_gpu, "1 or more");
    if (serving.overlap == BatchOverlap::two_batch && serving.batch_per_gpu < 2)
        refuse("--batch-per-gpu", serving.batch_per_gpu, "2 or more, for two batches");
    if (serving.accepted < 0 || serving.accepted > serving.drafts)
        throw input_error("accepted guesses: found {}, allowed: 0 to the {} of a step",
                          serving.accepted, serving.drafts);
    check_memory(serving);
}

// Weights and cache of one GPU, and which parts of a checkpoint are quantised.

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
