#include "study/serving/operators.hpp"

#include "base/input_error.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

std::int64_t share(std::int64_t of, int ranks) {
    return (of + ranks - 1) / ranks;
}

void require(bool holds, std::string_view what, double found, std::string_view allowed) {
    if (!holds) throw input_error("{}: found {}, allowed: {}", what, found, allowed);
}

}  // namespace

std::string_view name_of(OperatorKind kind) {
    constexpr std::array<std::string_view, 12> kNames = {
        "attention", "linear",     "router",        "shared experts", "experts",  "dispatch",
        "combine",   "all-reduce", "small kernels", "head",           "sampling", "host"};
    return kNames[static_cast<std::size_t>(kind)];
}

RankLoad rank_load(const ServingLayout& layout, const StepLoad& load) {
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    require(load.requests >= 0, "requests", d(load.requests), "0 or more");
    require(load.prompts >= 0, "prompts", d(load.prompts), "0 or more");
    require(load.requests + load.prompts > 0, "requests and prompts", 0, "1 or more of either");
    require(load.requests == 0 || (load.context >= 1 && load.context <= d(kMostOfACall)), "context",
            load.context, fmt::format("1 to {} tokens", kMostOfACall));
    require(load.tokens_per_request >= 1 && load.tokens_per_request <= 64, "tokens_per_request",
            load.tokens_per_request, "1 to 64");
    require(load.prompts == 0 || load.prompt_tokens >= 1, "prompt_tokens", d(load.prompt_tokens),
            "1 or more");
    require(load.prompt_context >= 0, "prompt_context", d(load.prompt_context), "0 or more");
    RankLoad rank;
    rank.requests = share(load.requests, layout.attention_dp);
    rank.context = static_cast<std::int64_t>(std::llround(load.context));
    rank.tokens_per_request = load.tokens_per_request;
    rank.prompts = share(load.prompts, layout.attention_dp);
    rank.prompt_tokens = load.prompt_tokens;
    rank.prompt_context = load.prompt_context;
    rank.tokens = rank.requests * rank.tokens_per_request + rank.prompts * rank.prompt_tokens;
    rank.outputs = rank.requests * rank.tokens_per_request + rank.prompts;
    rank.group_tokens = load.requests * load.tokens_per_request + load.prompts * load.prompt_tokens;
    return rank;
}

double OperatorWriter::kernel_seconds(const std::string& libraries, const KernelCall& call) {
    return exposed(costs_.kernel(libraries, call));
}

double OperatorWriter::exposed(const KernelCost& cost) const {
    return cost.seconds - overheads().start_hidden * cost.start;
}

void OperatorWriter::linear(std::string name, OperatorKind kind, double count,
                            const Matrix& matrix) {
    const auto seconds = [&](std::int64_t rows) {
        return kernel_seconds(what_.engine.linear,
                              GemmCall{matrix.format, rows, matrix.n, matrix.k});
    };
    // A row too many for a kernel's tiles may cost more than padding: engines capture graphs of
    // round sizes.
    double least = seconds(matrix.m);
    for (const std::int64_t step : {64, 128})
        least = std::min(least, seconds((matrix.m + step - 1) / step * step));
    add({std::move(name), kind, count, least});
}

void OperatorWriter::kernel(std::string name, OperatorKind kind, double count,
                            const std::string& libraries, const KernelCall& call) {
    add({std::move(name), kind, count, kernel_seconds(libraries, call)});
}

void OperatorWriter::small(std::string name, OperatorKind kind, double count, double bytes) {
    const Gpu& gpu = what_.machine.gpu;
    add({std::move(name), kind, count,
         to_seconds(overheads().small_kernel) +
             bytes / (gpu.kernels.hbm_copy * gpu.hbm_bandwidth)});
}

void OperatorWriter::all_reduce(std::string name, OperatorKind kind, double count, double bytes) {
    const int gpus = what_.layout.attention_tp;
    if (gpus == 1) return;
    add({std::move(name), kind, count,
         costs_.collective(Collective::Op::all_reduce, gpus, bytes, what_.engine.one_shot)});
}

}  // namespace moehub
