#include "study/reproduce_dense_cells.hpp"

#include "base/quantity.hpp"
#include "study/busier_way.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

SubLayer part_of(const ReproducedCell& cell) {
    const std::optional<SubLayer> part = sub_layer_named(cell.part);
    if (!part)
        throw InputError(fmt::format("sub-layer: found {}, allowed: {}", moehub::quoted(cell.part),
                                     fmt::join(sub_layer_names(), ", ")));
    return *part;
}

double statistic(const LayerResult& layer, std::string_view unit, std::string_view name) {
    for (const Statistic& one : layer.statistics)
        if (one.unit == unit && one.name == name) return one.value;
    return 0;
}

/// Over GPUs and both directions.
double link_use(const LayerResult& layer) {
    double busy = 0;
    double links = 0;
    for (const LinkUse& link : layer.links) {
        if (!link.from.starts_with("gpu") && !link.to.starts_with("gpu")) continue;
        busy += static_cast<double>(link.busy);
        ++links;
    }
    return links > 0 && layer.time > 0 ? busy / links / static_cast<double>(layer.time) : 0;
}

/// Row grain counts lines in all of a GPU's ports together, which share them evenly.
MergeUse merge_use(const LayerResult& layer, const Machine& machine, Grain grain) {
    const int ports = grain == Grain::row ? machine.switches - machine.switches_down : 1;
    return {statistic(layer, "merge", "deepest") / ports, statistic(layer, "merge", "spread_us"),
            statistic(layer, "merge", "longest_us")};
}

}  // namespace

void run_dense(const DenseInput& input, const SystemSpec& system, const PaperSetup& setup,
               ReproducedCell& cell) {
    if (cell.work == CellWork::sub_layer) {
        const LayerResult layer =
            simulate_tp({input.machine, input.model, input.tokens, part_of(cell)}, system,
                        {cell.grain, false, setup.residual});
        cell.time = layer.time;
        cell.compute = layer.breakdown.compute;
        cell.communication = layer.breakdown.communication;
        cell.busier_way = busier_way(layer.links);
        cell.bytes_up = layer.bytes_up;
        cell.bytes_down = layer.bytes_down;
        cell.link_use = link_use(layer);
        cell.merge = merge_use(layer, input.machine, cell.grain);
        return;
    }
    ModelOptions options;
    options.threads = 1;  // cells run side by side
    options.training = cell.work == CellWork::training;
    options.eager = setup.eager;
    options.layer.grain = cell.grain;
    const ModelTime whole = simulate_dense_models(input, {system}, options).front();
    cell.model_time = whole.total;
    for (const LayerTypeTime& part : whole.parts) cell.forward_time += part.count * part.forward;
}

void run_all_reduce(const Machine& machine, ReproducedCell& cell) {
    Collective collective;
    collective.op = Collective::Op::all_reduce;
    collective.algorithm = Collective::Algorithm::nvls;
    collective.gpus = cell.gpus;
    collective.bytes = cell.tokens;
    collective.grain = cell.grain;
    const CollectiveResult result = run_collective(machine, collective);
    cell.time = result.time;
    cell.bytes_up = result.bytes_up;
    cell.bytes_down = result.bytes_down;
}

}  // namespace moehub
