// Layouts as YAML and as CSV. TensorRT-LLM, the load balancer's YAML file: num_slots,
// initial_global_assignments (the model's layer number → expert of every slot) and
// layer_updates_per_iter, 0: the layout stays. Its loader refuses further keys.
#include "base/csv.hpp"
#include "base/quantity.hpp"
#include "place/layout/layout_formats.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <yaml-cpp/yaml.h>

namespace moehub {
namespace {

/// yaml-cpp takes some hundred bytes for a number; a layout of 64 layers and 1,000 slots is 0.3
/// MiB.
constexpr std::size_t kMostYamlBytes = 2u << 20;

/// A whole number within [least, most], as the file has it.
std::int64_t integer(const YAML::Node& node, std::int64_t least, std::int64_t most,
                     const LayoutFile& file, const std::string& where) {
    const std::string found = node.IsScalar() ? node.Scalar() : "";
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), number);
    if (error != std::errc() || end != found.data() + found.size() || number < least ||
        number > most)
        file.fail(where, "found {}, allowed: a whole number from {} to {}",
                  node.IsScalar() ? moehub::quoted(found) : "no number", least, most);
    return number;
}

std::vector<int> experts_in(const YAML::Node& list, std::int64_t slots, const LayoutFile& file,
                            const std::string& where) {
    if (!list.IsSequence() || static_cast<std::int64_t>(list.size()) != slots)
        file.fail(where, "found {} experts, allowed: a list of {}, as num_slots says",
                  list.IsSequence() ? list.size() : 0, slots);
    std::vector<int> experts;
    for (const auto& expert : list)
        experts.push_back(
            static_cast<int>(integer(expert, 0, file.shape.experts - 1, file, where)));
    return experts;
}

std::vector<std::vector<int>> read_assignments(const YAML::Node& map, std::int64_t slots,
                                               const LayoutFile& file) {
    const std::string key = "initial_global_assignments";
    if (!map.IsMap()) file.fail(key, "found no map, allowed: layer number: [expert per slot]");
    std::vector<std::vector<int>> all(file.shape.layer_numbers.size());
    std::vector<char> seen(at(file.shape.model_layers), 0);
    for (const auto& item : map) {
        const auto number = integer(item.first, 0, file.shape.model_layers - 1, file, key);
        const std::string where = fmt::format("{}: layer {}", key, number);
        if (seen[at(number)]++ != 0) file.fail(where, "found twice, allowed: once");
        std::vector<int> experts = experts_in(item.second, slots, file, where);
        if (const auto index = file.index_of(number)) all[*index] = std::move(experts);
    }
    return all;
}

/// The document's three parts; each may stand once.
struct Parts {
    YAML::Node num_slots, assignments;
};

Parts parts_of(const YAML::Node& document, const LayoutFile& file) {
    const std::string allowed =
        "num_slots, initial_global_assignments and layer_updates_per_iter, each once";
    if (!document.IsMap())
        file.fail("", "found none of the known formats (JSON, CSV, a YAML map), allowed: " +
                          fmt::format("{}", fmt::join(layout_formats(), ", ")));
    Parts parts;
    bool slots = false, assignments = false, updates = false;
    for (const auto& item : document) {
        const std::string key = item.first.IsScalar() ? item.first.Scalar() : "";
        if (key == "num_slots" && !std::exchange(slots, true))
            parts.num_slots = item.second;
        else if (key == "initial_global_assignments" && !std::exchange(assignments, true))
            parts.assignments = item.second;
        else if (key == "layer_updates_per_iter" && !std::exchange(updates, true))
            integer(item.second, 0, kMostLayoutLayers, file, key);
        else
            file.fail("", "found key {}, allowed: {}", moehub::quoted(key), allowed);
    }
    if (!slots || !assignments)
        file.fail(slots ? "initial_global_assignments" : "num_slots", "not found, it is needed");
    return parts;
}

const std::vector<std::string>& columns() {
    static const std::vector<std::string> names = {"layer", "gpu", "slot", "expert"};
    return names;
}

/// A row of the file; rows may stand in any order.
struct Slot {
    std::size_t layer = 0;  ///< index of the layer among those expected
    std::int64_t gpu = 0;
    std::int64_t slot = 0;
    int expert = 0;
    std::size_t row = 0;
    auto key() const { return std::tie(layer, gpu, slot); }
};

int gpus_in(const CsvTable& table, const LayoutFile& file) {
    if (file.gpus > 0) return file.gpus;
    // Every GPU has an expert somewhere: no more GPUs than rows.
    const auto most =
        std::min<std::int64_t>(static_cast<std::int64_t>(table.size()), kMostLayoutGpus);
    std::int64_t gpus = 0;
    for (std::size_t at = 0; at < table.size(); ++at)
        gpus = std::max(gpus, table[at].integer("gpu", 0, most - 1) + 1);
    return static_cast<int>(gpus);
}

/// Rows in order of layer, GPU and slot.
std::vector<Slot> slots_in(const CsvTable& table, const LayoutFile& file, int gpus) {
    std::vector<Slot> slots;
    for (std::size_t at = 0; at < table.size(); ++at) {
        const CsvRow row = table[at];
        const auto layer = file.index_of(row.integer("layer", 0, file.shape.model_layers - 1));
        const Slot slot{layer.value_or(0), row.integer("gpu", 0, gpus - 1), row.integer("slot", 0),
                        static_cast<int>(row.integer("expert", 0, file.shape.experts - 1)), at};
        if (layer) slots.push_back(slot);
    }
    std::stable_sort(slots.begin(), slots.end(),
                     [](const Slot& a, const Slot& b) { return a.key() < b.key(); });
    return slots;
}

}  // namespace

ExpertLayout read_trtllm_layout(const LayoutFile& file) {
    if (file.text.size() > kMostYamlBytes)
        file.fail("", "larger than {} MiB of YAML", kMostYamlBytes >> 20);
    try {
        const Parts parts = parts_of(YAML::Load(std::string(file.text)), file);
        // One list can stand for many layers (*alias): small files, many slots.
        const auto slots =
            integer(parts.num_slots, 1, kMostLayoutSlots / file.shape.layers, file, "num_slots");
        return layout_of_slots(file, read_assignments(parts.assignments, slots, file));
    } catch (const YAML::Exception& error) {
        file.fail(fmt::format("line {}", error.mark.line + 1), "not valid YAML");
    }
}

std::string trtllm_text(const ExpertLayout& layout) {
    std::string text = fmt::format("num_slots: {}\ninitial_global_assignments:\n",
                                   layout.gpus * slots_per_gpu(layout));
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer)
        text += fmt::format("  {}: [{}]\n", layout.layer_numbers[layer],
                            fmt::join(slots_of(layout, layer), ", "));
    return text + "layer_updates_per_iter: 0\n";
}

// A row per slot: layer (the model's number), gpu, slot (on its GPU, from 0), expert.

ExpertLayout read_csv_layout(const LayoutFile& file) {
    const CsvTable table = CsvTable::parse(file.text, file.name);
    if (table.columns() != columns())
        file.fail("", "found another header, allowed: {}", fmt::join(columns(), ","));
    const int gpus = gpus_in(table, file);
    check(file.shape, gpus, file.name);
    std::vector<std::vector<std::vector<int>>> on(file.shape.layer_numbers.size());
    for (const Slot& slot : slots_in(table, file, gpus)) {
        on[slot.layer].resize(at(gpus));
        auto& experts = on[slot.layer][at(slot.gpu)];
        if (slot.slot != static_cast<std::int64_t>(experts.size()))
            table[slot.row].reject("slot", "the slots of a GPU are 0, 1, 2, …, each once");
        experts.push_back(slot.expert);
    }
    return layout_of_gpus(file, std::move(on));
}

std::string csv_text(const ExpertLayout& layout) {
    std::string text = fmt::format("{}\n", fmt::join(columns(), ","));
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer)
        for (std::size_t gpu = 0; gpu < layout.on[layer].size(); ++gpu)
            for (std::size_t slot = 0; slot < layout.on[layer][gpu].size(); ++slot)
                text += fmt::format("{},{},{},{}\n", layout.layer_numbers[layer], gpu, slot,
                                    layout.on[layer][gpu][slot]);
    return text;
}

}  // namespace moehub
