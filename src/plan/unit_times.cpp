/// What one micro-batch takes in each unit of the model:
///
///     pass = compute + what is computed again + communication that nothing hides
///            + what the host is late with
///
/// The host is late by (operators · launch − what the GPU has to do) where that is positive: it
/// issues ahead, and a layer that is long enough hides it.
#include "plan/step_model.hpp"

#include <moehub/placement.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr std::int64_t kDrawnTokens = 65'536;
/// Operators that a host issues for a dispatch and a combine: counts, offsets, copies of them to
/// the host, permutations, the exchanges themselves.
constexpr double kExchangeOperators = 20;

UnitTime from(const LayerWork& work) {
    UnitTime time;
    time.forward.work = work.forward;
    time.backward.work = work.backward;
    time.gradients = work.gradients;
    return time;
}

/// Logits of the model and of its multi-token prediction.
int heads_of(const TrainingRun& run) {
    return 1 + (run.mtp ? run.model.mtp_layers : 0);
}

UnitTime& at(UnitTimes& times, Unit unit) {
    return times[static_cast<std::size_t>(unit)];
}

/// Seconds, and operators, of what a layer computes a second time.
ComputeWork again_of(const LayerWork& work, const Recompute& recompute) {
    ComputeWork again;
    if (recompute.norms) again += work.norms;
    if (recompute.activations) again += work.activations;
    if (recompute.attention) again += work.core;
    if (recompute.latents) again += work.latents;
    return again;
}

void repeat(UnitTime& time, const ComputeWork& again) {
    time.backward.recomputed += again.sum();
    time.backward.work.operators += again.operators;
}

/// What the exchange of rows takes of a pass.
constexpr std::initializer_list<double PassTime::*> kExchange{&PassTime::ep, &PassTime::ep_alone,
                                                              &PassTime::imbalance};

/// Adds parts of the forward pass to backward, where they happen once more.
void add_forward(UnitTime& time, std::initializer_list<double PassTime::*> parts) {
    for (const auto part : parts) time.backward.*part += time.forward.*part;
}

/// The key's value, made where it is not there yet.
template <class Map, class Make>
const auto& once(Map& map, const typename Map::key_type& key, const Make& make) {
    const auto found = map.find(key);
    return found != map.end() ? found->second : map.emplace(key, make()).first->second;
}

}  // namespace

std::string exchange_of(const TrainingRun& run, const ParallelLayout& layout) {
    if (!layout.system.empty()) return layout.system;
    if (layout.etp > 1) return kSharedExperts;
    return run.trainer.costs(run.machine.gpu.generation).dispatcher;
}

const LayerWork& StepModel::attention(const TokenShare& t) {
    return once(attention_, ShareKey{t.sequences, t.tp, t.cp}, [&] {
        return attention_work({run_, kernels_}, t);
    });
}

const LayerWork& StepModel::ffn(const TokenShare& t, std::int64_t width) {
    return once(ffn_, std::tuple{ShareKey{t.sequences, t.tp, t.cp}, width}, [&] {
        return ffn_work({run_, kernels_}, t, width);
    });
}

const LayerWork& StepModel::experts(const TokenShare& t, const ExpertShare& share) {
    return once(experts_, std::tuple{t.own(), share.ep, share.etp}, [&] {
        return experts_work({run_, kernels_}, t, share);
    });
}

const LayerWork& StepModel::end(const TokenShare& t, Unit unit) {
    return once(ends_, std::tuple{ShareKey{t.sequences, t.tp, t.cp}, static_cast<int>(unit)}, [&] {
        const WorkContext context{run_, kernels_};
        return unit == Unit::embedding ? embedding_work(context, t)
               : unit == Unit::head    ? head_work(context, t)
                                       : joining_work(context, t);
    });
}

double StepModel::imbalance(int ranks) {
    if (run_.routing.shares == RoutingSpec::Shares::balanced || ranks == 1) return 0;
    return once(imbalance_, ranks, [&] {
        const Routing routing = make_routing(run_.routing, run_.model, kDrawnTokens);
        std::vector<double> rows(static_cast<std::size_t>(ranks));
        const int each = run_.model.experts / ranks;
        for (const auto expert : routing.chosen) rows[static_cast<std::size_t>(expert / each)] += 1;
        const double mean = static_cast<double>(routing.chosen.size()) / ranks;
        return *std::max_element(rows.begin(), rows.end()) / mean - 1;
    });
}

UnitTimes StepModel::unit_times(const ParallelLayout& layout, bool exact) {
    const TokenShare tokens = tokens_of(layout);
    const Recompute& recompute = layout.recompute;
    UnitTimes times;
    LayerWork dense = attention(tokens);
    dense += ffn(tokens, run_.model.dense_ffn);
    at(times, Unit::dense) = from(dense);
    repeat(at(times, Unit::dense), again_of(dense, recompute));
    if (recompute.experts)
        repeat(at(times, Unit::dense), ffn(tokens, run_.model.dense_ffn).forward);
    if (run_.model.experts > 0) {
        LayerWork moe = attention(tokens);
        LayerWork feed = experts(tokens, {layout.ep, layout.etp});
        if (run_.model.shared_experts > 0)
            feed += ffn(tokens, std::int64_t{run_.model.shared_experts} * run_.model.shared_ffn);
        moe += feed;
        UnitTime& time = at(times, Unit::moe);
        time = from(moe);
        repeat(time, again_of(moe, recompute));
        if (recompute.experts) repeat(time, feed.forward);
        exchange_rows(layout, times, exact);
    }
    at(times, Unit::embedding) = from(end(tokens, Unit::embedding));
    // Multi-token prediction's logits are computed where the others are, as Megatron does.
    LayerWork heads = end(tokens, Unit::head);
    for (int i = 1; i < heads_of(run_); ++i) heads += end(tokens, Unit::head);
    at(times, Unit::head) = from(heads);
    share_tensors(layout, times, exact);
    share_context(layout, times, exact);
    if (recompute.all)
        for (const Unit unit : {Unit::dense, Unit::moe}) {
            UnitTime& time = at(times, unit);
            time.backward.recomputed = time.forward.work.sum();
            time.backward.work.operators += time.forward.work.operators;
            add_forward(time, {&PassTime::tp, &PassTime::cp});
            add_forward(time, kExchange);
        }
    gather_weights(layout, times, exact);
    UnitTime& mtp = at(times, Unit::mtp);
    mtp = at(times, run_.model.experts > 0 ? Unit::moe : Unit::dense);
    const LayerWork& joined = end(tokens, Unit::mtp);
    mtp.forward.work += joined.forward;
    mtp.backward.work += joined.backward;
    mtp.gradients += joined.gradients;
    for (UnitTime& time : times)
        for (PassTime* pass : {&time.forward, &time.backward}) {
            pass->issue = pass->work.operators * kernels_.launch();
            pass->host = std::max(0.0, pass->issue - pass->device());
        }
    return times;
}

void StepModel::exchange_rows(const ParallelLayout& layout, UnitTimes& times, bool exact) {
    UnitTime& time = at(times, Unit::moe);
    time.forward.work.operators += kExchangeOperators;
    time.backward.work.operators += kExchangeOperators;
    if (layout.ep * layout.etp == 1) return;
    const TokenShare tokens = tokens_of(layout);
    const double beyond = imbalance(layout.ep);
    const double share = experts(tokens, {layout.ep, layout.etp}).forward.sum();
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        PassTime& way = pass == Pass::forward ? time.forward : time.backward;
        const MoeCase one{.system = exchange_of(run_, layout),
                          .ep = layout.ep,
                          .etp = layout.etp,
                          .tokens = tokens.own(),
                          .fp8 = kernels_.fp8(),
                          .fp8_rows = kernels_.fp8() && run_.trainer.fp8_rows,
                          .pass = pass};
        const MoeCommunication moe = communication_->moe(one, exact);
        way.ep = moe.exposed;
        way.ep_alone = std::min(moe.alone, moe.exposed);
        // Imbalance of compute alone: rows are simulated as unevenly as they are routed.
        way.imbalance = beyond * share * (pass == Pass::forward ? 1 : 2);
        time.sms = moe.sms;
    }
    if (layout.recompute.experts) add_forward(time, kExchange);
}

void StepModel::share_tensors(const ParallelLayout& layout, UnitTimes& times, bool exact) {
    if (layout.tp == 1) return;
    const TokenShare tokens = tokens_of(layout);
    const GpuGroup group{layout.tp, 1};
    const Attention& a = run_.model.attention;
    const auto rows = static_cast<double>(tokens.gathered());
    const double bytes = kBf16 * rows * run_.model.hidden;
    const auto ask = [&](Collective::Op op, double size) {
        return communication_->collective(op, group, size, exact);
    };
    const double gather = ask(Collective::Op::all_gather, bytes);
    const double scatter = ask(Collective::Op::reduce_scatter, bytes);
    double in = gather;
    double in_back = scatter;
    if (a.kind == Attention::Form::mla) {  // latents travel instead of rows
        const double latents = kBf16 * rows * (a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim);
        in = ask(Collective::Op::all_gather, latents);
        in_back = ask(Collective::Op::reduce_scatter, latents);
    }
    const bool shared = run_.model.shared_experts > 0;
    for (const Unit unit : {Unit::dense, Unit::moe}) {
        const bool ffn = unit == Unit::dense || shared;
        UnitTime& time = at(times, unit);
        const double shared_ffn = ffn ? gather + scatter : 0;
        time.forward.tp += in + scatter + shared_ffn;
        time.backward.tp += gather + in_back + shared_ffn * (layout.recompute.experts ? 2 : 1);
        time.forward.work.operators += ffn ? 4 : 2;
        time.backward.work.operators += ffn ? 4 : 2;
    }
    at(times, Unit::embedding).forward.tp += scatter;
    at(times, Unit::embedding).backward.tp += gather;
    at(times, Unit::head).forward.tp += heads_of(run_) * gather;
    at(times, Unit::head).backward.tp += heads_of(run_) * scatter;
}

/// Keys and values go round the ring of GPUs that share a sequence while each attends to those that
/// it has; backward their gradients go along.
void StepModel::share_context(const ParallelLayout& layout, UnitTimes& times, bool exact) {
    if (layout.cp == 1) return;
    const TokenShare tokens = tokens_of(layout);
    const Attention& a = run_.model.attention;
    const double heads = std::max(1.0, static_cast<double>(a.kv_heads) / layout.tp);
    const double width = a.kind == Attention::Form::mla
                             ? heads * (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim)
                             : 2 * heads * a.head_dim;
    const double bytes = kBf16 * static_cast<double>(tokens.gathered()) * width;
    const LayerWork& work = attention(tokens);
    const double step = work.core.sum() / layout.cp;
    const GpuGroup ring{layout.cp, layout.tp};
    const double forward = communication_->ring_step(ring, bytes, exact);
    const double backward = communication_->ring_step(ring, 2 * bytes, exact);
    const int steps = layout.cp - 1;
    for (const Unit unit : {Unit::dense, Unit::moe}) {
        at(times, unit).forward.cp += steps * std::max(0.0, forward - step);
        at(times, unit).backward.cp += steps * std::max(0.0, backward - 2 * step);
    }
}

/// FSDP: while a layer computes, the next one's weights are gathered; backward gradients are summed
/// as well. Where experts exchange rows between nodes, both use the same NICs one after the other.
void StepModel::gather_weights(const ParallelLayout& layout, UnitTimes& times, bool exact) {
    if (layout.sharding != Sharding::fsdp) return;
    const bool outside = layout.ep * layout.etp > run_.machine.gpus_per_node;
    for (const Unit unit : {Unit::embedding, Unit::dense, Unit::moe, Unit::head}) {
        UnitTime& time = at(times, unit);
        const UnitWeights weights = weights_of(run_.model, layout, unit);
        const double gather =
            over_weights(Collective::Op::all_gather, layout, weights, kBf16, exact);
        const double sums = over_weights(Collective::Op::reduce_scatter, layout, weights,
                                         run_.trainer.gradient_bytes, exact);
        const auto hiding = [&](const PassTime& pass) {
            return run_.trainer.fsdp_overlap * (pass.device() - (outside ? pass.ep_alone : 0));
        };
        time.forward.dp = std::max(0.0, gather - hiding(time.forward));
        time.backward.dp = std::max(0.0, gather + sums - hiding(time.backward));
    }
}

}  // namespace moehub
