// moehub's own JSON, and which of the JSON formats a file is in.
//     {"gpus": 2, "experts": 4, "model_layers": 5, "layers": [{"layer": 3, "gpus": [[0, 2], [1,
//     3]]}]}
#include "place/layout/layout_json.hpp"

#include "base/quantity.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

void expect(const JsonValue& document, std::string_view key, int expected) {
    const JsonValue value = document.member(key);
    if (value.integer(1, kMostLayoutLayers) != expected)
        value.reject(fmt::format("{}, as the model or the profile has", expected));
}

std::vector<std::vector<int>> read_gpus(const JsonValue& lists, const LayoutFile& file, int gpus) {
    if (lists.size() != static_cast<std::size_t>(gpus))
        lists.reject(fmt::format("a list for each of the {} GPUs", gpus));
    std::vector<std::vector<int>> on;
    for (std::size_t gpu = 0; gpu < lists.size(); ++gpu)
        on.push_back(lists[gpu].integers(0, file.shape.experts - 1));
    return on;
}

ExpertLayout read_own(const JsonValue& document, const LayoutFile& file) {
    expect(document, "experts", file.shape.experts);
    expect(document, "model_layers", file.shape.model_layers);
    const int gpus = file.gpus_of(document.member("gpus").integer(1, kMostLayoutGpus), "gpus");
    const JsonValue layers = document.member("layers");
    std::vector<std::vector<std::vector<int>>> on(file.shape.layer_numbers.size());
    std::vector<char> seen(static_cast<std::size_t>(file.shape.model_layers), 0);
    for (std::size_t at = 0; at < layers.size(); ++at) {
        const JsonValue layer = layers[at];
        const auto number = layer.member("layer").integer(0, file.shape.model_layers - 1);
        if (seen[static_cast<std::size_t>(number)]++ != 0)
            layer.member("layer").reject("each layer once");
        auto lists = read_gpus(layer.member("gpus"), file, gpus);
        if (const auto index = file.index_of(number)) on[*index] = std::move(lists);
    }
    return layout_of_gpus(file, std::move(on));
}

}  // namespace

ExpertLayout read_json_layout(const LayoutFile& file) {
    const nlohmann::json json = parse_json(file.text, file.name);
    const JsonValue document(json, file.name, "");
    if (document.is_list()) return read_vllm(document, file);
    if (document.has("physical_to_logical_map")) return read_sglang(document, file);
    if (document.has("expert_to_ep_rank")) return read_ranks(document, file);
    if (document.has("layer_list")) return read_vllm_ascend(document, file);
    if (document.has("layers")) return read_own(document, file);
    document.reject(
        "physical_to_logical_map (sglang), layer_list (vllm-ascend), expert_to_ep_rank (vllm), "
        "layers (json) or a list (vllm)");
}

std::string json_text(const ExpertLayout& layout) {
    std::string text = fmt::format("{{\"gpus\": {}, \"experts\": {}, \"model_layers\": {}, ",
                                   layout.gpus, layout.experts, layout.model_layers);
    text += "\"layers\": [\n";
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        std::vector<std::string> lists;
        for (const auto& experts : layout.on[layer])
            lists.push_back(fmt::format("[{}]", fmt::join(experts, ", ")));
        text += fmt::format("  {{\"layer\": {}, \"gpus\": [{}]}}{}\n", layout.layer_numbers[layer],
                            fmt::join(lists, ", "), layer + 1 < layout.on.size() ? "," : "");
    }
    return text + "]}\n";
}

}  // namespace moehub
