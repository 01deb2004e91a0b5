// NCCL's rows run with its own choice. TensorRT-LLM's all-reduce is its one-shot kernel where that
// is the faster one, and NCCL's elsewhere, as its tables of measured times choose.
#include "study/validate_nccl.hpp"

#include "study/collective_names.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostGpus = 1'000'000;
constexpr std::string_view kOneShot = "all_reduce_one_shot";

Ps fastest(const Machine& machine, const Collective& wanted, bool one_shot) {
    Collective collective = wanted;
    collective.algorithm = Collective::Algorithm::automatic;
    const Ps time = run_collective(machine, collective).time;
    if (!one_shot) return time;
    collective.algorithm = Collective::Algorithm::one_shot;
    return std::min(time, run_collective(machine, collective).time);
}

}  // namespace

std::vector<NcclCase> parse_nccl(const CsvRow& row) {
    NcclCase parsed;
    parsed.machine = row.text("machine");
    parsed.op = row.text("op");
    parsed.dtype = row.text("dtype");
    parsed.gpus = static_cast<int>(row.integer("gpus", 1, kMostGpus));
    parsed.bytes = row.integer("bytes", 1, kMostBytes);
    parsed.measurement.name = parsed.machine + " " + parsed.op;
    parsed.measurement.shape = shape_of(row, {"machine", "gpus", "op", "dtype", "bytes"});
    parsed.measurement.value = value_in(row, "us");
    parsed.measurement.unit = "us";
    return {parsed};
}

Prediction predict_nccl(const NcclCase& what, const PredictContext& context) {
    const bool one_shot = what.op == kOneShot;
    const auto op = op_named(one_shot ? "all_reduce" : what.op);
    if (!op)
        return skip(
            fmt::format("unknown operation; known: {}, {}", fmt::join(op_names(), ", "), kOneShot));
    const auto element = element_named(what.dtype);
    if (!element)
        return skip(fmt::format("unknown dtype; known: {}", fmt::join(element_names(), ", ")));
    Machine machine;
    try {
        machine = context.machine(what.machine, what.gpus);
    } catch (const InputError& error) {
        return skip(error.what(), what.machine);
    }
    try {
        Collective collective;
        collective.op = *op;
        collective.element = *element;
        collective.gpus = what.gpus;
        collective.bytes = what.bytes;
        return {to_us(fastest(machine, collective, one_shot)), {}};
    } catch (const InputError& error) {
        return skip(error.what());
    }
}

}  // namespace moehub
