/// Kernels of a transformer layer in training, as Megatron-Core with Transformer Engine runs them.
/// A matrix is one product forward, two backward; in FP8 its input and the gradient of its output
/// are cast before it. Norms, residual adds and what tokens pass beside tensor-parallel matrices
/// act on a GPU's own tokens (sequence parallelism).
#include "plan/layer_work.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Operators of a router: scores, groups, choice, map of tokens to experts, losses that balance.
constexpr double kRouter = 20;

double bytes_of(std::int64_t rows, std::int64_t width) {
    return kBf16 * static_cast<double>(rows) * static_cast<double>(width);
}

/// Adds kernels to a part.
class Writer {
  public:
    Writer(const WorkContext& context, LayerWork& work) : k_(context.kernels), work_(work) {}

    void matrix(StepPart part, const Product& w, ComputeWork* again = nullptr) {
        const double forward = k_.product(w);
        const double gradient = k_.gradient(w);
        const double in = k_.cast(w.rows, w.k);
        const double casts = k_.fp8() ? 1 : 0;
        work_.forward.add(part, forward);
        work_.forward.add(StepPart::small, in, casts);
        work_.backward.add(part, k_.product({w.rows, w.n, w.k}) + gradient, 2);
        work_.backward.add(StepPart::small, k_.cast(w.rows, w.n), casts);
        work_.gradients += gradient;
        if (again != nullptr) again->add(part, forward);
    }

    void stream(double read, double written, double back_read, double back_written,
                ComputeWork* again = nullptr) {
        const double forward = k_.stream(read, written);
        work_.forward.add(StepPart::small, forward);
        work_.backward.add(StepPart::small, k_.stream(back_read, back_written));
        if (again != nullptr) again->add(StepPart::small, forward);
    }

    void norm(std::int64_t rows, std::int64_t width) {
        const double all = bytes_of(rows, width);
        stream(all, all, 2 * all, all, &work_.norms);
    }

    void residual(std::int64_t rows, std::int64_t width) {
        const double all = bytes_of(rows, width);
        stream(2 * all, all, 2 * all, all);
    }

    /// Adds passes that no kernel fuses, each way.
    void passes(double count, std::int64_t rows, std::int64_t width) {
        if (count <= 0) return;
        const double all = count * bytes_of(rows, width);
        const double time = k_.stream(all, all);
        work_.forward.add(StepPart::small, time, count);
        work_.backward.add(StepPart::small, time, count);
    }

    void activation(std::int64_t rows, std::int64_t ffn, bool gated) {
        const double out = bytes_of(rows, ffn);
        const double in = gated ? 2 * out : out;
        stream(in, out, in + out, in, &work_.activations);
    }

  private:
    const TrainingKernels& k_;
    LayerWork& work_;
};

/// Part of a count that tensor parallelism leaves a GPU, at least one.
std::int64_t share(int count, int tp) {
    return std::max(1, count / tp);
}

void attend(const WorkContext& context, const TokenShare& tokens, LayerWork& work) {
    const Attention& a = context.run.model.attention;
    const bool mla = a.kind == Attention::Form::mla;
    AttentionShape shape;
    shape.batch = tokens.sequences;
    shape.heads = share(a.heads, tokens.tp);
    shape.kv_heads = mla ? shape.heads : share(a.kv_heads, tokens.tp);
    shape.queries = shape.keys = tokens.length;
    shape.qk_dim = mla ? a.qk_nope_head_dim + a.qk_rope_head_dim : a.head_dim;
    shape.v_dim = mla ? a.v_head_dim : a.head_dim;
    const auto time = [&](auto one) {
        const int layers = context.run.model.layers;
        const int windowed = a.window > 0 ? a.window_layers : 0;
        double mean = one(shape) * (layers - windowed);
        AttentionShape narrow = shape;
        narrow.window = a.window;
        if (windowed > 0) mean += one(narrow) * windowed;
        return mean / layers / tokens.cp;  // context parallelism cuts a sequence in equal work
    };
    const TrainingKernels& k = context.kernels;
    const double forward = time([&](const AttentionShape& s) { return k.attention_forward(s); });
    work.forward.add(StepPart::attention, forward);
    work.core.add(StepPart::attention, forward);
    work.backward.add(StepPart::attention,
                      time([&](const AttentionShape& s) { return k.attention_backward(s); }));
}

void project_gqa(const WorkContext& context, const TokenShare& tokens, Writer& writer) {
    const Model& model = context.run.model;
    const Attention& a = model.attention;
    const std::int64_t query = share(a.heads, tokens.tp) * a.head_dim;
    const std::int64_t key = share(a.kv_heads, tokens.tp) * a.head_dim;
    const std::int64_t rows = tokens.gathered();
    writer.matrix(StepPart::attention, {rows, model.hidden, query + 2 * key});
    const double turned = bytes_of(rows, query + key);
    const double all = bytes_of(rows, query + 2 * key);
    writer.stream(all, all, all, all);  // split; gradients side by side again
    if (a.qk_norm) writer.stream(turned, turned, 2 * turned, turned);
    writer.stream(turned, turned, turned, turned);  // rope
}

void project_mla(const WorkContext& context, const TokenShare& tokens, Writer& writer,
                 LayerWork& work) {
    const Model& model = context.run.model;
    const Attention& a = model.attention;
    const std::int64_t rows = tokens.gathered();
    const std::int64_t heads = share(a.heads, tokens.tp);
    const std::int64_t query = heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
    const std::int64_t expanded = heads * (a.qk_nope_head_dim + a.v_head_dim);
    const std::int64_t latent = a.kv_lora_rank + a.qk_rope_head_dim;
    if (a.q_lora_rank > 0) {
        writer.matrix(StepPart::attention, {rows, model.hidden, a.q_lora_rank});
        writer.norm(rows, a.q_lora_rank);
        writer.matrix(StepPart::attention, {rows, a.q_lora_rank, query}, &work.latents);
    } else {
        writer.matrix(StepPart::attention, {rows, model.hidden, query}, &work.latents);
    }
    writer.matrix(StepPart::attention, {rows, model.hidden, latent});
    writer.norm(rows, a.kv_lora_rank);
    writer.matrix(StepPart::attention, {rows, a.kv_lora_rank, expanded}, &work.latents);
    const double turned = bytes_of(rows, query);
    const double keys = bytes_of(rows, expanded + heads * a.qk_rope_head_dim);
    writer.stream(turned, turned, turned, turned, &work.latents);
    writer.stream(keys, keys, keys, keys, &work.latents);
}

}  // namespace

ComputeWork& ComputeWork::operator+=(const ComputeWork& other) {
    for (std::size_t i = 0; i < kStepParts; ++i) seconds[i] += other.seconds[i];
    operators += other.operators;
    return *this;
}

LayerWork& LayerWork::operator+=(const LayerWork& other) {
    forward += other.forward;
    backward += other.backward;
    gradients += other.gradients;
    norms += other.norms;
    activations += other.activations;
    core += other.core;
    latents += other.latents;
    return *this;
}

LayerWork attention_work(const WorkContext& context, const TokenShare& tokens) {
    const Model& model = context.run.model;
    const Attention& a = model.attention;
    const bool mla = a.kind == Attention::Form::mla;
    LayerWork work;
    Writer writer(context, work);
    writer.norm(tokens.own(), model.hidden);
    if (mla)
        project_mla(context, tokens, writer, work);
    else
        project_gqa(context, tokens, writer);
    attend(context, tokens, work);
    const std::int64_t out = share(a.heads, tokens.tp) * (mla ? a.v_head_dim : a.head_dim);
    writer.matrix(StepPart::attention, {tokens.gathered(), out, model.hidden});
    writer.residual(tokens.own(), model.hidden);
    writer.norm(tokens.own(), model.hidden);
    writer.residual(tokens.own(), model.hidden);
    writer.passes(context.run.trainer.passes, tokens.own(), model.hidden);
    return work;
}

LayerWork ffn_work(const WorkContext& context, const TokenShare& tokens, std::int64_t ffn) {
    const Model& model = context.run.model;
    const std::int64_t width = std::max<std::int64_t>(1, ffn / tokens.tp);
    const std::int64_t rows = tokens.gathered();
    LayerWork work;
    Writer writer(context, work);
    writer.matrix(StepPart::dense, {rows, model.hidden, (model.gated ? 2 : 1) * width});
    writer.activation(rows, width, model.gated);
    writer.matrix(StepPart::dense, {rows, width, model.hidden});
    return work;
}

LayerWork experts_work(const WorkContext& context, const TokenShare& tokens,
                       const ExpertShare& share_of) {
    const Model& model = context.run.model;
    const TrainingKernels& k = context.kernels;
    const std::int64_t own = tokens.own();
    const std::int64_t width = std::max(1, model.expert_ffn / share_of.etp);
    const double local = static_cast<double>(model.experts) / share_of.ep;
    const std::int64_t rows = own * model.top_k * share_of.etp;  // rows of all local experts
    const auto each =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(rows) / local));
    LayerWork work;
    Writer writer(context, work);
    // The router multiplies in fp32 and picks; scores are few, operators many.
    work.forward.add(StepPart::small, k.product({own, model.hidden, model.experts}, true), kRouter);
    work.backward.add(StepPart::small,
                      k.product({own, model.experts, model.hidden}, true) +
                          k.product({model.experts, own, model.hidden}, true),
                      kRouter);
    const double scores = kFp32 * static_cast<double>(own) * model.experts;
    writer.stream(3 * scores, 2 * scores, 3 * scores, 2 * scores);
    const Product up{each, model.hidden, (model.gated ? 2 : 1) * width};
    const Product down{each, width, model.hidden};
    for (const Product& one : {up, down}) {
        const double gradient = k.grouped(one, local, true);
        work.forward.add(StepPart::experts, k.grouped(one, local, false));
        work.backward.add(StepPart::experts,
                          k.grouped({one.rows, one.n, one.k}, local, false) + gradient, 2);
        work.forward.add(StepPart::small, k.cast(rows, one.k), k.fp8() ? 1 : 0);
        work.backward.add(StepPart::small, k.cast(rows, one.n), k.fp8() ? 1 : 0);
        work.gradients += gradient;
    }
    writer.activation(rows, width, model.gated);
    if (share_of.ep * share_of.etp == 1) {  // else they are the exchange's: to experts, and back
        const double all = bytes_of(rows, model.hidden);
        const double tokens_in = bytes_of(own, model.hidden);
        writer.stream(all, all, all, tokens_in);
        writer.stream(all, tokens_in, all, all);
    }
    writer.passes(context.run.trainer.row_passes, rows, model.hidden);
    return work;
}

LayerWork embedding_work(const WorkContext& context, const TokenShare& tokens) {
    const Model& model = context.run.model;
    const double rows = bytes_of(tokens.gathered(), model.hidden);
    LayerWork work;
    work.forward.add(StepPart::head, context.kernels.stream(rows, rows), 3);
    work.backward.add(StepPart::head, context.kernels.stream(rows, kFp32 / kBf16 * rows), 3);
    return work;
}

LayerWork head_work(const WorkContext& context, const TokenShare& tokens) {
    const Model& model = context.run.model;
    const TrainingKernels& k = context.kernels;
    const std::int64_t rows = tokens.gathered();
    const std::int64_t words = std::max(1, model.vocab / tokens.tp);
    const double logits = kFp32 * static_cast<double>(rows) * static_cast<double>(words);
    const double all = bytes_of(tokens.own(), model.hidden);
    LayerWork work;
    work.forward.add(StepPart::head,
                     k.stream(all, all) + k.product({rows, model.hidden, words}, true), 2);
    // The loss: logits to fp32, their largest, exponentials, sums; backward one pass.
    work.forward.add(StepPart::head, k.stream(2.5 * logits, 2 * logits), 8);
    work.backward.add(StepPart::head, k.stream(logits, 0.5 * logits), 3);
    const double gradient = k.gradient({rows, model.hidden, words}, true);
    work.backward.add(StepPart::head, k.product({rows, words, model.hidden}, true) + gradient, 3);
    work.gradients = gradient;
    return work;
}

LayerWork joining_work(const WorkContext& context, const TokenShare& tokens) {
    const Model& model = context.run.model;
    LayerWork work;
    Writer writer(context, work);
    writer.norm(tokens.own(), model.hidden);
    writer.norm(tokens.own(), model.hidden);
    writer.matrix(StepPart::dense, {tokens.own(), 2 * std::int64_t{model.hidden}, model.hidden});
    return work;
}

}  // namespace moehub
