/// Which parallel layouts a run allows. Each rule names what does not come out and what would.
#include "base/input_error.hpp"
#include "plan/units.hpp"

#include <moehub/presets.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostTokens =
    1'000'000'000;  ///< most tokens of a sequence, and sequences of a step
constexpr int kMostLayers = 10'000;

std::string divisors_up_to(std::int64_t number, std::int64_t most) {
    std::string list;
    int shown = 0;
    for (std::int64_t i = 1; i <= most && shown < 12; ++i)
        if (number % i == 0) {
            list += fmt::format("{}{}", list.empty() ? "" : ", ", i);
            ++shown;
        }
    return list;
}

std::string wrong_gpus(const TrainingRun& run, const ParallelLayout& l) {
    const int gpus = run.gpus();
    const int node = run.machine.gpus_per_node;
    const std::int64_t dense = std::int64_t{l.tp} * l.cp * l.pp;
    const std::int64_t sparse = std::int64_t{l.etp} * l.ep * l.pp;
    if (dense > gpus)
        return fmt::format("tp·cp·pp = {} is more than {} GPUs: take smaller ones or more GPUs",
                           dense, gpus);
    if (gpus % dense != 0) return fmt::format("tp·cp·pp = {} does not divide {} GPUs", dense, gpus);
    if (sparse > gpus)
        return fmt::format("ep·etp·pp = {} is more than {} GPUs: take smaller ones or more GPUs",
                           sparse, gpus);
    if (gpus % sparse != 0)
        return fmt::format("ep·etp·pp = {} does not divide {} GPUs", sparse, gpus);
    if (node % l.tp != 0)
        return fmt::format("tp = {} does not divide the {} GPUs of a node; allowed: {}", l.tp, node,
                           divisors_up_to(node, node));
    const int group = l.ep * l.etp;
    if (group > node ? group % node != 0 : node % group != 0)
        return fmt::format(
            "ep·etp = {} is neither a divisor nor a multiple of the {} GPUs of a node", group,
            node);
    return "";
}

std::string wrong_model(const TrainingRun& run, const ParallelLayout& l) {
    const Model& m = run.model;
    const std::int64_t sequence = sequence_of(run);
    if (m.attention.heads % l.tp != 0)
        return fmt::format("tp = {} does not divide {} heads; allowed: {}", l.tp, m.attention.heads,
                           divisors_up_to(m.attention.heads, 64));
    if (sequence % (std::int64_t{l.tp} * l.cp) != 0)
        return fmt::format("tp·cp = {} does not divide sequences of {} tokens", l.tp * l.cp,
                           sequence);
    if (m.experts == 0 && l.ep * l.etp > 1) return "ep and etp are 1 in a model without experts";
    if (m.experts > 0 && m.experts % l.ep != 0)
        return fmt::format("ep = {} does not divide {} experts; allowed: {}", l.ep, m.experts,
                           divisors_up_to(m.experts, m.experts));
    if (m.experts > 0 && m.expert_ffn % l.etp != 0)
        return fmt::format("etp = {} does not divide the experts' width of {}", l.etp,
                           m.expert_ffn);
    const int units = unit_count(run);
    if (std::int64_t{l.pp} * l.vpp > units)
        return fmt::format(
            "pp·vpp = {} is more than the {} parts there are: {} layers, embedding, head{}",
            std::int64_t{l.pp} * l.vpp, units, m.layers,
            run.mtp && m.mtp_layers > 0 ? " and multi-token prediction" : "");
    return "";
}

std::string wrong_batch(const TrainingRun& run, const ParallelLayout& l) {
    const std::int64_t dp = run.gpus() / (std::int64_t{l.tp} * l.cp * l.pp);
    const std::int64_t together = dp * l.micro_batch;
    if (run.global_batch % together != 0)
        return fmt::format(
            "a global batch of {} does not divide into micro-batches of {} on {} data-parallel "
            "ranks: take a multiple of {}, or smaller micro-batches",
            run.global_batch, l.micro_batch, dp, together);
    const std::int64_t micro = run.global_batch / together;
    if (l.vpp > 1 && l.pp == 1) return "vpp needs more than one pipeline stage";
    if (l.vpp > 1 && micro % l.pp != 0)
        return fmt::format("vpp needs a number of micro-batches that pp = {} divides, there are {}",
                           l.pp, micro);
    if (l.overlap == PassOverlap::dualpipe) {
        if (l.pp < 2 || l.pp % 2 != 0)
            return fmt::format("dualpipe needs an even number of stages, pp is {}", l.pp);
        if (l.vpp > 1) return "dualpipe has one piece a stage and direction: vpp is 1";
        if (micro % 2 != 0 || micro < 2 * l.pp)
            return fmt::format(
                "dualpipe needs an even number of micro-batches, at least {}, there are {}",
                2 * l.pp, micro);
    }
    return "";
}

std::string wrong_combination(const TrainingRun& run, const ParallelLayout& l) {
    if (l.sharding == Sharding::fsdp && l.pp > 1)
        return "fsdp gathers weights for every micro-batch and has no pipeline: take pp=1";
    if (l.overlap != PassOverlap::none && l.ep * l.etp == 1)
        return fmt::format("overlap {} hides the exchange of rows: ep is more than 1",
                           name_of(l.overlap));
    if (l.overlap != PassOverlap::none && (l.recompute.all || l.recompute.experts))
        return fmt::format("overlap {} cannot compute experts again: recompute less",
                           name_of(l.overlap));
    if (l.recompute.latents && run.model.attention.kind != Attention::Form::mla &&
        l.recompute != selective_recompute())
        return "recompute latents is for latent attention";
    return "";
}

void require(bool good, std::string_view what, std::int64_t found, std::string_view allowed) {
    if (!good) throw input_error("{} is {}, allowed: {}", what, found, allowed);
}

}  // namespace

std::string why_not(const TrainingRun& run, const ParallelLayout& layout) {
    for (const auto rule : {wrong_gpus, wrong_model, wrong_batch, wrong_combination})
        if (std::string why = rule(run, layout); !why.empty()) return why;
    return "";
}

void check(const TrainingRun& run) {
    check(run.machine);
    check(run.model);
    check(run.trainer);
    const std::int64_t sequence = sequence_of(run);
    require(sequence >= 1 && sequence <= kMostTokens, "sequence", sequence, "1 to 1e9 tokens");
    require(run.global_batch >= 1 && run.global_batch <= kMostTokens, "global batch",
            run.global_batch, "1 to 1e9 sequences");
    require(run.model.layers <= kMostLayers, "layers", run.model.layers, "up to 10,000");
    if (run.precision != NumberFormat::bf16 && run.precision != NumberFormat::fp8)
        throw input_error("precision is {}, allowed: bf16, fp8", name_of(run.precision));
    if (run.precision == NumberFormat::fp8 && run.machine.gpu.fp8_flops <= 0)
        throw input_error("precision is fp8, and {} has no FP8 units: take bf16",
                          run.machine.gpu_name);
}

Machine training_machine(const Machine& machine, int gpus) {
    require(gpus >= 1, "GPUs", gpus, "from 1");
    if (gpus <= machine.gpus_per_node || machine.nic.bandwidth <= 0)
        return with_gpus(machine, gpus);
    int each = machine.gpus_per_node;
    while (gpus % each != 0) --each;
    if (each < 2 && machine.gpus_per_node > 1)
        throw input_error(
            "{} GPUs cannot be shared out evenly over nodes of {}: take a multiple of {}", gpus,
            machine.gpus_per_node, machine.gpus_per_node);
    Machine fewer = machine;
    fewer.gpus_per_node = each;
    return with_gpus(fewer, gpus);
}

}  // namespace moehub
