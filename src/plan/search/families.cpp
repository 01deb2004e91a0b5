// What values the keys of a parallel layout may take, and layouts by families.
#include "plan/search/search.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Divisors of `whole` up to `most`, ascending.
std::vector<int> divisors(int whole, int most) {
    std::vector<int> found;
    for (int one = 1; one <= std::min(whole, most); ++one)
        if (whole % one == 0) found.push_back(one);
    return found;
}

/// GPUs of each of so many parts.
int part_of(const TrainingRun& run, std::int64_t parts) {
    return static_cast<int>(run.gpus() / parts);
}

/// Layers that stages share out.
int layers_of(const TrainingRun& run) {
    return run.model.layers + (run.mtp ? run.model.mtp_layers : 0);
}

std::vector<int> pp_values(const TrainingRun& run, const ParallelLayout&) {
    return divisors(run.gpus(), layers_of(run));
}

/// Values of vpp: for each number of layers that the longest piece may have, the fewest pieces.
std::vector<int> vpp_values(const TrainingRun& run, const ParallelLayout& chosen) {
    const int layers = layers_of(run);
    const auto longest = [&](int pieces) { return (layers - 1) / (chosen.pp * pieces) + 1; };
    std::vector<int> found{1};
    if (chosen.pp == 1) return found;
    for (int pieces = 2; pieces * chosen.pp <= layers; ++pieces)
        if (longest(pieces) < longest(pieces - 1)) found.push_back(pieces);
    return found;
}

bool divides_heads(const Model& model, int tp) {
    return model.attention.heads % tp == 0;
}

std::vector<int> tp_values(const TrainingRun& run, const ParallelLayout& chosen) {
    std::vector<int> found = divisors(part_of(run, chosen.pp), run.machine.gpus_per_node);
    std::erase_if(found, [&](int tp) {
        return run.machine.gpus_per_node % tp != 0 || !divides_heads(run.model, tp);
    });
    return found;
}

/// Values of cp: a GPU keeps a thousand tokens of a sequence at least: with fewer, rings of keys
/// and values take longer than what they share out.
std::vector<int> cp_values(const TrainingRun& run, const ParallelLayout& chosen) {
    constexpr std::int64_t kFewestTokens = 1024;
    const std::int64_t sequence = sequence_of(run);
    const int most = static_cast<int>(std::clamp<std::int64_t>(sequence / kFewestTokens, 1, 4096));
    std::vector<int> found = divisors(part_of(run, std::int64_t{chosen.pp} * chosen.tp), most);
    std::erase_if(found, [&](int cp) { return cp > 1 && sequence % (2 * cp * chosen.tp) != 0; });
    return found;
}

/// Values of etp: an expert's part keeps a width that fills tiles; narrow experts are not shared.
std::vector<int> etp_values(const TrainingRun& run, const ParallelLayout& chosen) {
    constexpr int kFewestColumns = 2048;
    if (run.model.experts == 0) return {1};
    std::vector<int> found = divisors(part_of(run, chosen.pp), run.machine.gpus_per_node);
    const int ffn = run.model.expert_ffn;
    std::erase_if(found, [&](int etp) {
        return run.machine.gpus_per_node % etp != 0 || ffn % etp != 0 ||
               (etp > 1 && ffn / etp < kFewestColumns);
    });
    return found;
}

std::vector<int> ep_values(const TrainingRun& run, const ParallelLayout& chosen) {
    if (run.model.experts == 0) return {1};
    const int left = part_of(run, std::int64_t{chosen.pp} * chosen.etp);
    std::vector<int> found = divisors(run.model.experts, left);
    std::erase_if(found, [&](int ep) { return left % ep != 0; });
    return found;
}

std::vector<int> micro_batch_values(const TrainingRun& run, const ParallelLayout& chosen) {
    std::vector<int> found{1, 2, 4, 8};
    std::erase_if(found, [&](int size) {
        ParallelLayout layout = chosen;
        layout.micro_batch = size;
        const std::int64_t count = micro_batches_of(run, layout);
        return count == 0 || (layout.vpp > 1 && count % layout.pp != 0);
    });
    return found;
}

/// Every layout with each value that the member may take beside it.
template <class Value, class ValuesOf>
void expand(std::vector<ParallelLayout>& layouts, Value ParallelLayout::*member,
            const ValuesOf& values_of) {
    std::vector<ParallelLayout> expanded;
    for (const ParallelLayout& layout : layouts)
        for (const Value& value : values_of(layout)) {
            expanded.push_back(layout);
            expanded.back().*member = value;
        }
    layouts = std::move(expanded);
}

/// Fixed values may be any: what is left over must still be a whole number of GPUs, or the values
/// of other keys mean nothing.
bool comes_out(const TrainingRun& run, const ParallelLayout& layout) {
    const std::int64_t dense = std::int64_t{layout.tp} * layout.cp * layout.pp;
    const std::int64_t sparse = std::int64_t{layout.etp} * layout.ep * layout.pp;
    return run.gpus() % dense == 0 && run.gpus() % sparse == 0;
}

/// The attention kernel keeps nothing that computing it again would save.
std::vector<Recompute> recompute_values(const Model& model) {
    const bool latent = model.attention.kind == Attention::Form::mla;
    std::vector<Recompute> found{{}, {.norms = true}, {.norms = true, .activations = true}};
    if (latent) {
        found.push_back({.latents = true});
        found.push_back(selective_recompute());
    }
    found.push_back({.experts = true});
    found.push_back({.norms = true, .latents = latent, .experts = true});
    found.push_back({.all = true});
    return found;
}

}  // namespace

const std::vector<Axis>& layout_axes() {
    static const std::vector<Axis> axes{
        {&ParallelLayout::pp, &PartialLayout::pp, pp_values},
        {&ParallelLayout::tp, &PartialLayout::tp, tp_values},
        {&ParallelLayout::cp, &PartialLayout::cp, cp_values},
        {&ParallelLayout::vpp, &PartialLayout::vpp, vpp_values},
        {&ParallelLayout::micro_batch, &PartialLayout::micro_batch, micro_batch_values},
        {&ParallelLayout::etp, &PartialLayout::etp, etp_values},
        {&ParallelLayout::ep, &PartialLayout::ep, ep_values},
    };
    return axes;
}

std::vector<Sharding> sharding_values(const TrainingRun& run, const ParallelLayout& chosen) {
    using enum Sharding;
    // Context parallelism shares weights.
    const int copies = part_of(run, std::int64_t{chosen.tp} * chosen.pp);
    const int expert_copies = part_of(run, std::int64_t{chosen.etp} * chosen.ep * chosen.pp);
    if (copies <= 1 && expert_copies <= 1) return {zero1};
    if (chosen.pp == 1) return {none, zero1, zero2, fsdp};
    return {none, zero1, zero2};
}

std::vector<PassOverlap> overlap_values(const TrainingRun& run, const ParallelLayout& chosen) {
    using enum PassOverlap;
    std::vector<PassOverlap> found{none};
    if (chosen.ep > 1) found.push_back(one_f_one_b);
    const bool both_ends = chosen.pp >= 2 && chosen.pp % 2 == 0 && chosen.vpp == 1;
    if (both_ends && micro_batches_of(run, chosen) >= 2 * chosen.pp) found.push_back(dualpipe);
    return found;
}

std::vector<ParallelLayout> layout_families(const TrainingRun& run, const PlanOptions& options) {
    const PartialLayout& fixed = options.fixed;
    std::vector<ParallelLayout> layouts{completed(fixed)};
    if (!comes_out(run, layouts.front())) return {};
    const auto with_run = [&run](auto values) {
        return [&run, values](const ParallelLayout& chosen) { return values(run, chosen); };
    };
    for (const Axis& axis : layout_axes())
        if (!(fixed.*axis.fixed)) expand(layouts, axis.member, with_run(axis.values));
    std::erase_if(layouts, [&](const ParallelLayout& one) { return !comes_out(run, one); });
    if (!fixed.sharding) expand(layouts, &ParallelLayout::sharding, with_run(sharding_values));
    if (!fixed.overlap) expand(layouts, &ParallelLayout::overlap, with_run(overlap_values));
    if (!fixed.system && !options.systems.empty())
        expand(layouts, &ParallelLayout::system,
               [&](const ParallelLayout&) { return options.systems; });
    return layouts;
}

std::vector<Saving> savings(const TrainingRun& run, const PartialLayout& fixed) {
    const std::vector<Recompute> recomputes =
        fixed.recompute ? std::vector{*fixed.recompute} : recompute_values(run.model);
    const std::vector<Offload> offloads =
        fixed.offload ? std::vector{*fixed.offload}
                      : std::vector<Offload>{{}, {true, false}, {false, true}, {true, true}};
    std::vector<Saving> found;
    for (const Recompute& recompute : recomputes)
        for (const Offload& offload : offloads) found.push_back({recompute, offload});
    return found;
}

}  // namespace moehub
