#include "cli/layer_layout.hpp"

#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

LayoutShape shape_of(const Model& model, int further_layers) {
    LayoutShape shape{model.moe_layers() + further_layers, model.experts, {}, 0};
    shape.layer_numbers.resize(static_cast<std::size_t>(shape.layers));
    std::iota(shape.layer_numbers.begin(), shape.layer_numbers.end(), model.dense_layers);
    shape.model_layers = model.layers + further_layers;
    return shape;
}

/// Of the rank with the most rows, copies of an expert sharing its rows.
double busiest_rank(const ExpertLayout& layout, int layer, const std::vector<double>& rows) {
    const Placement placement = placement_of(layout, layer);
    std::vector<double> load(static_cast<std::size_t>(placement.ranks), 0);
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert) {
        const auto& hosts = placement.hosts[expert];
        for (const int rank : hosts)
            load[static_cast<std::size_t>(rank)] +=
                rows[expert] / static_cast<double>(hosts.size());
    }
    return *std::max_element(load.begin(), load.end());
}

std::vector<double> rows_of(const Routing& routing, int layer) {
    std::vector<double> rows(static_cast<std::size_t>(routing.experts), 0);
    const auto each = static_cast<std::size_t>(routing.tokens * routing.top_k);
    const auto* first = routing.chosen.data() + static_cast<std::size_t>(layer) * each;
    for (const auto* one = first; one != first + each; ++one) ++rows[*one];
    return rows;
}

}  // namespace

ExpertLayout load_layout(const std::string& file, const Model& model, int ranks) {
    try {
        return read_layout(file, ranks, shape_of(model, 0));
    } catch (const InputError& error) {
        std::error_code absent;
        if (!std::filesystem::exists(file, absent))
            throw InputError(fmt::format("--layout: {}", error.what()));
        // A file may hold the layers of multi-token prediction, too: servers place their experts.
        if (model.mtp_layers > 0) try {
                return read_layout(file, ranks, shape_of(model, model.mtp_layers));
            } catch (const InputError&) {
                // The first error is of the model as it is simulated.
            }
        throw InputError(
            fmt::format("--layout: {} (wanted: {} MoE layer{} of {} experts, as {} has, on {} "
                        "expert-parallel rank{})",
                        error.what(), model.moe_layers(), model.moe_layers() == 1 ? "" : "s",
                        model.experts, printable(model.name), ranks, ranks == 1 ? "" : "s"));
    }
}

int mean_layer(const ExpertLayout& layout, const Routing& routing) {
    const int layers =
        routing.layers == 1 ? layout.layers() : std::min(layout.layers(), routing.layers);
    std::vector<double> busiest;
    for (int layer = 0; layer < layers; ++layer)
        busiest.push_back(
            busiest_rank(layout, layer, rows_of(routing, routing.layers == 1 ? 0 : layer)));
    const double mean = std::accumulate(busiest.begin(), busiest.end(), 0.0) / layers;
    const auto nearest = std::min_element(
        busiest.begin(), busiest.end(),
        [mean](double a, double b) { return std::abs(a - mean) < std::abs(b - mean); });
    return static_cast<int>(nearest - busiest.begin());
}

}  // namespace moehub
