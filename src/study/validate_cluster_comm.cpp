// A layer of nothing but rows, at row grain. Where a row gives a bandwidth, its time is the bytes
// that the bandwidth counts, for tokens that choose as they did there, over the bandwidth.
#include "study/validate_cluster_comm.hpp"

#include "base/rng.hpp"
#include "study/validate_rows.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMostGpus = 4096;
constexpr std::int64_t kMostTokens = 65'536;
constexpr int kMostWidth = 65'536;
constexpr int kMostExperts = 4096;
constexpr std::int64_t kMostRows = 16'000'000;
constexpr double kMostElement = 8;
constexpr std::int64_t kSample = 4096;  ///< tokens whose targets are counted
constexpr int kLargestWithNvlink = 64;  ///< GPUs of DeepEP's low-latency table that were measured
                                        ///< again with NVLink inside the node (June 2025)

/// The version that a row is of, by what its publisher says.
std::string version_of(const CsvRow& row, const std::string& system, int gpus) {
    if (row.field("note").find("single-QP") != std::string::npos) return system + "-single-qp";
    if (system == "deepep-ll" && gpus > kLargestWithNvlink) return "deepep-ll-rdma";
    return system;
}

/// Parts of all experts, in order, that a token reaches on average.
double reached(const ClusterCommCase& what, int parts) {
    const Routing routing = routing_by_scores(what, kSample);
    std::size_t sum = 0;
    for (std::int64_t token = 0; token < kSample; ++token) {
        std::set<int> distinct;
        for (const std::uint16_t expert : routing.chosen_by(0, token))
            distinct.insert(expert * parts / what.experts);
        sum += distinct.size();
    }
    return static_cast<double>(sum) / static_cast<double>(kSample);
}

/// What the published bandwidth counts, of one GPU: a copy for each GPU (NVLink) or each node that
/// a token reaches, its own included; FP8 with a scale for 128 elements.
double counted_bytes(const ClusterCommCase& what, const std::string& meaning, int nodes) {
    const double element = what.combine ? what.combine_element : what.dispatch_element;
    const double scales = !what.combine && element <= 1 ? 1.03125 : 1;
    const bool per_gpu = meaning.find("NVLink") != std::string::npos;
    return reached(what, per_gpu ? what.gpus : nodes) * static_cast<double>(what.tokens_per_gpu) *
           what.hidden * element * scales;
}

void parse_layer_of(const CsvRow& row, ClusterCommCase& parsed) {
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.tokens_per_gpu = row.integer("tokens_per_gpu", 1, kMostTokens);
    parsed.hidden = static_cast<int>(row.integer("hidden", 1, kMostWidth));
    parsed.experts = static_cast<int>(row.integer("experts", 1, kMostExperts));
    parsed.top_k = static_cast<int>(row.integer("top_k", 1, parsed.experts));
    if (parsed.gpus * parsed.tokens_per_gpu > kMostRows / parsed.top_k)
        row.reject("tokens_per_gpu", fmt::format("at most {} rows over all GPUs", kMostRows));
    parsed.dispatch_element = row.positive("dispatch_bytes_per_element");
    parsed.combine_element = row.positive("combine_bytes_per_element");
    for (const auto* column : {"dispatch_bytes_per_element", "combine_bytes_per_element"})
        if (row.positive(column) > kMostElement) row.reject(column, "at most 8");
    if (row.has("sms")) parsed.sms = static_cast<int>(row.integer("sms", 1, kMostExperts));
}

}  // namespace

Routing routing_by_scores(const ClusterCommCase& what, std::int64_t tokens) {
    Routing routing;
    routing.experts = what.experts;
    routing.top_k = what.top_k;
    routing.layers = 1;
    routing.tokens = tokens;
    Rng rng(1);
    std::vector<std::uint16_t> rows;
    std::vector<std::uint16_t> order(static_cast<std::size_t>(what.experts));
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    for (std::int64_t token = 0; token < tokens; ++token) {
        std::set<int> kept;  // groups, by their best expert
        int chosen = 0;
        // The next best expert is any of those that have not come yet.
        for (std::size_t next = 0; chosen < what.top_k; ++next) {
            std::swap(order[next], order[next + rng.below(order.size() - next)]);
            const int group = order[next] * what.groups / what.experts;
            if (static_cast<int>(kept.size()) < what.top_groups) kept.insert(group);
            if (!kept.contains(group)) continue;
            rows.push_back(order[next]);
            ++chosen;
        }
    }
    routing.weights = std::vector<float>(rows.size(), 1.0F / static_cast<float>(what.top_k));
    routing.chosen = std::move(rows);
    return routing;
}

std::vector<ClusterCommCase> parse_cluster_comm(const CsvRow& row) {
    ClusterCommCase parsed;
    parse_layer_of(row, parsed);
    parsed.machine = row.text("machine");
    const std::string phase = row.text("phase");
    if (phase != "dispatch" && phase != "combine") row.reject("phase", "dispatch, combine");
    parsed.combine = phase == "combine";
    const int per_node = static_cast<int>(row.integer("gpus_per_node", 1, kMostGpus));
    const int nodes = (parsed.gpus + per_node - 1) / per_node;
    if (row.has("top_groups")) {
        parsed.groups = nodes;
        parsed.top_groups = static_cast<int>(row.integer("top_groups", 1, nodes));
        const int reach = parsed.experts / nodes * parsed.top_groups;
        if (reach < parsed.top_k) row.reject("top_k", fmt::format("at most {}", reach));
    }
    const std::string system = row.text("system");
    parsed.system = version_of(row, system, parsed.gpus);
    double us = value_in(row, "us");
    if (const double rate = value_in(row, "GBps"); us == 0 && rate > 0)
        us = counted_bytes(parsed, row.text("GBps_meaning"), nodes) / rate / 1e3;
    parsed.measurement = {system, {{"version", parsed.system}}, us, "us"};
    for (auto& column : shape_of(row, {"machine", "gpus", "tokens_per_gpu", "experts", "top_groups",
                                       "dispatch_bytes_per_element", "phase", "sms"}))
        parsed.measurement.shape.push_back(std::move(column));
    return {parsed};
}

namespace {

RowTimes simulate(const ClusterCommCase& what, const Machine& machine) {
    SystemSpec system = load_system(what.system);
    system.dispatch_element = what.dispatch_element;
    system.combine_element = what.combine_element;
    if (what.sms > 0) system.communication_sms = what.sms;
    const Model model = model_of_rows(what.hidden, what.experts, what.top_k);
    const Routing routing = routing_by_scores(what, what.tokens_per_gpu * what.gpus);
    const Placement placement = contiguous_placement(what.experts, what.gpus);
    LayerOptions options;
    options.compute = false;
    const LayerResult result =
        simulate_layer({machine, model, routing, placement}, system, options);
    return {to_us(result.dispatch), to_us(result.combine)};
}

}  // namespace

Prediction predict_cluster_comm(const ClusterCommCase& what, const PredictContext& context) {
    Machine machine;
    try {
        machine = context.machine(what.machine, what.gpus);
    } catch (const InputError& error) {
        return {std::nullopt, error.what(), what.machine};
    }
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {}", what.system, what.machine, what.gpus,
                    what.sms, what.tokens_per_gpu, what.hidden, what.experts, what.top_k,
                    what.top_groups, what.dispatch_element, what.combine_element);
    try {
        const auto known = context.simulated->find(key);
        const RowTimes times = known != context.simulated->end()
                                   ? known->second
                                   : ((*context.simulated)[key] = simulate(what, machine));
        return {what.combine ? times.combine : times.dispatch, {}};
    } catch (const InputError& error) {
        return {std::nullopt, error.what()};
    }
}

}  // namespace moehub
