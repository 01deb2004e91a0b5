/// What is served: layout, copies of experts, room for the cache.
#include "base/quantity.hpp"
#include "place/eplb.hpp"
#include "sim/kernels/kernels.hpp"
#include "study/serving/costs.hpp"

#include <moehub/error.hpp>
#include <moehub/served_model.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kGigabyte = 1e9;

}  // namespace

ServingMemory memory_of(const Serving& serving) {
    ServingMemory memory = serving_memory(serving.what);
    const Model& model = serving.what.model;
    if (model.moe_layers() == 0 || serving.placement.ranks == 0) return memory;
    std::size_t most = 0;
    for (const std::vector<int>& experts : experts_by_rank(serving.placement))
        most = std::max(most, experts.size());
    const int ep = serving.what.layout.moe_ep;
    const double more = static_cast<double>(most) - (model.experts + ep - 1) / ep;
    const double copies = std::max(0.0, more) * model.moe_layers() * (model.gated ? 3.0 : 2.0) *
                          model.hidden * model.expert_ffn / serving.what.layout.moe_tp *
                          weight_bytes_of(serving.what.formats.experts);
    memory.weights += copies;
    memory.cache = std::max(0.0, memory.cache - serving.what.engine.memory * copies);
    return memory;
}

namespace {

void check_memory(const Serving& serving) {
    const ServingMemory memory = memory_of(serving);
    if (memory.weights >= memory.capacity)
        throw InputError(fmt::format(
            "{} does not fit: weights take {:.1f} GB of each GPU, allowed {:.1f} GB of {}: more "
            "GPUs, or weights of fewer bits",
            serving.what.model.name, memory.weights / kGigabyte, memory.capacity / kGigabyte,
            serving.what.machine.gpu_name));
    const std::int64_t most = most_batch_per_gpu(serving);
    if (serving.batch_per_gpu > most)
        throw InputError(fmt::format(
            "--batch-per-gpu: found {}, allowed: at most {}: with {} tokens each the cache has "
            "{:.1f} GB beside {:.1f} GB of weights",
            serving.batch_per_gpu, most, serving.context, memory.cache / kGigabyte,
            memory.weights / kGigabyte));
}

}  // namespace

std::string_view name_of(BatchOverlap overlap) {
    switch (overlap) {
        case BatchOverlap::none:
            return "none";
        case BatchOverlap::single_batch:
            return "single-batch";
        case BatchOverlap::two_batch:
            break;
    }
    return "two-batch";
}

std::int64_t Serving::tokens_per_gpu() const {
    return batch_per_gpu * (prefill ? context : 1 + drafts);
}

namespace {

/// One more copy of the expert with most rows a copy that the rank does not have.
void host_busiest(Placement& placement, const Matrix& rows, int rank) {
    std::vector<int>* busiest = nullptr;
    double most = -1;
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert) {
        std::vector<int>& hosts = placement.hosts[expert];
        const double each = rows(0, static_cast<int>(expert)) / static_cast<double>(hosts.size());
        if (each <= most || std::find(hosts.begin(), hosts.end(), rank) != hosts.end()) continue;
        most = each;
        busiest = &hosts;
    }
    if (busiest == nullptr) return;  // it has them all
    busiest->insert(std::upper_bound(busiest->begin(), busiest->end(), rank), rank);
}

}  // namespace

Placement eplb_placement(const Routing& routing, int ranks, int copies) {
    const int slots = (routing.experts + copies + ranks - 1) / ranks * ranks;
    Matrix rows(1, routing.experts);
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const std::uint16_t expert : routing.chosen_by(0, token)) ++rows(0, expert);
    const EplbResult packed = eplb(rows, {.slots = slots, .gpus = ranks});
    Placement placement{ranks, {}};
    placement.hosts.resize(static_cast<std::size_t>(routing.experts));
    const int each = slots / ranks;
    std::vector<int> twins;  // ranks on which two copies met
    for (int slot = 0; slot < slots; ++slot) {
        const int expert = packed.expert_of[0][static_cast<std::size_t>(slot)];
        std::vector<int>& hosts = placement.hosts[static_cast<std::size_t>(expert)];
        if (hosts.empty() || hosts.back() != slot / each)
            hosts.push_back(slot / each);
        else
            twins.push_back(slot / each);
    }
    for (const int rank : twins) host_busiest(placement, rows, rank);
    return placement;
}

Serving serving_on(const Machine& machine, const Model& model, const EngineSpec& engine,
                   const ServingSetup& setup) {
    Serving serving;
    const int gpus = machine.gpus();
    const int ranks = gpus / setup.expert_tp;
    serving.what = {machine, model, engine, {}, {}};
    serving.what.formats = engine_formats(engine, model, machine.gpu, setup.weights);
    serving.what.layout = {setup.attention_tp, gpus / setup.attention_tp, setup.expert_tp, ranks};
    serving.routing = setup.routing;
    if (setup.routing.shares == RoutingSpec::Shares::uniform) serving.what.expert_skew = 0;
    if (model.moe_layers() == 0) return serving;
    constexpr std::int64_t kSample = 65536;  // tokens
    const bool full = setup.copies == 0 && model.experts % ranks == 0;
    serving.placement =
        full ? contiguous_placement(model.experts, ranks)
             : eplb_placement(make_routing(setup.routing, model, kSample), ranks, setup.copies);
    return serving;
}

std::int64_t most_batch_per_gpu(const Serving& serving) {
    const double context = static_cast<double>(serving.context) + (serving.prefill ? 0 : 1);
    return memory_of(serving).most_requests(context) / serving.what.layout.attention_tp;
}

void check(const Serving& serving) {
    check(serving.what);
    const auto refuse = [](std::string_view what, std::int64_t found, std::string_view allowed) {
        throw InputError(fmt::format("{}: found {}, allowed: {}", what, found, allowed));
    };
    if (serving.context < 1)
        refuse(serving.prefill ? "--prompt" : "--context", serving.context, "1 or more tokens");
    if (serving.batch_per_gpu < 1) refuse("--batch-per-gpu", serving.batch_per_gpu, "1 or more");
    if (serving.overlap == BatchOverlap::two_batch && serving.batch_per_gpu < 2)
        refuse("--batch-per-gpu", serving.batch_per_gpu, "2 or more, for two batches");
    if (serving.accepted < 0 || serving.accepted > serving.drafts)
        throw InputError(fmt::format("accepted guesses: found {}, allowed: 0 to the {} of a step",
                                     serving.accepted, serving.drafts));
    check_memory(serving);
}

}  // namespace moehub
