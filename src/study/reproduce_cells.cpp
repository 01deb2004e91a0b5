#include "study/reproduce_cells.hpp"

#include "study/busier_way.hpp"

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

constexpr std::string_view kModelPrefix = "model.";

const Reading& reading_of(const PaperSetup& setup, const CellKey& key) {
    const std::vector<Reading>& all = setup.readings;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Reading& one) { return one.name == key.reading; });
    return found == all.end() ? all.front() : *found;
}

/// The paper's changes and the cell's, those of the model or those of the machine.
Overrides changes_of(const PaperSetup& setup, const CellKey& key, bool model) {
    Overrides changes;
    for (const auto* list : {&setup.changes, &key.changes})
        for (const std::string& one : *list)
            if (one.starts_with(kModelPrefix) == model)
                changes.push_back(model ? one.substr(kModelPrefix.size()) : one);
    return changes;
}

Machine machine_of(const PaperSetup& setup, const CellKey& key) {
    Overrides changes = changes_of(setup, key, false);
    const Reading& reading = reading_of(setup, key);
    changes.insert(changes.end(), reading.changes.begin(), reading.changes.end());
    return with_gpus(load_machine(setup.machine, changes), key.gpus);
}

Model model_of(const PaperSetup& setup, const CellKey& key) {
    return load_model(key.model, changes_of(setup, key, true));
}

/// With fewer experts than GPUs, several GPUs share each expert.
int tensor_parallel_of(const CellKey& key, const Model& model) {
    return std::max(1, key.gpus / model.experts);
}

/// In rough proportion to the time a simulation takes: rows, and GPUs that take part; in packet
/// grain each of a row's packets.
double work_of(const PaperSetup& setup, const CellKey& key) {
    constexpr double kRowPackets = 32;
    const bool hub = key.system == "moe-hub" || key.system.starts_with("mh-");
    const double rows = static_cast<double>(key.tokens) * model_of(setup, key).top_k;
    return rows * key.gpus * (hub ? 2 : 1) * (key.work == CellWork::training ? 2 : 1) *
           (key.grain == Grain::packet ? kRowPackets : 1);
}

/// What takes long must not start last, when the other cores have nothing left to do.
std::vector<std::size_t> largest_first(const PaperSetup& setup, const std::vector<CellKey>& keys) {
    std::vector<double> work;
    for (const CellKey& key : keys) work.push_back(work_of(setup, key));
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
    return order;
}

/// The cell that has this layer's result, too.
std::optional<CellKey> with_layer(CellKey key) {
    if (key.work != CellWork::layer) return std::nullopt;
    key.work = CellWork::training;
    return key;
}

void note(const LayerResult& layer, ReproducedCell& cell) {
    cell.time = layer.time;
    cell.first_gemm = layer.first_gemm;
    cell.communication = layer.breakdown.communication;
    cell.busier_way = busier_way(layer.links);
    cell.bytes_up = layer.bytes_up;
    cell.bytes_down = layer.bytes_down;
}

void run_under(const SystemSpec& system, const LayerInput& input, const ModelOptions& options,
               ReproducedCell& cell) {
    if (cell.work == CellWork::layer || cell.work == CellWork::communication) {
        note(simulate_layer(input, system, options.layer), cell);
        return;
    }
    const ModelTime whole = simulate_models(input, {system}, options).front();
    note(*whole.moe, cell);
    cell.model_time = whole.total;
}

}  // namespace

CellKey key_of(const ReproducedCell& cell) {
    return {cell.model,   cell.gpus, cell.tokens,  cell.routing, cell.system,
            cell.reading, cell.work, cell.changes, cell.grain};
}

std::vector<CellKey> cells_asked(const std::function<void(const Lookup&)>& ask) {
    std::set<CellKey> keys;
    const ReproducedCell empty;
    ask([&](const CellKey& key) -> const ReproducedCell& {
        keys.insert(key);
        return empty;
    });
    std::vector<CellKey> needed;
    for (const CellKey& key : keys) {
        const std::optional<CellKey> training = with_layer(key);
        if (!training || !keys.contains(*training)) needed.push_back(key);
    }
    return needed;
}

ReproducedCell simulate_cell(const PaperSetup& setup, const CellKey& key) {
    ReproducedCell cell{key.model, key.gpus, key.tokens, key.routing, key.system, 0, 0, 0, ""};
    cell.reading = key.reading;
    cell.work = key.work;
    cell.changes = key.changes;
    cell.grain = key.grain;
    const Machine machine = machine_of(setup, key);
    const Model model = model_of(setup, key);
    const Routing routing = make_routing(parse_routing(key.routing), model, key.tokens);
    ModelOptions options;
    options.threads = 1;  // cells run side by side
    options.training = key.work == CellWork::training;
    options.eager = setup.eager;
    options.layer.grain = key.grain;
    options.layer.compute = key.work != CellWork::communication;
    options.layer.tensor_parallel = tensor_parallel_of(key, model);
    const Placement placement =
        contiguous_placement(model.experts, key.gpus / options.layer.tensor_parallel);
    const LayerInput input{machine, model, routing, placement};
    try {
        SystemSpec system = with_software(load_system(key.system), setup.software);
        if (system.program == "ideal") system.switch_copies = !setup.bound_scales;
        run_under(system, input, options, cell);
    } catch (const InputError& error) {
        cell.refusal = error.what();
    }
    return cell;
}

std::vector<ReproducedCell> simulate_cells(const PaperSetup& setup,
                                           const std::vector<CellKey>& keys,
                                           const ParallelOptions& options) {
    const std::vector<std::size_t> order = largest_first(setup, keys);
    std::vector<ReproducedCell> cells(keys.size());
    run_parallel(
        keys.size(), [&](std::size_t i) { cells[order[i]] = simulate_cell(setup, keys[order[i]]); },
        options);
    return cells;
}

Lookup lookup_in(const std::vector<ReproducedCell>& cells, const std::string& reading) {
    std::map<CellKey, const ReproducedCell*> by_key;
    for (const ReproducedCell& cell : cells) by_key[key_of(cell)] = &cell;
    return [by_key = std::move(by_key), reading](CellKey key) -> const ReproducedCell& {
        key.reading = reading;
        auto found = by_key.find(key);
        const std::optional<CellKey> training = with_layer(key);
        if (found == by_key.end() && training) found = by_key.find(*training);
        if (found == by_key.end())
            throw std::logic_error(fmt::format(
                "a figure asks for {} under {}, which was not simulated", key.model, key.system));
        return *found->second;
    };
}

}  // namespace moehub
