#include "layers/tp/dataflow.hpp"

#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/transformer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

Operator gemm(const TpInput& in, OperatorKind kind, const char* name, std::int64_t k,
              std::int64_t n) {
    const Gpu& gpu = in.machine.gpu;
    const GemmPlan plan = plan_gemm(gpu, {in.tokens, k, n, true});
    const double active = static_cast<double>(std::min(plan.slots, plan.tiles()));
    return {kind, name, tiles_seconds(gpu, plan),
            tile_seconds(gpu, plan.rates, plan.runs.front().work, active)};
}

/// Whether a block of the operator needs only its own rows of the one before.
bool by_rows(OperatorKind kind) {
    return kind != OperatorKind::mixing;
}

const Operator* find(const std::vector<Operator>& operators, const Fused& fused,
                     OperatorKind kind) {
    for (std::size_t i = fused.first; i < fused.end; ++i)
        if (operators[i].kind == kind) return &operators[i];
    return nullptr;
}

void divide_sms(const std::vector<Operator>& operators, const Gpu& gpu, Fused& fused) {
    const Operator* first = find(operators, fused, OperatorKind::multiply_partial);
    const Operator* second = find(operators, fused, OperatorKind::multiply);
    fused.first_sms = first != nullptr ? gpu.sms : 0;
    fused.second_sms = second != nullptr ? gpu.sms : 0;
    if (first == nullptr || second == nullptr || gpu.sms < 2) return;
    if (second->seconds < 2 * second->tile) return;
    const double all = first->seconds + second->seconds;
    const double share = first->seconds / (all - 2 * second->tile);
    fused.first_sms = std::clamp(static_cast<int>(std::lround(share * gpu.sms)), 1, gpu.sms - 1);
    fused.second_sms = gpu.sms - fused.first_sms;
}

/// Behind which operator a schedule ends. Unfused, what moves rows stays with its GEMM: its
/// instructions are the GEMM's own. A second GEMM ends the chain: what follows needs all columns of
/// a row, which lie on all GPUs' blocks.
bool ends_behind(const std::vector<Operator>& operators, std::size_t i, bool fuse) {
    if (i + 1 == operators.size()) return true;
    const OperatorKind now = operators[i].kind;
    const OperatorKind next = operators[i + 1].kind;
    if (!by_rows(now) || !by_rows(next) || now == OperatorKind::multiply ||
        now == OperatorKind::rowwise)
        return true;
    if (fuse) return false;
    return now == OperatorKind::reduce || now == OperatorKind::norm;
}

}  // namespace

std::vector<Operator> operators_of(const TpInput& in) {
    const TpShape shape = tp_shape(in.model, in.part);
    const std::uint32_t gpus = static_cast<std::uint32_t>(in.machine.gpus());
    std::vector<Operator> made;
    if (shape.before > 0) {
        made.push_back(gemm(in, OperatorKind::multiply_partial, "GEMM (partial sums)",
                            share_of(shape.before, 0, gpus), shape.hidden));
        made.push_back({OperatorKind::reduce, "reduce-scatter"});
    }
    const Traffic norm =
        norm_traffic(in.machine.gpu, (in.tokens - 1) / gpus + 1, shape.hidden, Norm::rms);
    made.push_back({OperatorKind::norm, "norm", kernel_seconds(in.machine.gpu, norm)});
    if (shape.after > 0) {
        const std::int64_t columns =
            shape.after_whole ? shape.after : share_of(shape.after, 0, gpus);
        made.push_back({OperatorKind::gather, "all-gather"});
        made.push_back(gemm(in, OperatorKind::multiply, "GEMM", shape.hidden, columns));
    }
    return made;
}

std::vector<Operator> layer_operators(const TpInput& in) {
    std::vector<Operator> made;
    const auto add = [&](SubLayer part, const char* first, const char* second) {
        for (Operator one : operators_of({in.machine, in.model, in.tokens, part})) {
            if (one.kind == OperatorKind::multiply_partial) one.name = first;
            if (one.kind == OperatorKind::multiply) one.name = second;
            made.push_back(std::move(one));
        }
    };
    add(SubLayer::l2, "FFN down", "attention input");
    made.push_back({OperatorKind::mixing, "attention"});
    add(SubLayer::l1, "attention output", "FFN up");
    made.push_back({OperatorKind::rowwise, "activation"});
    return made;
}

std::vector<Fused> optimise(const std::vector<Operator>& operators, const Gpu& gpu, bool fuse) {
    std::vector<Fused> made;
    for (std::size_t i = 0, first = 0; i < operators.size(); ++i) {
        if (!ends_behind(operators, i, fuse)) continue;
        Fused fused{first, i + 1, 0, 0, false};
        divide_sms(operators, gpu, fused);
        fused.by_blocks = fused.end - fused.first > 1;
        made.push_back(fused);
        first = i + 1;
    }
    return made;
}

std::string to_text(const std::vector<Operator>& operators, const std::vector<Fused>& fused) {
    std::string text;
    for (const Fused& one : fused) {
        std::string names;
        for (std::size_t i = one.first; i < one.end; ++i)
            names += (names.empty() ? "" : " + ") + operators[i].name;
        std::string how = one.by_blocks ? "fused by thread blocks" : "a kernel of its own";
        const bool pair = one.first_sms > 0 && one.second_sms > 0;
        if (pair && one.first_sms == one.second_sms)
            how += ", both with all SMs: the second has too few tiles to divide them";
        else if (pair)
            how += fmt::format(", {} SMs reduce, {} SMs load", one.first_sms, one.second_sms);
        if (operators[one.first].kind == OperatorKind::mixing) how += ": a row needs others";
        text += fmt::format("  {}: {}\n", names, how);
    }
    return text;
}

}  // namespace moehub::layers
