/// Dense FFNs, the router and shared experts of one rank, and the model's two ends.
#include "study/serving/operators.hpp"

namespace moehub {
namespace {

constexpr double kHalf = 2;   ///< bytes of a bf16
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
                      kHalf * model.hidden * static_cast<double>(load.tokens));
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
    const double row = kHalf * model.hidden;
    const auto tokens = static_cast<double>(load.tokens);
    const bool latent = model.attention.kind == Attention::Kind::mla;
    const double kernels = (engine.small_kernels + (latent ? writer.overheads().mla_kernels : 0) +
                            (model.attention.qk_norm ? kNorms : 0)) *
                               model.layers +
                           writer.overheads().moe_kernels * model.moe_layers();
    writer.small("norms and activations", OperatorKind::small, kernels, 2 * row * tokens);
    const auto outputs = static_cast<double>(load.outputs);
    const std::int64_t vocab = (model.vocab + tp - 1) / tp;
    const double logits = kHalf * outputs * model.vocab;
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

}  // namespace moehub
