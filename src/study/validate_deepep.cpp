// Dispatch and combine of DeepEP, a layer of nothing else at row grain. Tokens choose their experts
// at random, all sets alike, as DeepEP's own benchmark draws them. Long dispatches are extended
// linearly from two sizes: from there on every token takes as long as the one before.
#include "study/validate_deepep.hpp"

#include "study/validate_rows.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kLongest = 2048;  ///< tokens of a GPU that are simulated,
constexpr std::int64_t kShorter = 512;   ///< and beside them, to see what one more takes

constexpr int kMostGpus = 1 << 16;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;
constexpr int kMostWidth = 1 << 20;
constexpr int kMostExperts = 1 << 16;

std::vector<DeepEpCase> parse(const CsvRow& row, const std::string& system, bool with_sms) {
    DeepEpCase parsed;
    parsed.system = system;
    parsed.machine = row.text("machine");
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.nodes = static_cast<int>(row.integer("nodes", 1, kMostGpus));
    parsed.tokens_per_gpu = row.integer("tokens_per_gpu", 1, kMostTokens);
    parsed.hidden = static_cast<int>(row.integer("hidden", 1, kMostWidth));
    parsed.top_k = static_cast<int>(row.integer("top_k", 1, kMostExperts));
    parsed.experts = static_cast<int>(row.integer("experts", 1, kMostExperts));
    Shape shape =
        shape_of(row, {"machine", "gpus", "tokens_per_gpu", "hidden", "top_k", "experts"});
    std::string on;
    if (with_sms) {
        parsed.sms = static_cast<int>(row.integer("sms", 1, kMostExperts));
        shape.emplace_back("sms", row.text("sms"));
        on = fmt::format(", {} SMs", parsed.sms);
    }
    std::vector<DeepEpCase> cases(2, parsed);
    for (const bool combine : {false, true}) {
        const std::string phase = combine ? "combine" : "dispatch";
        DeepEpCase& one = cases[combine ? 1 : 0];
        one.combine = combine;
        one.measurement = {fmt::format("{} {} {}{}", system, parsed.machine, phase, on), shape,
                           value_in(row, phase + "_us"), "us"};
        one.measurement.shape.emplace_back("phase", phase);
    }
    return cases;
}

RowTimes simulate(const DeepEpCase& what, const Machine& machine, std::int64_t tokens) {
    SystemSpec system = load_system(what.system);
    if (what.sms > 0) system.communication_sms = what.sms;
    const Model model = model_of_rows(what.hidden, what.experts, what.top_k);
    const Routing routing = make_routing(parse_routing("uniform"), model, tokens * what.gpus);
    const Placement placement = contiguous_placement(what.experts, what.gpus);
    LayerOptions options;
    options.compute = false;
    const LayerResult result =
        simulate_layer({machine, model, routing, placement}, system, options);
    return {to_us(result.dispatch), to_us(result.combine)};
}

RowTimes times_of(const DeepEpCase& what, const Machine& machine, std::int64_t tokens,
                  const PredictContext& context) {
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {}", what.system, what.machine, what.gpus, what.sms,
                    tokens, what.hidden, what.experts, what.top_k);
    const auto known = context.simulated->find(key);
    if (known != context.simulated->end()) return known->second;
    return (*context.simulated)[key] = simulate(what, machine, tokens);
}

}  // namespace

std::vector<DeepEpCase> parse_deepep_ll(const CsvRow& row) {
    return parse(row, "deepep-ll", false);
}

std::vector<DeepEpCase> parse_deepep_normal(const CsvRow& row) {
    return parse(row, "deepep", true);
}

Prediction predict_deepep(const DeepEpCase& what, const PredictContext& context) {
    if (what.nodes != 1) return {std::nullopt, "more than one node"};
    Machine machine;
    try {
        machine = context.machine(what.machine, what.gpus);
    } catch (const InputError& error) {
        return {std::nullopt, error.what(), what.machine};
    }
    const auto phase = [&](const RowTimes& times) {
        return what.combine ? times.combine : times.dispatch;
    };
    try {
        const std::int64_t most = std::min(what.tokens_per_gpu, kLongest);
        double us = phase(times_of(what, machine, most, context));
        if (what.tokens_per_gpu > most) {
            const double before = phase(times_of(what, machine, kShorter, context));
            us += (us - before) / static_cast<double>(kLongest - kShorter) *
                  static_cast<double>(what.tokens_per_gpu - most);
        }
        // Normal kernels were timed by call, low-latency ones by kernel.
        if (what.sms > 0) us += to_us(machine.gpu.exchange.call);
        return {us, {}};
    } catch (const InputError& error) {
        return {std::nullopt, error.what()};
    }
}

}  // namespace moehub
