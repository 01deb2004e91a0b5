// Collectives run at row grain on the row's machine.
//
// Between nodes and in racks NCCL's own choice is what rows have, unless their manifest forces
// CollnetChain over SHARP; more GPUs than a rack or a node has are several of it.
//
// By element and size, NCCL's rows run with its own choice. TensorRT-LLM's all-reduce is its
// one-shot kernel where that is the faster one, and NCCL's elsewhere, as its tables of measured
// times choose.
#include "study/collective_names.hpp"
#include "study/validate_cases.hpp"

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
    named.gpus = static_cast<int>(row.integer("gpus", 1, kMostCollectiveGpus));
    named.bytes = row.integer("bytes", 1, kMostBytes);
    return named;
}

using Translation = std::pair<std::string_view, std::string_view>;

/// As a source says it, and as moehub does.
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

Prediction predict_collective(const CollectiveCase& what, bool timed,
                              const PredictContext& context) {
    Collective collective;
    const auto op = op_named(what.op);
    if (!op) return unknown("operation", op_names());
    const auto algorithm = algorithm_named(what.algorithm);
    if (!algorithm) return unknown("algorithm", algorithm_names());
    const Machine machine = context.machine_or_skip(what.machine, what.gpus);
    collective.op = *op;
    collective.algorithm = *algorithm;
    collective.gpus = what.gpus;
    collective.bytes = what.bytes;
    collective.grain = Grain::row;
    const CollectiveResult result = run_collective(machine, collective);
    return {timed ? to_us(result.time) : result.bus_bandwidth / kGB};
}

Prediction predict_nccl(const CollectiveCase& what, const PredictContext& context) {
    Collective collective;
    const bool one_shot = what.op == kOneShot;
    const auto op = op_named(one_shot ? "all_reduce" : what.op);
    if (!op) {
        auto known = op_names();
        known.push_back(kOneShot);
        return unknown("operation", known);
    }
    const auto element = element_named(what.dtype);
    if (!element) return unknown("dtype", element_names());
    const Machine machine = context.machine_or_skip(what.machine, what.gpus);
    collective.op = *op;
    collective.element = *element;
    collective.gpus = what.gpus;
    collective.bytes = what.bytes;
    collective.algorithm = Collective::Algorithm::automatic;
    Ps time = run_collective(machine, collective).time;
    collective.algorithm = Collective::Algorithm::one_shot;
    if (one_shot) time = std::min(time, run_collective(machine, collective).time);
    return {to_us(time)};
}

MeasuredCase by_algorithm(const CsvRow& row, bool cluster) {
    const CollectiveCase what =
        sizes_of(row, {row.text("machine"), row.text("op"), row.text("algorithm"), {}});
    const bool timed = row.has("us");
    const Measurement measurement{
        what.op + " " + what.algorithm,
        shape_of(row, {"machine", "gpus", "op", "algorithm", "bytes", "source"}),
        value_in(row, timed ? "us" : "busbw_GBps"), timed ? "us" : "GB/s"};
    return {row.line(), measurement, [=](const PredictContext& context) {
                CollectiveCase known = what;
                if (cluster) {
                    known.machine = cluster_of(what, context);
                    known.algorithm = translated(kSaidAlgorithms, what.algorithm);
                }
                return predict_collective(known, timed, context);
            }};
}

}  // namespace

Cases collective_cases(const CsvRow& row) {
    return {by_algorithm(row, false)};
}

Cases cluster_collective_cases(const CsvRow& row) {
    return {by_algorithm(row, true)};
}

Cases nccl_cases(const CsvRow& row) {
    const CollectiveCase what =
        sizes_of(row, {row.text("machine"), row.text("op"), {}, row.text("dtype")});
    return {{row.line(),
             timed(row, what.machine + " " + what.op,
                   shape_of(row, {"machine", "gpus", "op", "dtype", "bytes"})),
             [what](const PredictContext& context) { return predict_nccl(what, context); }}};
}

}  // namespace moehub
