/// Bytes of one GPU. Of each weight:
///
///     none  2 + g + 12    zero1  2 + g + 12/d    zero2  2 + (g + 12)/d    fsdp  (2 + g + 12)/d
///
/// in bf16, with a gradient of g and 12 of the optimizer (master copy, two moments) that d ranks
/// divide. Activations: what each matrix and kernel keeps of its inputs until the backward pass,
/// for every micro-batch that is underway; what is computed again is not kept.
#include "model/attention_weights.hpp"
#include "plan/step_model.hpp"

#include <algorithm>
#include <utility>

namespace moehub {
namespace {

constexpr double kOwn = 4e9;      ///< bytes of CUDA's context, NCCL's buffers, cuBLAS's workspace
constexpr double kMargin = 0.05;  ///< fragmentation, a share of all else
constexpr double kLogits = 10;    ///< bytes a logit: bf16, fp32, and its gradient

/// Elements of a token that attention keeps, on its GPU: those of tensor-parallel matrices (of all
/// tokens that share them) and those of its own tokens.
double attention_kept(const TrainingRun& run, const ParallelLayout& l) {
    const Model& m = run.model;
    const Attention& a = m.attention;
    const Recompute& r = l.recompute;
    const double own = (r.norms ? 1.0 : 2.0) * m.hidden;  // the norm's input, and its output
    double wide = 0;                                      // elements on all GPUs of tp
    if (a.kind == Attention::Form::gqa) {
        wide = (a.heads + 2.0 * a.kv_heads) * a.head_dim;
        wide += static_cast<double>(a.heads) * a.head_dim;  // output, read by the last matrix
    } else {
        const double keys = a.qk_nope_head_dim + a.qk_rope_head_dim;
        const double latents = a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim;
        wide = latents * (r.norms ? 1 : 2) * l.tp;  // every GPU has all latents
        if (!r.latents) wide += a.heads * (2 * keys + a.v_head_dim);
        wide += static_cast<double>(a.heads) * a.v_head_dim;
    }
    return own + wide;
}

double ffn_kept(const TrainingRun& run, const ParallelLayout& l, double ffn) {
    const Model& m = run.model;
    const double up = (m.gated ? 2 : 1) * ffn;
    // In FP8 what an activation is computed from again is kept in FP8.
    const bool narrow = run.precision != NumberFormat::bf16 && l.recompute.activations;
    return l.recompute.experts ? 0 : (narrow ? 0.5 : 1) * up + (l.recompute.activations ? 0 : ffn);
}

/// Adds weights, their gradients and the optimizer's states.
void add_weights(const TrainingRun& run, const ParallelLayout& layout, const UnitCounts& counts,
                 StepMemory& memory) {
    const UnitWeights weights = weights_of(run.model, layout, counts);
    const auto each = [&](bool divided) {
        return divided ? weights.divided(run, layout) : weights.sum();
    };
    const Sharding sharding = layout.sharding;
    memory.weights = kBf16 * each(sharding == Sharding::fsdp);
    memory.gradients = run.trainer.kept_gradient_bytes *
                       each(sharding == Sharding::zero2 || sharding == Sharding::fsdp);
    memory.optimizer = run.trainer.state_bytes * each(sharding != Sharding::none);
    if (layout.overlap == PassOverlap::dualpipe && sharding != Sharding::none)
        memory.optimizer /= 2;  // both copies' ranks divide them
    if (layout.offload.optimizer) memory.host = std::exchange(memory.optimizer, 0.0);
}

/// Adds what dispatch, gathered weights, pipeline messages and one layer computed again need, and
/// logits where the stage has them.
void add_buffers(const TrainingRun& run, const ParallelLayout& layout, const UnitCounts& counts,
                 StepMemory& memory) {
    const Model& model = run.model;
    const Unit layer = model.experts > 0 ? Unit::moe : Unit::dense;
    const double gathered = static_cast<double>(layout.micro_batch * sequence_of(run)) / layout.cp;
    const double rows = gathered / layout.tp * model.top_k * layout.etp;
    if (model.experts > 0 && layout.ep * layout.etp > 1)
        memory.buffers = 2 * kBf16 * rows * model.hidden;
    memory.buffers += 2 * kBf16 * gathered * model.hidden;
    if (layout.sharding == Sharding::fsdp)
        memory.buffers +=
            2 * (kBf16 + run.trainer.gradient_bytes) * weights_of(model, layout, layer).sum();
    if (layout.recompute.all) {  // one layer's activations while it is computed again
        ParallelLayout plain = layout;
        plain.recompute = {};
        memory.buffers += activations_of(run, plain, layer);
    }
    memory.workspace = kOwn;
    if (count_of(counts, Unit::head) > 0)
        memory.workspace += kLogits * gathered * model.vocab / layout.tp;
}

}  // namespace

UnitWeights weights_of(const Model& model, const ParallelLayout& layout, Unit unit) {
    const double hidden = model.hidden;
    const double matrices = model.gated ? 3 : 2;
    const double tp = layout.tp;
    const double attention = attention_weights(model, layout.tp) + 2 * hidden;
    UnitWeights weights;
    switch (unit) {
        case Unit::embedding:
            weights.shared = hidden * model.vocab / tp;
            break;
        case Unit::dense:
            weights.shared = attention + matrices * hidden * model.dense_ffn / tp;
            break;
        case Unit::moe:
            weights.shared = attention + hidden * model.experts +
                             matrices * hidden * model.shared_experts * model.shared_ffn / tp;
            weights.experts = matrices * hidden * model.expert_ffn / layout.etp *
                              (static_cast<double>(model.experts) / layout.ep);
            break;
        case Unit::mtp:
            weights = weights_of(model, layout, model.experts > 0 ? Unit::moe : Unit::dense);
            weights.shared += 2 * hidden * hidden;
            break;
        case Unit::head:
            weights.shared =
                model.tied_embeddings && layout.pp == 1 ? 0 : hidden * model.vocab / tp;
            break;
    }
    return weights;
}

UnitWeights weights_of(const Model& model, const ParallelLayout& layout, const UnitCounts& counts) {
    UnitWeights sum;
    for (std::size_t i = 0; i < kUnits; ++i) {
        if (counts[i] == 0) continue;
        const UnitWeights one = weights_of(model, layout, static_cast<Unit>(i));
        sum.shared += counts[i] * one.shared;
        sum.experts += counts[i] * one.experts;
    }
    return sum;
}

double UnitWeights::divided(const TrainingRun& run, const ParallelLayout& layout) const {
    const auto gpus = static_cast<double>(run.gpus());
    return shared / (gpus / (1.0 * layout.tp * layout.pp)) +
           experts / (gpus / (1.0 * layout.ep * layout.etp * layout.pp));
}

double activations_of(const TrainingRun& run, const ParallelLayout& layout, Unit unit) {
    const Model& m = run.model;
    const double own =
        static_cast<double>(layout.micro_batch * sequence_of(run)) / layout.tp / layout.cp;
    if (unit == Unit::embedding || unit == Unit::head || layout.recompute.all)
        return own * kBf16 * m.hidden;
    double kept = attention_kept(run, layout) + (layout.recompute.norms ? 1 : 2) * m.hidden;
    if (unit == Unit::dense) return own * kBf16 * (kept + ffn_kept(run, layout, m.dense_ffn));
    kept += ffn_kept(run, layout, static_cast<double>(m.shared_experts) * m.shared_ffn);
    if (!layout.recompute.experts) {
        const double narrow = run.precision == NumberFormat::bf16 ? 1 : 0.5;
        // GPUs that share an expert have each other's rows, and a part of what becomes of them.
        kept += m.top_k * (narrow * m.hidden * layout.etp + ffn_kept(run, layout, m.expert_ffn));
    }
    return own * kBf16 * kept;
}

StepMemory memory_of(const TrainingRun& run, const ParallelLayout& layout,
                     const std::vector<UnitCounts>& pieces, const std::vector<std::int64_t>& held) {
    const std::size_t stages = held.size();
    // `held` counts passes through one piece: each keeps a piece's share of the stage.
    const double in_stage = static_cast<double>(pieces.size()) / static_cast<double>(stages) *
                            (layout.overlap == PassOverlap::dualpipe ? 2 : 1);
    StepMemory most;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        UnitCounts counts{};
        for (const std::size_t i : pieces_of_stage(stage, stages, pieces.size(), layout.overlap))
            for (std::size_t u = 0; u < kUnits; ++u) counts[u] += pieces[i][u];
        StepMemory memory;
        add_weights(run, layout, counts, memory);
        const double kept = sum_over(counts, [&](std::size_t u) {
            return activations_of(run, layout, static_cast<Unit>(u));
        });
        memory.activations = kept * static_cast<double>(held[stage]) / in_stage;
        if (layout.offload.activations) {
            const double here = std::min(memory.activations, 2 * kept);
            memory.host += memory.activations - here;
            memory.activations = here;
        }
        add_buffers(run, layout, counts, memory);
        memory.margin = kMargin * memory.sum();
        if (memory.sum() > most.sum()) most = memory;
    }
    return most;
}

double StepMemory::sum() const {
    return weights + gradients + optimizer + activations + buffers + workspace + margin;
}

double StepParts::sum() const {
    return attention + dense + experts + head + small + recomputed + tp + cp + ep + pp + dp +
           bubble + imbalance + optimizer + offload + host;
}

}  // namespace moehub
