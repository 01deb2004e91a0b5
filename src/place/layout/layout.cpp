#include "base/files.hpp"
#include "base/input_error.hpp"
#include "place/layout/layout_formats.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// Most lists of all layers and GPUs together; a list takes 24 bytes even when it is empty.
constexpr std::int64_t kMostLists = std::int64_t{1} << 22;

void check_range(const std::string& name, const char* what, std::int64_t found, std::int64_t most) {
    if (found < 1 || found > most)
        fail_in(name, "{}: found {}, allowed: 1 to {}", what, found, most);
}

void check_sizes(const std::string& name, const LayoutShape& shape, int gpus) {
    check_range(name, "layers", shape.layers, kMostLayoutLayers);
    check_range(name, "experts", shape.experts, kMostLayoutExperts);
    check_range(name, "gpus", gpus, kMostLayoutGpus);
    if (std::int64_t{shape.layers} * gpus > kMostLists)
        fail_in(name, "layers: found {} on {} GPUs, allowed: {} lists of experts in all",
                shape.layers, gpus, kMostLists);
}

void check_layer_numbers(const std::string& name, const LayoutShape& shape) {
    const auto& numbers = shape.layer_numbers;
    if (numbers.size() != at(shape.layers))
        fail_in(name, "layer numbers: found {}, allowed: as many as the {} layers", numbers.size(),
                shape.layers);
    const bool ascending =
        std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
    if (!ascending || numbers.front() < 0 || numbers.back() >= shape.model_layers)
        fail_in(name,
                "layer numbers: found {} to {}, allowed: ascending, below the model's {} layers",
                numbers.front(), numbers.back(), shape.model_layers);
    check_range(name, "layers of the model", shape.model_layers, kMostLayoutLayers);
}

void check_layer(const std::vector<std::vector<int>>& on, const LayoutShape& shape,
                 const std::string& where) {
    std::vector<char> held(at(shape.experts), 0);
    for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
        for (const int expert : on[gpu]) {
            if (expert < 0 || expert >= shape.experts)
                fail_in(where, "GPU {}: found expert {}, allowed: 0 to {}", gpu, expert,
                        shape.experts - 1);
            held[at(expert)] = 1;
        }
    const auto missing = std::find(held.begin(), held.end(), 0);
    if (missing != held.end())
        fail_in(where, "found expert {} on no GPU, allowed: each on at least one",
                missing - held.begin());
}

}  // namespace

LayoutShape complete(const LayoutShape& shape) {
    LayoutShape whole = shape;
    if (whole.layer_numbers.empty() && whole.layers > 0 && whole.layers <= kMostLayoutLayers) {
        whole.layer_numbers.resize(at(whole.layers));
        std::iota(whole.layer_numbers.begin(), whole.layer_numbers.end(), 0);
    }
    if (whole.model_layers == 0 && !whole.layer_numbers.empty() &&
        whole.layer_numbers.back() < std::numeric_limits<int>::max())
        whole.model_layers = whole.layer_numbers.back() + 1;
    return whole;
}

void check(const LayoutShape& shape, int gpus, const std::string& name) {
    check_sizes(name, shape, gpus);
    check_layer_numbers(name, shape);
}

LayoutShape shape_of(const ExpertLayout& layout) {
    return {layout.layers(), layout.experts, layout.layer_numbers, layout.model_layers};
}

ExpertLayout empty_layout(const LayoutShape& shape, int gpus) {
    const LayoutShape whole = complete(shape);
    check(whole, gpus, "layout");
    ExpertLayout layout;
    layout.gpus = gpus;
    layout.experts = whole.experts;
    layout.on.assign(at(whole.layers), std::vector<std::vector<int>>(at(gpus)));
    layout.layer_numbers = whole.layer_numbers;
    layout.model_layers = whole.model_layers;
    return layout;
}

ExpertLayout contiguous_layout(const LayoutShape& shape, int gpus) {
    ExpertLayout layout = empty_layout(shape, gpus);
    const auto in_order = experts_by_rank(contiguous_placement(layout.experts, gpus));
    for (auto& on : layout.on) on = in_order;
    return layout;
}

ExpertLayout round_robin_layout(const LayoutShape& shape, int gpus) {
    ExpertLayout layout = empty_layout(shape, gpus);
    for (auto& on : layout.on)
        for (int expert = 0; expert < layout.experts; ++expert)
            on[at(expert % gpus)].push_back(expert);
    return layout;
}

int slots_per_gpu(const ExpertLayout& layout) {
    if (layout.on.empty() || layout.on.front().empty()) return 0;
    const std::size_t slots = layout.on.front().front().size();
    for (const auto& on : layout.on)
        for (const auto& experts : on)
            if (experts.size() != slots) return 0;
    return static_cast<int>(slots);
}

void check(const ExpertLayout& layout, const std::string& name) {
    const LayoutShape shape = shape_of(layout);
    check(shape, layout.gpus, name);
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        const std::string where = fmt::format("{}: layer {}", name, layout.layer_numbers[layer]);
        if (layout.on[layer].size() != at(layout.gpus))
            fail_in(where, "found {} GPUs, allowed: {}", layout.on[layer].size(), layout.gpus);
        check_layer(layout.on[layer], shape, where);
    }
}

Placement placement_of(const ExpertLayout& layout, int layer) {
    Placement placement{layout.gpus, {}};
    placement.hosts.resize(at(layout.experts));
    const auto& on = layout.on.at(at(layer));
    for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
        for (const int expert : on[gpu]) {
            auto& hosts = placement.hosts[at(expert)];
            if (hosts.empty() || hosts.back() != static_cast<int>(gpu))
                hosts.push_back(static_cast<int>(gpu));
        }
    return placement;
}

std::int64_t moved_experts(const ExpertLayout& from, const ExpertLayout& to) {
    if (from.gpus != to.gpus || from.experts != to.experts || from.layers() != to.layers())
        throw input_error(
            "layouts: found {} layers, {} experts, {} GPUs before and {}, {}, {} after, allowed: "
            "the same",
            from.layers(), from.experts, from.gpus, to.layers(), to.experts, to.gpus);
    std::int64_t moved = 0;
    std::vector<char> held(at(to.experts), 0);
    for (std::size_t layer = 0; layer < to.on.size(); ++layer)
        for (std::size_t gpu = 0; gpu < to.on[layer].size(); ++gpu) {
            const auto& before = from.on[layer][gpu];
            for (const int expert : before) held[at(expert)] = 1;
            for (const int expert : to.on[layer][gpu]) moved += held[at(expert)] == 0;
            for (const int expert : before) held[at(expert)] = 0;
        }
    return moved;
}

}  // namespace moehub
