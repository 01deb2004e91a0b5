/// Routed experts of all layers as the engine runs them. Behind tensor-parallel attention every
/// GPU has all tokens, and one all-reduce adds up what experts made of them. Behind data-parallel
/// attention tokens travel: all of them to all GPUs, or each to those that hold an expert of it.
#include "sim/kernels/kernels.hpp"
#include "study/serving/operators.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr double kHalf = 2;  ///< bytes of a bf16

/// Other GPUs that a token's experts lie on, expected of even routing.
double remote_gpus(const ServingCase& what) {
    double absent = 1;
    for (int i = 0; i < what.model.top_k; ++i) absent *= 1 - 1.0 / what.layout.moe_ep;
    return (1 - absent) * (what.layout.moe_ep - 1) * what.layout.moe_tp;
}

void write_move(OperatorWriter& writer, const RankLoad& load, bool dispatch) {
    const ServingCase& what = writer.what();
    const int gpus = what.layout.gpus();
    const double element = dispatch ? bytes_of(what.formats.experts) : kHalf;
    const double row = element * what.model.hidden;
    const auto tokens = static_cast<double>(load.group_tokens);
    double seconds = 0;
    if (what.engine.exchange == TokenExchange::gather) {
        const auto op = dispatch ? Collective::Op::all_gather : Collective::Op::reduce_scatter;
        seconds = writer.costs().collective(op, gpus, row * tokens);
    } else {
        // nccl-tests counts what a GPU would send to all, itself included.
        // Of a group's tokens each of its GPUs sends a share.
        const double sent =
            row * static_cast<double>(load.tokens) / what.layout.attention_tp * remote_gpus(what);
        seconds = writer.costs().collective(Collective::Op::all_to_all, gpus,
                                            sent * gpus / std::max(1, gpus - 1));
    }
    writer.add({dispatch ? "dispatch" : "combine",
                dispatch ? OperatorKind::dispatch : OperatorKind::combine,
                static_cast<double>(what.model.moe_layers()), seconds});
}

double routed_seconds(OperatorWriter& writer, const RankLoad& load) {
    const ServingCase& what = writer.what();
    const Model& model = what.model;
    const int ep = what.layout.moe_ep;
    MoeCall call;
    call.format = what.formats.experts;
    call.tokens = load.group_tokens;
    call.hidden = model.hidden;
    call.expert_ffn = model.expert_ffn;
    call.top_k = model.top_k;
    call.experts = (model.experts + ep - 1) / ep * ep;
    call.tp = what.layout.moe_tp;
    call.ep = ep;
    call.skew = what.expert_skew;
    call.gated = model.gated;
    const double unpacked =
        call.format == NumberFormat::w4a16 ? to_seconds(writer.overheads().w4_start) : 0;
    return unpacked + writer.exposed(writer.costs().random_moe(what.engine.moe, call));
}

}  // namespace

void write_moe(OperatorWriter& writer, const RankLoad& load) {
    const ServingCase& what = writer.what();
    const double layers = what.model.moe_layers();
    if (layers == 0) return;
    const bool travel = what.layout.attention_dp > 1;
    if (travel) write_move(writer, load, true);
    writer.add({"experts", OperatorKind::experts, layers, routed_seconds(writer, load)});
    if (travel)
        write_move(writer, load, false);
    else
        writer.all_reduce("combine", OperatorKind::combine, layers,
                          kHalf * what.model.hidden * static_cast<double>(load.tokens));
}

}  // namespace moehub
