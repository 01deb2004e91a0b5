// Operators are predicted as one card's kernels; collectives run at row grain on the row's
// machine. Rows of MoE communication are predicted in validate_moe_comm.cpp.
#include "study/validate_rows.hpp"

#include "study/collective_names.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostExtent = 2'000'000'000;  ///< the product of two fits an int64
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostGpus = 1'000'000;
// Of MoE communication: what any machine of today could be asked, and a simulation ends soon.
constexpr std::int64_t kMostTokens = 65'536;
constexpr std::int64_t kMostWidth = 65'536;
constexpr std::int64_t kMostExperts = 10'000;
constexpr std::int64_t kMostRows = 4'000'000;
constexpr double kMostElement = 8;
constexpr double kGB = 1e9;

/// An extent; columns that an operator does not have may be empty.
std::int64_t extent(const CsvRow& row, std::string_view column, std::int64_t otherwise) {
    return row.has(column) ? row.integer(column, 0, kMostExtent) : otherwise;
}

}  // namespace

std::vector<OperatorCase> parse_operator(const CsvRow& row) {
    OperatorCase parsed;
    parsed.op.op = row.text("op");
    parsed.op.groups = extent(row, "groups", 1);
    parsed.op.rows = row.integer("rows", 1, kMostExtent);
    parsed.op.max_rows = extent(row, "max_rows", 0);
    parsed.op.k = extent(row, "k", 0);
    parsed.op.n = extent(row, "n", 0);
    parsed.op.skew = row.has("skew") ? row.non_negative("skew") : 0;
    if (parsed.op.max_rows > parsed.op.rows)
        row.reject("max_rows", fmt::format("at most the row's rows, {}", parsed.op.rows));
    parsed.measurement = {parsed.op.op,
                          shape_of(row, {"op", "groups", "rows", "max_rows", "k", "n", "skew"}),
                          value_in(row, "us"), "us"};
    return {parsed};
}

Prediction predict_operator(const OperatorCase& what, const PredictContext& context) {
    const auto time = predict(context.gpu, what.op);
    if (!time) return skip("no model of this operator, or not of this size");
    return {to_us(*time), {}};
}

std::vector<CollectiveCase> parse_collective(const CsvRow& row) {
    CollectiveCase parsed;
    parsed.machine = row.text("machine");
    parsed.op = row.text("op");
    parsed.algorithm = row.text("algorithm");
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.bytes = row.integer("bytes", 1, kMostBytes);
    const bool timed = row.has("us");
    parsed.measurement = {parsed.op + " " + parsed.algorithm,
                          shape_of(row, {"machine", "gpus", "op", "algorithm", "bytes", "source"}),
                          value_in(row, timed ? "us" : "busbw_GBps"), timed ? "us" : "GB/s"};
    return {parsed};
}

Prediction predict_collective(const CollectiveCase& what, const PredictContext& context) {
    const auto op = op_named(what.op);
    if (!op) return skip(fmt::format("unknown operation; known: {}", fmt::join(op_names(), ", ")));
    const auto algorithm = algorithm_named(what.algorithm);
    if (!algorithm)
        return skip(
            fmt::format("unknown algorithm; known: {}", fmt::join(algorithm_names(), ", ")));
    Machine machine;
    try {
        machine = context.machine(what.machine, what.gpus);
    } catch (const InputError& error) {
        return skip(error.what(), what.machine);
    }
    CollectiveResult result;
    try {
        Collective collective;
        collective.op = *op;
        collective.algorithm = *algorithm;
        collective.gpus = what.gpus;
        collective.bytes = what.bytes;
        collective.grain = Grain::row;
        result = run_collective(machine, collective);
    } catch (const InputError& error) {
        return skip(error.what());
    }
    if (what.measurement.unit == "us") return {to_us(result.time), {}};
    return {result.bus_bandwidth / kGB, {}};
}

std::vector<MoeCommCase> parse_moe_comm(const CsvRow& row) {
    MoeCommCase parsed;
    parsed.system = row.text("system");
    parsed.machine = row.text("machine");
    parsed.routing = row.text("routing");
    parsed.phase = row.text("phase");
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.tokens_per_gpu = row.integer("tokens_per_gpu", 1, kMostTokens);
    parsed.hidden = static_cast<int>(row.integer("hidden", 1, kMostWidth));
    parsed.experts = static_cast<int>(row.integer("experts", 1, kMostExperts));
    parsed.top_k = static_cast<int>(row.integer("top_k", 1, kMostExperts));
    for (const auto* column : {"dispatch_bytes_per_element", "combine_bytes_per_element"})
        if (row.positive(column) > kMostElement) row.reject(column, "at most 8");
    if (std::int64_t{parsed.gpus} * parsed.tokens_per_gpu > kMostRows / parsed.top_k)
        row.reject("tokens_per_gpu", fmt::format("at most {} rows over all GPUs", kMostRows));
    parsed.dispatch_element = row.positive("dispatch_bytes_per_element");
    parsed.combine_element = row.positive("combine_bytes_per_element");
    parsed.measurement = {
        parsed.system,
        shape_of(row,
                 {"system", "machine", "gpus", "tokens_per_gpu", "hidden", "experts", "top_k",
                  "routing", "dispatch_bytes_per_element", "combine_bytes_per_element", "phase"}),
        value_in(row, "us"), "us"};
    return {parsed};
}

}  // namespace moehub
