/// Dense FFNs, the router, shared and routed experts of one rank, and the model's two ends.
#include "sim/kernels/kernels.hpp"
#include "study/serving/operators.hpp"

#include <algorithm>

namespace moehub {

// Dense FFNs, the router and shared experts of one rank, and the model's two ends.

namespace {

constexpr double kNorms = 2;  ///< small kernels of a norm of queries and keys

/// Both products of an FFN that `tp` GPUs share.
void write_ffn(OperatorWriter& writer, const std::string& name, OperatorKind kind, double count,
               const OperatorWriter::Matrix& whole) {
    const std::int64_t ffn = whole.n / writer.what().layout.attention_tp;
    const std::int64_t up = writer.what().model.gated ? 2 * ffn : ffn;
    writer.linear(name + " up", kind, count, {whole.format, whole.m, up, whole.k});
    writer.linear(name + " down", kind, count, {whole.format, whole.m, whole.k, ffn});
}

}  // namespace

void write_dense_ffn(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const int layers = model.layers - model.moe_layers();
    if (layers == 0) return;
    write_ffn(writer, "FFN", OperatorKind::linear, layers,
              {writer.what().formats.dense, load.tokens, model.dense_ffn, model.hidden});
    writer.all_reduce("all-reduce after FFN", OperatorKind::all_reduce, layers,
                      kBf16Bytes * model.hidden * static_cast<double>(load.tokens));
}

void write_router_and_shared(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const int layers = model.moe_layers();
    if (layers == 0) return;
    writer.linear("router", OperatorKind::router, layers,
                  {NumberFormat::bf16, load.tokens, model.experts, model.hidden});
    if (model.shared_experts == 0) return;
    write_ffn(writer, "shared experts", OperatorKind::shared_experts, layers,
              {writer.what().formats.dense, load.tokens, model.shared_experts * model.shared_ffn,
               model.hidden});
}

void write_ends(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const EngineSpec& engine = writer.what().engine;
    const int tp = writer.what().layout.attention_tp;
    const double row = kBf16Bytes * model.hidden;
    const auto tokens = static_cast<double>(load.tokens);
    const bool latent = model.attention.kind == Attention::Form::mla;
    const double kernels = (engine.small_kernels + (latent ? writer.overheads().mla_kernels : 0) +
                            (model.attention.qk_norm ? kNorms : 0)) *
                               model.layers +
                           writer.overheads().moe_kernels * model.moe_layers();
    writer.small("norms and activations", OperatorKind::small, kernels, 2 * row * tokens);
    const auto outputs = static_cast<double>(load.outputs);
    const std::int64_t vocab = (model.vocab + tp - 1) / tp;
    const double logits = kBf16Bytes * outputs * model.vocab;
    writer.linear("head", OperatorKind::head, 1,
                  {writer.what().formats.head, load.outputs, vocab, model.hidden});
    if (tp > 1)
        writer.add({"logits gathered", OperatorKind::head, 1,
                    writer.costs().collective(Collective::Op::all_gather, tp, logits)});
    writer.small("sampling", OperatorKind::sampling, 1, 2 * logits);
    writer.add({"host", OperatorKind::host, 1,
                to_seconds(writer.overheads().host) +
                    to_seconds(writer.overheads().host_request) * outputs});
}

// Routed experts of all layers as the engine runs them. Behind tensor-parallel attention every
// GPU has all tokens, and one all-reduce adds up what experts made of them. Behind data-parallel
// attention tokens travel: all of them to all GPUs, or each to those that hold an expert of it.

namespace {

/// Other GPUs that a token's experts lie on, expected of even routing.
double remote_gpus(const ServingCase& what) {
    double absent = 1;
    for (int i = 0; i < what.model.top_k; ++i) absent *= 1 - 1.0 / what.layout.moe_ep;
    return (1 - absent) * (what.layout.moe_ep - 1) * what.layout.moe_tp;
}

void write_move(OperatorWriter& writer, const RankLoad& load, bool dispatch) {
    const ServingCase& what = writer.what();
    const int gpus = what.layout.gpus();
    const double element = dispatch ? bytes_of(what.formats.experts) : kBf16Bytes;
    const double row = element * what.model.hidden;
    const auto tokens = static_cast<double>(load.group_tokens);
    double seconds = 0;
    if (what.engine.exchange == TokenExchange::gather) {
        const auto op = dispatch ? Collective::Op::all_gather : Collective::Op::reduce_scatter;
        seconds = writer.costs().collective(op, gpus, row * tokens);
    } else {
        // nccl-tests counts what a GPU would send to all, itself included.
        // Each GPU of a group sends a share of the group's tokens.
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
                          kBf16Bytes * what.model.hidden * static_cast<double>(load.tokens));
}

}  // namespace moehub
