// Dispatch and combine: a layer of nothing else, at row grain.
//
// DeepEP inside a node: tokens choose their experts at random, all sets alike, as its own benchmark
// draws them. Long dispatches are extended linearly from two sizes: from there on every token takes
// as long as the one before.
//
// On clusters, DeepEP's kernels of several versions and HybridEP: where a row gives a bandwidth,
// its time is the bytes that the bandwidth counts, for tokens that choose as they did there, over
// the bandwidth.
#include "base/rng.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/layer.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kMostElement = 8;
constexpr std::int64_t kSample = 4096;   ///< tokens whose targets are counted
constexpr int kLargestWithNvlink = 64;   ///< GPUs of DeepEP's low-latency table that were measured
                                         ///< again with NVLink inside the node (June 2025)
constexpr std::int64_t kLongest = 2048;  ///< most tokens of a GPU simulated for DeepEP
constexpr std::int64_t kShorter = 512;   ///< tokens of a GPU: shows what one more takes

/// Limits that any machine of today could be asked, and within which a simulation ends soon.
struct MostRows {
    std::int64_t gpus;
    std::int64_t tokens;
    std::int64_t width;
    std::int64_t experts;
    std::int64_t rows = 0;       ///< rows over all GPUs; 0: any number
    bool choices_exist = false;  ///< top-k is at most the row's experts
};
constexpr MostRows kMostInNode{1'000'000, 65'536, 65'536, 10'000, 4'000'000};
constexpr MostRows kMostOfDeepEp{1 << 16, std::int64_t{1} << 30, 1 << 20, 1 << 16};
constexpr MostRows kMostOnCluster{4096, 65'536, 65'536, 4096, 16'000'000, true};

void read_sizes(const CsvRow& row, const MostRows& most, MovedRows& what) {
    what.gpus = whole(row, "gpus", 1, most.gpus);
    what.tokens_per_gpu = row.integer("tokens_per_gpu", 1, most.tokens);
    what.hidden = whole(row, "hidden", 1, most.width);
    what.experts = whole(row, "experts", 1, most.experts);
    what.top_k = whole(row, "top_k", 1, most.choices_exist ? what.experts : most.experts);
    if (most.rows > 0 && std::int64_t{what.gpus} * what.tokens_per_gpu > most.rows / what.top_k)
        row.reject("tokens_per_gpu", fmt::format("at most {} rows over all GPUs", most.rows));
}

void read_elements(const CsvRow& row, MovedRows& what) {
    for (const auto& [column, bytes] :
         {std::pair{"dispatch_bytes_per_element", &what.dispatch_element},
          {"combine_bytes_per_element", &what.combine_element}}) {
        *bytes = row.positive(column);
        if (*bytes > kMostElement) row.reject(column, "at most 8");
    }
}

/// What communication depends on, experts of any width.
RowTimes simulate(const MovedRows& what, const Machine& machine) {
    SystemSpec system = load_system(what.system);
    if (what.dispatch_element > 0) system.dispatch_element = what.dispatch_element;
    if (what.combine_element > 0) system.combine_element = what.combine_element;
    if (what.sms > 0) system.communication_sms = what.sms;
    Model model;
    model.name = "measured layer";
    model.layers = 1;
    model.hidden = model.expert_ffn = what.hidden;
    model.experts = what.experts;
    model.top_k = what.top_k;
    const std::int64_t tokens = what.tokens_per_gpu * what.gpus;
    const Routing routing = what.routing.empty()
                                ? routing_by_scores(what, tokens)
                                : make_routing(parse_routing(what.routing), model, tokens);
    const Placement placement = contiguous_placement(what.experts, what.gpus);
    LayerOptions options;
    options.compute = false;
    const LayerResult result =
        simulate_layer({machine, model, routing, placement}, system, options);
    return {to_us(result.dispatch), to_us(result.combine)};
}

/// The time of the phase, in microseconds.
double time_of(const MovedRows& what, const Machine& machine, const PredictContext& context) {
    const std::string key = fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {}", what.system, what.machine, what.routing,
        what.gpus, what.sms, what.tokens_per_gpu, what.hidden, what.experts, what.top_k,
        what.groups, what.top_groups, what.dispatch_element, what.combine_element);
    const RowTimes& times =
        remembered(*context.simulated, key, [&] { return simulate(what, machine); });
    return what.combine ? times.combine : times.dispatch;
}

Prediction predict_deepep(const MovedRows& what, const PredictContext& context) {
    const Machine machine = context.machine_or_skip(what.machine, what.gpus);
    MovedRows simulated = what;
    simulated.tokens_per_gpu = std::min(what.tokens_per_gpu, kLongest);
    double us = time_of(simulated, machine, context);
    if (what.tokens_per_gpu > kLongest) {
        simulated.tokens_per_gpu = kShorter;
        const double before = time_of(simulated, machine, context);
        us += (us - before) / static_cast<double>(kLongest - kShorter) *
              static_cast<double>(what.tokens_per_gpu - kLongest);
    }
    // Normal kernels were timed by call, low-latency ones by kernel.
    if (what.sms > 0) us += to_us(machine.gpu.exchange.call);
    return {us};
}

Cases deepep_cases(const CsvRow& row, const std::string& system, bool with_sms) {
    MovedRows what;
    what.system = system;
    what.machine = row.text("machine");
    what.routing = "uniform";
    read_sizes(row, kMostOfDeepEp, what);
    const bool one_node = row.integer("nodes", 1, kMostOfDeepEp.gpus) == 1;
    std::string on;
    if (with_sms) {
        what.sms = whole(row, "sms", 1, kMostOfDeepEp.experts);
        on = fmt::format(", {} SMs", what.sms);
    }
    Cases cases;
    for (const bool combine : {false, true}) {
        const std::string phase = combine ? "combine" : "dispatch";
        what.combine = combine;
        cases.push_back({timed(row, fmt::format("{} {} {}{}", system, what.machine, phase, on),
                               phase + "_us", {{"phase", phase}}),
                         [=](const PredictContext& context) {
                             if (!one_node) return skip("more than one node");
                             return predict_deepep(what, context);
                         }});
    }
    return cases;
}

/// The version of a system that a row measured, by what its publisher says.
std::string version_of(const CsvRow& row, const std::string& system, int gpus) {
    if (row.field("note").find("single-QP") != std::string::npos) return system + "-single-qp";
    if (system == "deepep-ll" && gpus > kLargestWithNvlink) return "deepep-ll-rdma";
    return system;
}

/// Parts of all experts, in order, that a token reaches on average.
double reached(const MovedRows& what, int parts) {
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
double counted_bytes(const MovedRows& what, const std::string& meaning, int nodes) {
    const double element = what.combine ? what.combine_element : what.dispatch_element;
    const double scales = !what.combine && element <= 1 ? 1.03125 : 1;
    const bool per_gpu = meaning.find("NVLink") != std::string::npos;
    return reached(what, per_gpu ? what.gpus : nodes) * static_cast<double>(what.tokens_per_gpu) *
           what.hidden * element * scales;
}

}  // namespace

Cases moe_comm_cases(const CsvRow& row) {
    MovedRows what;
    what.system = row.text("system");
    what.machine = row.text("machine");
    what.routing = row.text("routing");
    const std::string phase = row.text("phase");
    read_sizes(row, kMostInNode, what);
    read_elements(row, what);
    if (what.routing == "perfect") what.routing = "balanced";
    what.combine = phase == "combine";
    return {{timed(row, what.system), [=](const PredictContext& context) -> Prediction {
                 if (!what.combine && phase != "dispatch")
                     return skip(fmt::format("unknown phase {}; known: dispatch, combine", phase));
                 const Machine machine = context.machine_or_skip(what.machine, what.gpus);
                 return {time_of(what, machine, context)};
             }}};
}

Cases deepep_ll_cases(const CsvRow& row) {
    return deepep_cases(row, "deepep-ll", false);
}

Cases deepep_normal_cases(const CsvRow& row) {
    return deepep_cases(row, "deepep", true);
}

Cases cluster_comm_cases(const CsvRow& row) {
    MovedRows what;
    read_sizes(row, kMostOnCluster, what);
    read_elements(row, what);
    if (row.has("sms")) what.sms = whole(row, "sms", 1, kMostOnCluster.experts);
    what.machine = row.text("machine");
    const std::string phase = row.text("phase");
    if (phase != "dispatch" && phase != "combine") row.reject("phase", "dispatch, combine");
    what.combine = phase == "combine";
    const int per_node = whole(row, "gpus_per_node", 1, kMostOnCluster.gpus);
    const int nodes = (what.gpus + per_node - 1) / per_node;
    if (row.has("top_groups")) {
        what.groups = nodes;
        what.top_groups = whole(row, "top_groups", 1, nodes);
        const int reach = what.experts / nodes * what.top_groups;
        if (reach < what.top_k) row.reject("top_k", fmt::format("at most {}", reach));
    }
    const std::string system = row.text("system");
    what.system = version_of(row, system, what.gpus);
    Measurement measurement = timed(row, system, "us", {{"version", what.system}});
    if (const double rate = value_in(row, "GBps"); measurement.value == 0 && rate > 0)
        measurement.value = counted_bytes(what, row.text("GBps_meaning"), nodes) / rate / 1e3;
    for (const char* column : {"machine", "gpus", "tokens_per_gpu", "experts", "top_groups",
                               "dispatch_bytes_per_element", "phase", "sms"})
        measurement.shape.emplace_back(column, row.field(column));
    return {{measurement, [what](const PredictContext& context) -> Prediction {
                 const Machine machine = context.machine_or_skip(what.machine, what.gpus);
                 return {time_of(what, machine, context)};
             }}};
}

Routing routing_by_scores(const MovedRows& what, std::int64_t tokens) {
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

}  // namespace moehub
