#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "base/quantity.hpp"
#include "study/reproduce_paper.hpp"

#include <moehub/compare.hpp>
#include <moehub/model_time.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kModelPrefix = "model.";

const Reading& reading_of(const PaperSetup& setup, const CellKey& key) {
    const std::vector<Reading>& all = setup.readings;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Reading& one) { return one.name == key.reading; });
    return found == all.end() ? all.front() : *found;
}

/// Adds changes of the machine, or those of the model without their prefix.
void add_changes(Overrides& all, const std::vector<std::string>& changes, bool of_model) {
    for (const std::string& one : changes)
        if (one.starts_with(kModelPrefix) == of_model)
            all.push_back(of_model ? one.substr(kModelPrefix.size()) : one);
}

/// The cell's machine with the paper's changes, the reading's, and last the cell's.
Machine machine_of(const PaperSetup& setup, const CellKey& key) {
    Overrides changes;
    if (key.machine.empty()) {
        add_changes(changes, setup.changes, false);
        const Overrides& read = reading_of(setup, key).changes;
        changes.insert(changes.end(), read.begin(), read.end());
    }
    add_changes(changes, key.changes, false);
    const std::string& preset = key.machine.empty() ? setup.machine : key.machine;
    return with_gpus(load_machine(preset, changes), key.gpus);
}

Model model_of(const PaperSetup& setup, const CellKey& key) {
    Overrides changes;
    add_changes(changes, setup.changes, true);
    add_changes(changes, key.changes, true);
    return load_model(key.model, changes);
}

/// GPUs that share an expert; more than one where there are fewer experts than GPUs.
int tensor_parallel_of(const CellKey& key, const Model& model) {
    return std::max(1, key.gpus / model.experts);
}

/// A number in rough proportion to the time a simulation takes: rows, and GPUs that take part; in
/// packet grain each of a row's packets. A collective is nothing beside.
double work_of(const PaperSetup& setup, const CellKey& key) {
    constexpr double kRowPackets = 32;
    if (key.work == CellWork::all_reduce) return 0;
    const bool hub = key.system == "moe-hub" || key.system.starts_with("mh-");
    const double rows = static_cast<double>(key.tokens) * std::max(1, model_of(setup, key).top_k);
    return rows * key.gpus * (hub ? 2 : 1) * (key.work == CellWork::training ? 2 : 1) *
           (key.grain == Grain::packet ? kRowPackets : 1);
}

/// Cells by work: what takes long must not start last, when other cores have nothing left to do.
std::vector<std::size_t> largest_first(const PaperSetup& setup, const std::vector<CellKey>& keys) {
    std::vector<double> work;
    for (const CellKey& key : keys) work.push_back(work_of(setup, key));
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
    return order;
}

/// The key of the training cell that has this layer's result, too.
std::optional<CellKey> with_layer(CellKey key) {
    if (key.work != CellWork::layer) return std::nullopt;
    key.work = CellWork::training;
    return key;
}

void note(const LayerResult& layer, ReproducedCell& cell) {
    cell.time = layer.time;
    cell.first_gemm = layer.first_gemm;
    cell.communication = layer.breakdown.communication;
    cell.compute = layer.breakdown.compute;
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

ModelOptions options_of(const PaperSetup& setup, const CellKey& key) {
    ModelOptions options;
    options.threads = 1;  // cells run side by side
    options.training = key.work == CellWork::training;
    options.eager = setup.eager;
    options.layer.grain = key.grain;
    return options;
}

void run_layer(const Machine& machine, const Model& model, const SystemSpec& system,
               const PaperSetup& setup, ReproducedCell& cell) {
    ModelOptions options = options_of(setup, cell);
    options.layer.compute = cell.work != CellWork::communication;
    options.layer.tensor_parallel = tensor_parallel_of(cell, model);
    const Placement placement =
        contiguous_placement(model.experts, cell.gpus / options.layer.tensor_parallel);
    const Routing routing = make_routing(parse_routing(cell.routing), model, cell.tokens);
    run_under(system, {machine, model, routing, placement}, options, cell);
}

SystemSpec system_of(const PaperSetup& setup, const CellKey& key) {
    SystemSpec system = with_software(load_system(key.system), setup.software);
    if (system.program == "ideal") system.switch_copies = !setup.bound_scales;
    return system;
}

SubLayer part_of(const ReproducedCell& cell) {
    const std::optional<SubLayer> part = sub_layer_named(cell.part);
    if (!part)
        throw input_error("sub-layer: found {}, allowed: {}", moehub::quoted(cell.part),
                          fmt::join(sub_layer_names(), ", "));
    return *part;
}

double statistic(const LayerResult& layer, std::string_view unit, std::string_view name) {
    for (const Statistic& one : layer.statistics)
        if (one.unit == unit && one.name == name) return one.value;
    return 0;
}

bool is_gpu(const std::string& name) {
    return name.starts_with("gpu");
}

/// Share of time in which links are busy, mean over GPUs and both directions.
double link_use(const LayerResult& layer) {
    double busy = 0;
    double links = 0;
    for (const LinkUse& link : layer.links) {
        if (!is_gpu(link.from) && !is_gpu(link.to)) continue;
        busy += static_cast<double>(link.busy);
        ++links;
    }
    return links > 0 && layer.time > 0 ? busy / links / static_cast<double>(layer.time) : 0;
}

/// Use of a port's merge table. Row grain counts lines of all a GPU's ports, which share evenly.
MergeUse merge_use(const LayerResult& layer, const Machine& machine, Grain grain) {
    const int ports = grain == Grain::row ? machine.switches - machine.switches_down : 1;
    return {statistic(layer, "merge", "deepest") / ports, statistic(layer, "merge", "spread_us"),
            statistic(layer, "merge", "longest_us")};
}

/// Runs the sub-layer that the cell names, or the whole model.
void run_dense(const DenseInput& input, const SystemSpec& system, const PaperSetup& setup,
               ReproducedCell& cell) {
    if (cell.work == CellWork::sub_layer) {
        const LayerResult layer =
            simulate_tp({input.machine, input.model, input.tokens, part_of(cell)}, system,
                        {cell.grain, false, setup.residual});
        note(layer, cell);
        cell.link_use = link_use(layer);
        cell.merge = merge_use(layer, input.machine, cell.grain);
        return;
    }
    const ModelTime whole = simulate_dense_models(input, {system}, options_of(setup, cell)).front();
    cell.model_time = whole.total;
    for (const LayerTypeTime& part : whole.parts) cell.forward_time += part.count * part.forward;
}

void run_all_reduce(const Machine& machine, ReproducedCell& cell) {
    const CollectiveResult result =
        run_collective(machine, {.op = Collective::Op::all_reduce,
                                 .algorithm = Collective::Algorithm::nvls,
                                 .gpus = cell.gpus,
                                 .bytes = cell.tokens,
                                 .grain = cell.grain});
    cell.time = result.time;
    cell.bytes_up = result.bytes_up;
    cell.bytes_down = result.bytes_down;
}

std::vector<Ps> in_bins_of(Ps width, const LinkUse& link) {
    std::vector<Ps> bins;
    for (std::size_t i = 0; i < link.bins.size(); ++i) {
        const auto bin = static_cast<std::size_t>(static_cast<Ps>(i) * link.bin / width);
        bins.resize(std::max(bins.size(), bin + 1));
        bins[bin] += link.bins[i];
    }
    return bins;
}

}  // namespace

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

PaperSetup setup_of(const Publication& paper) {
    return {paper.machine, paper.changes, paper.readings};
}

ReproducedCell simulate_cell(const PaperSetup& setup, const CellKey& key) {
    ReproducedCell cell{key};
    const Machine machine = machine_of(setup, key);
    try {
        if (key.work == CellWork::all_reduce) {
            run_all_reduce(machine, cell);
            return cell;
        }
        const Model model = model_of(setup, key);
        const SystemSpec system = system_of(setup, key);
        if (model.experts == 0)
            run_dense({machine, model, key.tokens}, system, setup, cell);
        else
            run_layer(machine, model, system, setup, cell);
    } catch (const InputError& error) {
        cell.refusal = error.what();
    }
    return cell;
}

std::vector<ReproducedCell> simulate_cells(const PaperSetup& setup,
                                           const std::vector<CellKey>& keys,
                                           const ReproduceOptions& options) {
    const std::vector<std::size_t> order = largest_first(setup, keys);
    std::vector<ReproducedCell> cells(keys.size());
    run_parallel(keys.size(),
                 [&](std::size_t i) { cells[order[i]] = simulate_cell(setup, keys[order[i]]); },
                 {options.threads, options.progress});
    return cells;
}

Lookup lookup_in(const std::vector<ReproducedCell>& cells, const std::string& reading) {
    std::map<CellKey, const ReproducedCell*> by_key;
    for (const ReproducedCell& cell : cells) by_key[cell] = &cell;
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

// With b[d][i] the busy time of a GPU's direction d in the i-th stretch of time,
//
//     busier way = Σ_i max(b[up][i], b[down][i]).
//
// Links that ran longer have wider bins; all are seen in the widest.

Ps busier_way(const std::vector<LinkUse>& links) {
    Ps width = 1;
    for (const LinkUse& link : links) width = std::max(width, link.bin);
    std::map<std::string, std::vector<Ps>> by_gpu;
    for (const LinkUse& link : links) {
        if (!is_gpu(link.from) && !is_gpu(link.to)) continue;
        const std::vector<Ps> bins = in_bins_of(width, link);
        std::vector<Ps>& busier = by_gpu[is_gpu(link.from) ? link.from : link.to];
        busier.resize(std::max(busier.size(), bins.size()));
        for (std::size_t i = 0; i < bins.size(); ++i) busier[i] = std::max(busier[i], bins[i]);
    }
    Ps most = 0;
    for (const auto& [gpu, bins] : by_gpu)
        most = std::max(most, std::accumulate(bins.begin(), bins.end(), Ps{0}));
    return most;
}

}  // namespace moehub
