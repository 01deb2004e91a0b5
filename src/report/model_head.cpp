#include "report/model_head.hpp"

#include "report/comparison.hpp"
#include "report/table.hpp"
#include "report/tp_comparison.hpp"
#include "study/tp_rows.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

std::string model_words(const Model& model, const ModelOptions& options,
                        const Sequences& sequences) {
    return fmt::format("{} layers, {}, sequences of {} token{}", model.layers,
                       options.training ? "forward and backward" : "forward",
                       grouped(sequences.length), sequences.length == 1 ? "" : "s");
}

std::string host_words(const Machine& machine, const ModelOptions& options) {
    if (!options.eager) return "CUDA graphs";
    return fmt::format("an eager host, one operator every {}",
                       duration(to_seconds(machine.gpu.overheads.eager_launch)));
}

}  // namespace

Sequences sequences_of(const ModelCase& model) {
    const LayerCase& layer = model.layer;
    const int gpus = layer.machine.gpus();
    const int group = std::max(1, model.options.attention_gpus);
    const std::int64_t share = (layer.routing.tokens - 1) / gpus + 1;
    return sequences_of(layer.model, share * group, 1, model.options.sequence);
}

Sequences sequences_of(const DenseCase& model) {
    return sequences_of(model.layer.model, model.layer.tokens, 1, model.options.sequence);
}

std::string head_text(const ModelCase& model) {
    std::string out =
        head_text(model.layer) +
        fmt::format("{}; outside MoE layers {}\n",
                    model_words(model.layer.model, model.options, sequences_of(model)),
                    host_words(model.layer.machine, model.options));
    if (model.options.attention_gpus == 0) return out;
    return out + fmt::format("attention under tensor parallelism in groups of {} GPU{}: {}\n",
                             model.options.attention_gpus,
                             model.options.attention_gpus == 1 ? "" : "s",
                             model.times.front().sub_layers.front().result.system);
}

std::string head_text(const DenseCase& model) {
    return head_text(model.layer) +
           fmt::format("{}; outside sub-layers {}{}\n",
                       model_words(model.layer.model, model.options, sequences_of(model)),
                       host_words(model.layer.machine, model.options),
                       model.options.training && model.options.overlap_gradients
                           ? "; weights' gradients while rows travel"
                           : "");
}

std::string checks_text(const ModelCase& model) {
    Comparison layers;
    for (const ModelTime& time : model.times) layers.rows.push_back({time.spec, *time.moe, 1, {}});
    std::string out = checks_text(layers);
    if (model.options.attention_gpus > 0)
        out += fmt::format(
            "Attention: each GPU of a group read each of its {} rows once, and each came back as "
            "the sum\nof all their partial sums, each once.\n",
            grouped(model.times.front().sub_layers.front().result.rows));
    return out;
}

std::string checks_text(const DenseCase& model) {
    Comparison layers;
    for (const ModelTime& time : model.times) {
        layers.rows.push_back({time.spec, time.sub_layers.front().result, 1, {}});
        LayerResult& sum = layers.rows.back().result;
        for (const SubLayerResult& one : time.sub_layers)
            sum.largest_error = std::max(sum.largest_error, one.result.largest_error);
    }
    return tp_checks_text(model.layer, layers);
}

Comparison layer_comparison(const ModelCase& model, Pass pass) {
    const auto result = [pass](const ModelTime& time) -> const LayerResult& {
        return pass == Pass::forward ? *time.moe : *time.moe_backward;
    };
    const ModelTime& baseline = baseline_of(model.times, model.options.baseline);
    const auto ideal = std::find_if(model.times.begin(), model.times.end(),
                                    [](const auto& one) { return one.system == "ideal"; });
    Comparison comparison;
    comparison.baseline = baseline.system;
    for (const ModelTime& time : model.times) {
        const auto own = static_cast<double>(result(time).time);
        ComparisonRow row{
            time.spec, result(time), static_cast<double>(result(baseline).time) / own, {}};
        if (ideal != model.times.end())
            row.share_of_ideal = static_cast<double>(result(*ideal).time) / own;
        comparison.rows.push_back(std::move(row));
    }
    return comparison;
}

Comparison sub_layer_comparison(const DenseCase& model, std::size_t part) {
    std::vector<SystemSpec> systems;
    std::vector<LayerResult> results;
    for (const ModelTime& time : model.times) {
        systems.push_back(time.spec);
        results.push_back(time.sub_layers[part].result);
    }
    return tp_rows(systems, results, model.options.baseline);
}

}  // namespace moehub
