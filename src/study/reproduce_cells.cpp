#include "study/reproduce_cells.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/model_time.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

const Reading& reading_of(const CellKey& key) {
    const std::vector<Reading>& all = moe_hub_readings();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Reading& one) { return one.name == key.reading; });
    return found == all.end() ? all.front() : *found;
}

/// The paper goes on to 16 GPUs: the same links and switches with more ports, still one node.
Machine machine_of(const CellKey& key) {
    Overrides changes{"max_gpus=16"};
    const Reading& reading = reading_of(key);
    changes.insert(changes.end(), reading.changes.begin(), reading.changes.end());
    return with_gpus(load_machine("dgx-h800", changes), key.gpus);
}

/// Experts of two matrices, as the paper describes them.
Model model_of(const CellKey& key) {
    return load_model(key.model, {"gated=false"});
}

/// With fewer experts than GPUs, several GPUs share each expert.
int tensor_parallel_of(const CellKey& key, const Model& model) {
    return std::max(1, key.gpus / model.experts);
}

/// In rough proportion to the time a simulation takes: rows, and GPUs that take part.
double work_of(const CellKey& key) {
    const bool hub = key.system == "moe-hub" || key.system.starts_with("mh-");
    const double rows = static_cast<double>(key.tokens) * load_model(key.model).top_k;
    return rows * key.gpus * (hub ? 2 : 1);
}

/// What takes long must not start last, when the other cores have nothing left to do.
std::vector<std::size_t> largest_first(const std::vector<CellKey>& keys) {
    std::vector<double> work;
    for (const CellKey& key : keys) work.push_back(work_of(key));
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
    return order;
}

bool refused(const LayerInput& input, const LayerOptions& options, ReproducedCell& cell) {
    try {
        check_layer(input, load_system(cell.system), options);
        return false;
    } catch (const InputError& error) {
        cell.refusal = error.what();
        return true;
    }
}

}  // namespace

CellKey key_of(const ReproducedCell& cell) {
    return {cell.model, cell.gpus, cell.tokens, cell.routing, cell.system, cell.reading};
}

std::vector<CellKey> cells_asked(const std::function<void(const Lookup&)>& ask) {
    std::set<CellKey> keys;
    const ReproducedCell empty;
    ask([&](const CellKey& key) -> const ReproducedCell& {
        keys.insert(key);
        return empty;
    });
    return {keys.begin(), keys.end()};
}

ReproducedCell simulate_cell(const CellKey& key) {
    ReproducedCell cell{key.model, key.gpus, key.tokens, key.routing, key.system, 0, 0, 0, ""};
    cell.reading = key.reading;
    const Machine machine = machine_of(key);
    const Model model = model_of(key);
    const Routing routing = make_routing(parse_routing(key.routing), model, key.tokens);
    ModelOptions options;
    options.threads = 1;  // cells run side by side
    options.layer.tensor_parallel = tensor_parallel_of(key, model);
    const Placement placement =
        contiguous_placement(model.experts, key.gpus / options.layer.tensor_parallel);
    const LayerInput input{machine, model, routing, placement};
    if (refused(input, options.layer, cell)) return cell;
    const ModelTime whole = simulate_models(input, load_systems({key.system}), options).front();
    cell.time = whole.moe.time;
    cell.first_gemm = whole.moe.first_gemm;
    cell.model_time = whole.total;
    return cell;
}

std::vector<ReproducedCell> simulate_cells(const std::vector<CellKey>& keys,
                                           const ParallelOptions& options) {
    const std::vector<std::size_t> order = largest_first(keys);
    std::vector<ReproducedCell> cells(keys.size());
    run_parallel(
        keys.size(), [&](std::size_t i) { cells[order[i]] = simulate_cell(keys[order[i]]); },
        options);
    return cells;
}

Lookup lookup_in(const std::vector<ReproducedCell>& cells, const std::string& reading) {
    std::map<CellKey, const ReproducedCell*> by_key;
    for (const ReproducedCell& cell : cells) by_key[key_of(cell)] = &cell;
    return [by_key = std::move(by_key), reading](CellKey key) -> const ReproducedCell& {
        key.reading = reading;
        const auto found = by_key.find(key);
        if (found == by_key.end())
            throw std::logic_error(fmt::format(
                "a figure asks for {} under {}, which was not simulated", key.model, key.system));
        return *found->second;
    };
}

}  // namespace moehub
