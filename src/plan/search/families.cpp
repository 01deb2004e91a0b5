#include "plan/search/families.hpp"

#include "plan/search/axes.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Every layout with each value that the key may take beside it.
template <class Values>
std::vector<ParallelLayout> expanded(const std::vector<ParallelLayout>& layouts,
                                     const Values& values_of) {
    std::vector<ParallelLayout> out;
    for (const ParallelLayout& layout : layouts) values_of(layout, out);
    return out;
}

void add_axes(const TrainingRun& run, const PartialLayout& fixed,
              std::vector<ParallelLayout>& layouts) {
    for (const Axis& axis : layout_axes()) {
        if (fixed.*axis.fixed) continue;
        layouts = expanded(layouts, [&](const ParallelLayout& one, auto& out) {
            for (const int value : axis.values(run, one)) {
                out.push_back(one);
                out.back().*axis.member = value;
            }
        });
    }
}

/// `values` of the member.
template <class Value>
void add_choices(Value ParallelLayout::*member,
                 std::vector<Value> (*values)(const TrainingRun&, const ParallelLayout&),
                 const TrainingRun& run, std::vector<ParallelLayout>& layouts) {
    layouts = expanded(layouts, [&](const ParallelLayout& one, auto& out) {
        for (const Value value : values(run, one)) {
            out.push_back(one);
            out.back().*member = value;
        }
    });
}

/// Fixed values may be any: what is left over must still be a whole number of GPUs, or the values
/// of other keys mean nothing.
bool comes_out(const TrainingRun& run, const ParallelLayout& layout) {
    const std::int64_t dense = std::int64_t{layout.tp} * layout.cp * layout.pp;
    const std::int64_t sparse = std::int64_t{layout.etp} * layout.ep * layout.pp;
    return run.gpus() % dense == 0 && run.gpus() % sparse == 0;
}

/// The attention kernel keeps nothing that computing it again
/// would save.
std::vector<Recompute> recompute_values(const Model& model) {
    const bool latent = model.attention.kind == Attention::Kind::mla;
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

std::vector<ParallelLayout> layout_families(const TrainingRun& run, const PlanOptions& options) {
    const PartialLayout& fixed = options.fixed;
    std::vector<ParallelLayout> layouts{completed(fixed)};
    if (!comes_out(run, layouts.front())) return {};
    add_axes(run, fixed, layouts);
    std::erase_if(layouts, [&](const ParallelLayout& one) { return !comes_out(run, one); });
    if (!fixed.sharding) add_choices(&ParallelLayout::sharding, sharding_values, run, layouts);
    if (!fixed.overlap) add_choices(&ParallelLayout::overlap, overlap_values, run, layouts);
    if (!fixed.system && !options.systems.empty())
        layouts = expanded(layouts, [&](const ParallelLayout& one, auto& out) {
            for (const std::string& system : options.systems) {
                out.push_back(one);
                out.back().system = system;
            }
        });
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
