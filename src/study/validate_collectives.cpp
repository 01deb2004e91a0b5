// Collectives run at row grain on the row's machine.
//
// Between nodes and in racks NCCL's own choice is what rows have, unless their manifest forces
// CollnetChain over SHARP; more GPUs than a rack or a node has are several of it.
//
// By element and size, NCCL's rows run with its own choice. TensorRT-LLM's all-reduce is its
// one-shot kernel where that is the faster one, and NCCL's elsewhere, as its tables of measured
// times choose.
#include "study/collective_names.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/collective.hpp>

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostCollectiveGpus = 1'000'000;
constexpr double kGB = 1e9;
constexpr std::string_view kOneShot = "all_reduce_one_shot";

struct CollectiveCase {
    std::string machine;
    std::string op;
    std::string algorithm;
    std::string dtype;
    int gpus = 0;
    Bytes bytes = 0;
};

CollectiveCase sizes_of(const CsvRow& row, CollectiveCase named) {
    named.gpus = whole(row, "gpus", 1, kMostCollectiveGpus);
    named.bytes = row.integer("bytes", 1, kMostBytes);
    return named;
}

using Translation = std::pair<std::string_view, std::string_view>;

/// Names as a source says them, and as moehub does.
constexpr Translation kSaidAlgorithms[] = {
    {"nccl default", "auto"}, {"nvls", "auto"}, {"SHARP manifest", "collnet"}};
constexpr Translation kClusters[] = {{"dgx-h100", "h100-cluster"},
                                     {"dgx-h200", "h200-cluster"},
                                     {"dgx-h800", "h800-cluster"},
                                     {"dgx-b200", "b200-cluster"},
                                     {"gb200-nvl72", "gb200-cluster"}};

std::string translated(std::span<const Translation> names, const std::string& said) {
    for (const auto& [from, to] : names)
        if (from == said) return std::string(to);
    return said;
}

std::string cluster_of(const CollectiveCase& what, const PredictContext& context) {
    try {
        const Machine machine = context.machine(what.machine);
        const bool fits = what.gpus <= machine.gpus() || machine.nic.bandwidth > 0;
        return fits ? what.machine : translated(kClusters, what.machine);
    } catch (const InputError&) {
        return what.machine;  // predicting says what is wrong
    }
}

template <class Known>
Prediction unknown(std::string_view what, const Known& known) {
    return skip(fmt::format("unknown {}; known: {}", what, fmt::join(known, ", ")));
}

/// The time or bandwidth by the algorithm that is asked for; "auto" is NCCL's own choice.
Prediction predict_collective(const CollectiveCase& what, bool timed,
                              const PredictContext& context) {
    const bool one_shot = what.op == kOneShot;
    std::vector<std::string_view> known = op_names();
    if (!what.dtype.empty()) known.push_back(kOneShot);
    const auto op = op_named(one_shot && !what.dtype.empty() ? "all_reduce" : what.op);
    if (!op) return unknown("operation", known);
    const auto algorithm = algorithm_named(what.algorithm);
    if (!algorithm) return unknown("algorithm", algorithm_names());
    const auto element = what.dtype.empty() ? Collective().element : element_named(what.dtype);
    if (!element) return unknown("dtype", element_names());
    const Machine machine = context.machine_or_skip(what.machine, what.gpus);
    Collective collective{*op, *algorithm, *element, what.gpus, what.bytes};
    const CollectiveResult result = run_collective(machine, collective);
    if (!timed) return {result.bus_bandwidth / kGB};
    if (!one_shot) return {to_us(result.time)};
    collective.algorithm = Collective::Algorithm::one_shot;
    return {to_us(std::min(result.time, run_collective(machine, collective).time))};
}

Cases by_algorithm(const CsvRow& row, bool cluster) {
    const CollectiveCase what =
        sizes_of(row, {row.text("machine"), row.text("op"), row.text("algorithm"), {}});
    const bool timed = row.has("us");
    return {{{what.op + " " + what.algorithm,
              {},
              value_in(row, timed ? "us" : "busbw_GBps"),
              timed ? "us" : "GB/s"},
             [=](const PredictContext& context) {
                 CollectiveCase known = what;
                 if (cluster) {
                     known.machine = cluster_of(what, context);
                     known.algorithm = translated(kSaidAlgorithms, what.algorithm);
                 }
                 return predict_collective(known, timed, context);
             }}};
}

}  // namespace

Cases collective_cases(const CsvRow& row) {
    return by_algorithm(row, false);
}

Cases cluster_collective_cases(const CsvRow& row) {
    return by_algorithm(row, true);
}

Cases nccl_cases(const CsvRow& row) {
    const CollectiveCase what =
        sizes_of(row, {row.text("machine"), row.text("op"), "auto", row.text("dtype")});
    return {{timed(row, what.machine + " " + what.op), [what](const PredictContext& context) {
                 return predict_collective(what, true, context);
             }}};
}

}  // namespace moehub
