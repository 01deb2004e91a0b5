#include "base/utf8.hpp"
#include "place/layout/layout_formats.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

template <class Layers>
void check_all_there(const LayoutFile& file, const Layers& layers) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
        if (layers[layer].empty())
            file.fail(fmt::format("layer {}", file.shape.layer_numbers[layer]),
                      fmt::format("not found, allowed: all {} layers", file.shape.layers));
}

}  // namespace

void LayoutFile::fail(std::string_view where, std::string_view what) const {
    throw InputError(where.empty() ? fmt::format("{}: {}", printable(name), what)
                                   : fmt::format("{}: {}: {}", printable(name), where, what));
}

std::optional<std::size_t> LayoutFile::index_of(std::int64_t layer_number) const {
    const auto& numbers = shape.layer_numbers;
    const auto found = std::lower_bound(numbers.begin(), numbers.end(), layer_number);
    if (found == numbers.end() || *found != layer_number) return std::nullopt;
    return static_cast<std::size_t>(found - numbers.begin());
}

int LayoutFile::gpus_of(std::int64_t said, std::string_view where) const {
    if (said == 0 && gpus == 0)
        fail(where, "does not say on how many GPUs; the number of GPUs is needed");
    if (said < 0 || said > kMostLayoutGpus)
        fail(where, fmt::format("found {} GPUs, allowed: 1 to {}", said, kMostLayoutGpus));
    if (said > 0 && gpus > 0 && said != gpus)
        fail(where, fmt::format("found {} GPUs, allowed: {}", said, gpus));
    return said > 0 ? static_cast<int>(said) : gpus;
}

ExpertLayout layout_of_gpus(const LayoutFile& file, std::vector<std::vector<std::vector<int>>> on) {
    check_all_there(file, on);
    ExpertLayout layout;
    layout.gpus = file.gpus_of(static_cast<std::int64_t>(on.front().size()), "");
    layout.experts = file.shape.experts;
    layout.on = std::move(on);
    layout.layer_numbers = file.shape.layer_numbers;
    layout.model_layers = file.shape.model_layers;
    check(layout, file.name);
    return layout;
}

ExpertLayout layout_of_slots(const LayoutFile& file, const std::vector<std::vector<int>>& slots) {
    check_all_there(file, slots);
    const auto gpus = static_cast<std::size_t>(file.gpus_of(0, ""));
    std::vector<std::vector<std::vector<int>>> on(slots.size());
    for (std::size_t layer = 0; layer < slots.size(); ++layer) {
        const auto& row = slots[layer];
        const std::string where = fmt::format("layer {}", file.shape.layer_numbers[layer]);
        if (row.size() % gpus != 0)
            file.fail(where, fmt::format("found {} slots, allowed: a multiple of the {} GPUs",
                                         row.size(), gpus));
        if (row.size() != slots.front().size())
            file.fail(where, fmt::format("found {} slots, allowed: {}, as in the first layer",
                                         row.size(), slots.front().size()));
        const auto each = static_cast<std::ptrdiff_t>(row.size() / gpus);
        for (auto at = row.begin(); at != row.end(); at += each)
            on[layer].emplace_back(at, at + each);
    }
    return layout_of_gpus(file, std::move(on));
}

std::vector<int> slots_of(const ExpertLayout& layout, std::size_t layer) {
    std::vector<int> slots;
    for (const auto& experts : layout.on[layer])
        slots.insert(slots.end(), experts.begin(), experts.end());
    return slots;
}

}  // namespace moehub
