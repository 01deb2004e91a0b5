// A row per slot: layer (the model's number), gpu, slot (on its GPU, from 0), expert.
#include "base/csv.hpp"
#include "place/layout/layout_formats.hpp"

#include <algorithm>
#include <tuple>

namespace moehub {
namespace {

const std::vector<std::string>& columns() {
    static const std::vector<std::string> names = {"layer", "gpu", "slot", "expert"};
    return names;
}

/// One row; rows may stand in any order.
struct Slot {
    std::size_t layer = 0;  ///< its index among those expected
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

/// In order of layer, GPU and slot.
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

ExpertLayout read_csv_layout(const LayoutFile& file) {
    const CsvTable table = CsvTable::parse(file.text, file.name);
    if (table.columns() != columns())
        file.fail("", "found another header, allowed: {}", fmt::join(columns(), ","));
    const int gpus = gpus_in(table, file);
    check(file.shape, gpus, file.name);
    std::vector<std::vector<std::vector<int>>> on(file.shape.layer_numbers.size());
    for (const Slot& slot : slots_in(table, file, gpus)) {
        on[slot.layer].resize(static_cast<std::size_t>(gpus));
        auto& experts = on[slot.layer][static_cast<std::size_t>(slot.gpu)];
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
