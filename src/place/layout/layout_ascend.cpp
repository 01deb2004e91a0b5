// vllm-ascend, expert_map_path: {"moe_layer_count": n, "layer_list": [{"layer_id": 0,
// "device_count": d, "device_list": [{"device_id": 0, "device_expert": [0, 5, …]}, …]}, …]}; layers
// are the MoE layers alone, counted from 0.
#include "base/input_error.hpp"
#include "place/layout/layout_json.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// `key` of the object at index `at` of a list counts with the list.
void expect_place(const JsonValue& object, const char* key, std::size_t at) {
    const JsonValue id = object.member(key);
    if (id.integer(0, kMostLayoutLayers) != static_cast<std::int64_t>(at))
        id.reject(fmt::format("{}, its index in the list", at));
}

/// `key` of the object says how many elements `list` has.
void expect_count(const JsonValue& object, const char* key, const JsonValue& list) {
    const JsonValue count = object.member(key);
    if (count.integer(0, kMostLayoutLayers) != static_cast<std::int64_t>(list.size()))
        count.reject(fmt::format("{}, as many as in the list", list.size()));
}

/// The loader gives an expert one slot on a device and then counts slots wrong.
void check_no_twins(const ExpertLayout& layout, std::size_t layer) {
    for (std::size_t gpu = 0; gpu < layout.on[layer].size(); ++gpu) {
        auto experts = layout.on[layer][gpu];
        std::sort(experts.begin(), experts.end());
        const auto twin = std::adjacent_find(experts.begin(), experts.end());
        if (twin != experts.end())
            throw input_error(
                "vllm-ascend: layer {}: found expert {} twice on GPU {}, allowed: once",
                layout.layer_numbers[layer], *twin, gpu);
    }
}

}  // namespace

ExpertLayout read_vllm_ascend(const JsonValue& document, const LayoutFile& file) {
    const JsonValue layers = document.member("layer_list");
    expect_count(document, "moe_layer_count", layers);
    if (layers.size() != file.shape.layer_numbers.size())
        layers.reject(fmt::format("{} layers", file.shape.layers));
    std::vector<std::vector<std::vector<int>>> on(layers.size());
    for (std::size_t at = 0; at < layers.size(); ++at) {
        const JsonValue layer = layers[at];
        const JsonValue devices = layer.member("device_list");
        expect_place(layer, "layer_id", at);
        expect_count(layer, "device_count", devices);
        for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
            expect_place(devices[gpu], "device_id", gpu);
            on[at].push_back(
                devices[gpu].member("device_expert").integers(0, file.shape.experts - 1));
        }
    }
    return layout_of_gpus(file, std::move(on));
}

std::string vllm_ascend_text(const ExpertLayout& layout) {
    std::string text =
        fmt::format("{{\"moe_layer_count\": {}, \"layer_list\": [\n", layout.layers());
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        check_no_twins(layout, layer);
        std::vector<std::string> devices;
        for (std::size_t gpu = 0; gpu < layout.on[layer].size(); ++gpu)
            devices.push_back(fmt::format("{{\"device_id\": {}, \"device_expert\": [{}]}}", gpu,
                                          fmt::join(layout.on[layer][gpu], ", ")));
        text += fmt::format(
            "  {{\"layer_id\": {}, \"device_count\": {}, \"device_list\": [{}]}}{}\n", layer,
            devices.size(), fmt::join(devices, ", "), layer + 1 < layout.on.size() ? "," : "");
    }
    return text + "]}\n";
}

}  // namespace moehub
