// Files that list the expert of every slot, slots GPU after GPU.
//   SGLang, --init-expert-location: {"physical_to_logical_map": [[…], …]}, a row for every layer of
//   the model, dense ones included; its loader passes every further key on and fails.
//   vLLM, initial_expert_map_path (proposed): [[…], …], a row for every MoE layer, or one row that
//   holds for all; --expert-placement-file (proposed): {"expert_to_ep_rank": […]}, expert → GPU.
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "place/layout/layout_formats.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Refuses a list that, repeated for every layer, is out of proportion.
void check_total(const JsonValue& list, const LayoutFile& file) {
    const auto slots = static_cast<std::int64_t>(list.size());
    if (slots > kMostLayoutSlots / file.shape.layers)
        list.reject(fmt::format("at most {} slots in all layers", kMostLayoutSlots));
}

/// Rows for every layer expected; one row that is no list of lists holds for all.
std::vector<std::vector<int>> read_rows(const JsonValue& list, const LayoutFile& file, int most) {
    const auto layers = file.shape.layer_numbers.size();
    if (!list.is_list_of_lists()) {
        check_total(list, file);
        return std::vector(layers, list.integers(0, most));
    }
    if (list.size() != layers) list.reject(fmt::format("a list for each of the {} layers", layers));
    std::vector<std::vector<int>> rows;
    for (std::size_t layer = 0; layer < layers; ++layer)
        rows.push_back(list[layer].integers(0, most));
    return rows;
}

std::string row_text(const std::vector<int>& row, bool last) {
    return fmt::format("  [{}]{}\n", fmt::join(row, ", "), last ? "" : ",");
}

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

ExpertLayout read_sglang(const JsonValue& document, const LayoutFile& file) {
    for (const std::string& key : document.keys())
        if (key != "physical_to_logical_map")
            file.fail("", "found key {}, allowed: physical_to_logical_map alone",
                      moehub::quoted(key));
    const JsonValue rows = document.member("physical_to_logical_map");
    if (rows.size() != at(file.shape.model_layers))
        rows.reject(fmt::format("a list for each of the model's {} layers, dense ones included",
                                file.shape.model_layers));
    std::vector<std::vector<int>> slots(file.shape.layer_numbers.size());
    for (std::size_t number = 0; number < rows.size(); ++number) {
        const JsonValue row = rows[number];
        if (row.size() != rows[0].size())
            row.reject(fmt::format("{} slots, as in the first layer", rows[0].size()));
        std::vector<int> experts = row.integers(0, file.shape.experts - 1);
        if (const auto index = file.index_of(static_cast<std::int64_t>(number)))
            slots[*index] = std::move(experts);
    }
    return layout_of_slots(file, slots);
}

ExpertLayout read_vllm(const JsonValue& document, const LayoutFile& file) {
    return layout_of_slots(file, read_rows(document, file, file.shape.experts - 1));
}

ExpertLayout read_ranks(const JsonValue& document, const LayoutFile& file) {
    const JsonValue list = document.member("expert_to_ep_rank");
    // Where nobody says how many GPUs there are, each has an expert in some layer.
    const int most = file.gpus > 0 ? file.gpus : std::min(file.shape.experts, kMostLayoutGpus);
    const auto rows = read_rows(list, file, most - 1);
    int gpus = file.gpus;
    if (gpus == 0)
        for (const auto& row : rows)
            for (const int gpu : row) gpus = std::max(gpus, gpu + 1);
    std::vector<std::vector<std::vector<int>>> on(rows.size());
    for (std::size_t layer = 0; layer < rows.size(); ++layer) {
        if (rows[layer].size() != at(file.shape.experts))
            file.fail(fmt::format("layer {}", file.shape.layer_numbers[layer]),
                      "found the GPUs of {} experts, allowed: of all {}", rows[layer].size(),
                      file.shape.experts);
        on[layer].resize(at(gpus));
        for (std::size_t expert = 0; expert < rows[layer].size(); ++expert)
            on[layer][at(rows[layer][expert])].push_back(static_cast<int>(expert));
    }
    return layout_of_gpus(file, std::move(on));
}

std::string sglang_text(const ExpertLayout& layout) {
    std::vector<int> dense(slots_of(layout, 0).size());
    for (std::size_t slot = 0; slot < dense.size(); ++slot)
        dense[slot] = static_cast<int>(slot) % layout.experts;
    std::string text = "{\"physical_to_logical_map\": [\n";
    std::size_t layer = 0;
    for (int number = 0; number < layout.model_layers; ++number) {
        const bool here = layer < layout.on.size() && layout.layer_numbers[layer] == number;
        text += row_text(here ? slots_of(layout, layer) : dense, number + 1 == layout.model_layers);
        layer += here ? 1 : 0;
    }
    return text + "]}\n";
}

std::string vllm_text(const ExpertLayout& layout) {
    std::string text = "[\n";
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer)
        text += row_text(slots_of(layout, layer), layer + 1 == layout.on.size());
    return text + "]\n";
}

// vllm-ascend, expert_map_path: {"moe_layer_count": n, "layer_list": [{"layer_id": 0,
// "device_count": d, "device_list": [{"device_id": 0, "device_expert": [0, 5, …]}, …]}, …]}; layers
// are the MoE layers alone, counted from 0.

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
