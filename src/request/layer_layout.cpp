#include "request/layer_layout.hpp"

#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

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

/// What a layer's time hangs on.
struct Burden {
    double busiest = 0;  ///< rows of the rank with the most
    double sent = 0;     ///< (token, rank) pairs: rows where each goes once to a rank
};

/// Of the routing's `layer`; copies of an expert in turn.
Burden burden_of(const Placement& placement, const Routing& routing, int layer) {
    std::vector<double> rows(static_cast<std::size_t>(placement.ranks), 0);
    std::vector<std::int64_t> last(rows.size(), -1);  // token that went there last
    Burden burden;
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const std::uint16_t expert : routing.chosen_by(layer, token)) {
            const auto& hosts = placement.hosts[expert];
            const auto rank =
                static_cast<std::size_t>(hosts[static_cast<std::size_t>(token) % hosts.size()]);
            rows[rank] += 1;
            if (std::exchange(last[rank], token) != token) burden.sent += 1;
        }
    burden.busiest = *std::max_element(rows.begin(), rows.end());
    return burden;
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

ExpertLayout fitting_layout(const Loaded<ExpertLayout>& layout, const Model& model, int ranks) {
    const ExpertLayout& value = layout.value;
    check(value, layout.name);
    const int layers = model.moe_layers() + model.mtp_layers;
    if (value.experts == model.experts && value.gpus == ranks && value.layers() <= layers)
        return value;
    throw InputError(fmt::format(
        "{}: found {} layer{} of {} experts on {} GPU{}, allowed: 1 to {} of {} on {}",
        printable(layout.name), value.layers(), value.layers() == 1 ? "" : "s", value.experts,
        value.gpus, value.gpus == 1 ? "" : "s", layers, model.experts, ranks));
}

int mean_layer(const ExpertLayout& layout, const Routing& routing) {
    const bool one = routing.layers == 1;
    const int layers = one ? layout.layers() : std::min(layout.layers(), routing.layers);
    std::vector<Burden> burdens;
    Burden mean;
    for (int layer = 0; layer < layers; ++layer) {
        burdens.push_back(burden_of(placement_of(layout, layer), routing, one ? 0 : layer));
        mean.busiest += burdens.back().busiest / layers;
        mean.sent += burdens.back().sent / layers;
    }
    const auto distance = [&mean](const Burden& burden) {
        return std::abs(burden.busiest / mean.busiest - 1) + std::abs(burden.sent / mean.sent - 1);
    };
    const auto nearest = std::min_element(
        burdens.begin(), burdens.end(),
        [&](const Burden& a, const Burden& b) { return distance(a) < distance(b); });
    return static_cast<int>(nearest - burdens.begin());
}

}  // namespace moehub
