// A model's time is the sum of its parts:
//
//     layers · (attention block) + MoE layers · (simulated layer) + dense layers · (dense FFN)
//         + head,
//
// each block from its start, when its host starts to issue, to its last kernel.
#include "base/quantity.hpp"
#include "sim/gpu/transformer_time.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/model_time.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

void check_whole(const Model& model) {
    const auto refuse = [&](std::string_view what) {
        throw InputError(fmt::format("model {}: found no {}, allowed: a whole model with experts",
                                     quoted(model.name), what));
    };
    if (model.moe_layers() <= 0) refuse("MoE layers");
    if (model.attention.heads <= 0) refuse("attention heads");
    if (model.vocab <= 0) refuse("vocabulary");
}

/// A block that occurs `count` times, both ways.
struct Block {
    int count = 0;
    BlockTime forward;
    BlockTime backward;

    LayerTypeTime part(std::string name, Part which) const {
        return {std::move(name), count, forward.of(which), backward.of(which)};
    }
};

/// Everything but the MoE layers.
struct Rest {
    Block attention;
    Block windowed;
    Block dense;
    Block head;
};

Block block_of(const Gpu& gpu, const Operations& operations, int count,
               const ModelOptions& options) {
    Block block{count, block_time(gpu, operations, Pass::forward, options.eager), {}};
    if (options.training)
        block.backward = block_time(gpu, operations, Pass::backward, options.eager);
    return block;
}

Rest rest_of(const LayerInput& input, const Sequences& sequences, const ModelOptions& options) {
    const Model& model = input.model;
    const Gpu& gpu = input.machine.gpu;
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

std::vector<LayerTypeTime> parts_of(const Model& model, const Rest& rest, LayerTypeTime moe) {
    std::vector<LayerTypeTime> parts;
    if (rest.attention.count > 0)
        parts.push_back(rest.attention.part("attention", Part::attention));
    if (rest.windowed.count > 0)
        parts.push_back(rest.windowed.part(
            fmt::format("attention, window {}", model.attention.window), Part::attention));
    LayerTypeTime norms = rest.attention.part("norms and residuals", Part::norms);
    norms.count = model.layers;  // the same kernels, windowed or not
    parts.push_back(std::move(norms));
    parts.push_back(std::move(moe));
    if (rest.dense.count > 0) parts.push_back(rest.dense.part("dense FFNs", Part::dense));
    parts.push_back(rest.head.part("LM head", Part::head));
    if (LayerTypeTime host = host_of(rest); host.total() > 0) parts.push_back(std::move(host));
    return parts;
}

/// The MoE layer under every system, one way.
Comparison simulate_pass(const LayerInput& input, const std::vector<SystemSpec>& systems,
                         const ModelOptions& options, Pass pass) {
    const std::size_t before = pass == Pass::forward ? 0 : systems.size();
    const std::size_t total = (options.training ? 2 : 1) * systems.size();
    CompareOptions one_way;
    one_way.layer = options.layer;
    one_way.layer.pass = pass;
    one_way.threads = options.threads;
    if (options.progress)
        one_way.progress = [&](std::size_t done, std::size_t) {
            options.progress(before + done, total);
        };
    return compare_systems(input, systems, one_way);
}

/// What follows from the parts.
void sum_up(ModelTime& time, const LayerInput& input) {
    for (const LayerTypeTime& part : time.parts) time.total += part.total();
    const double seconds = to_seconds(time.total);
    time.tokens_per_second = static_cast<double>(input.routing.tokens) / seconds;
    time.mfu = time.flops / (seconds * input.machine.gpus() * input.machine.gpu.bf16_flops);
}

}  // namespace

std::vector<ModelTime> simulate_models(const LayerInput& input,
                                       const std::vector<SystemSpec>& systems,
                                       const ModelOptions& options) {
    const Model& model = input.model;
    check_whole(model);
    const Comparison forward = simulate_pass(input, systems, options, Pass::forward);
    std::optional<Comparison> backward;
    if (options.training) backward = simulate_pass(input, systems, options, Pass::backward);

    const Sequences sequences =
        sequences_of(model, input.routing.tokens, input.machine.gpus(), options.sequence);
    const Rest rest = rest_of(input, sequences, options);
    std::vector<ModelTime> times;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ModelTime time;
        time.system = systems[i].name;
        time.spec = systems[i];
        time.moe = forward.rows[i].result;
        LayerTypeTime moe{"MoE layers", model.moe_layers(), time.moe.time, 0};
        if (backward) {
            time.moe_backward = backward->rows[i].result;
            moe.backward = time.moe_backward->time;
        }
        time.parts = parts_of(model, rest, std::move(moe));
        time.flops = (options.training ? 3 : 1) * static_cast<double>(input.routing.tokens) *
                     flops_per_token(model, sequences);
        sum_up(time, input);
        times.push_back(std::move(time));
    }
    return times;
}

const ModelTime& baseline_of(const std::vector<ModelTime>& times) {
    const auto usual = std::find_if(times.begin(), times.end(),
                                    [](const auto& one) { return one.system == "megatron-te"; });
    if (usual != times.end()) return *usual;
    return *std::max_element(times.begin(), times.end(),
                             [](const auto& a, const auto& b) { return a.total < b.total; });
}

}  // namespace moehub
