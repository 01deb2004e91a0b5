#include "systems/layer.hpp"

#include "sim/gpu/gemm.hpp"
#include "sim/hub/replicas.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub::systems {
namespace {

constexpr std::int64_t kMostRows = 0xffffffff;

std::int64_t most_experts_of_a_rank(const Placement& placement) {
    std::size_t most = 1;
    for (const auto& experts : experts_by_rank(placement)) most = std::max(most, experts.size());
    return static_cast<std::int64_t>(most);
}

/// One for each line of a row.
int numbers_of_row(const LayerInput& in, const LayerOptions& options, Bytes line) {
    return options.verify ? static_cast<int>((2 * in.model.hidden + line - 1) / line) : 0;
}

sim::FabricOptions fabric_options(const Job& job) {
    constexpr sim::Queueing kQueueing[] = {sim::Queueing::per_peer, sim::Queueing::shared_fifo,
                                           sim::Queueing::rpm};
    sim::FabricOptions made;
    made.grain = job.options.grain;
    made.queueing = kQueueing[static_cast<std::size_t>(job.system.stores)];
    return made;
}

}  // namespace

void check_input(const LayerInput& in, const LayerOptions& options) {
    const auto fail = [](const std::string& what) { throw InputError(what); };
    if (in.model.experts < 1) fail(fmt::format("{} has no experts", in.model.name));
    if (in.routing.experts != in.model.experts || in.routing.top_k != in.model.top_k) {
        fail(fmt::format("routing: found top-{} of {} experts, {} has top-{} of {}",
                         in.routing.top_k, in.routing.experts, in.model.name, in.model.top_k,
                         in.model.experts));
    }
    if (options.tensor_parallel < 1 || in.machine.gpus() % options.tensor_parallel != 0) {
        fail(fmt::format("tensor parallel: found {}, allowed are divisors of the {} GPUs",
                         options.tensor_parallel, in.machine.gpus()));
    }
    if (in.model.expert_ffn % options.tensor_parallel != 0) {
        fail(fmt::format("tensor parallel: found {}, which does not divide the experts' width {}",
                         options.tensor_parallel, in.model.expert_ffn));
    }
    if (in.placement.ranks * options.tensor_parallel != in.machine.gpus()) {
        fail(fmt::format("placement: found {} ranks of {} GPUs, the machine has {} GPUs",
                         in.placement.ranks, options.tensor_parallel, in.machine.gpus()));
    }
    check(in.placement, in.model.experts);
    if (in.routing.tokens < in.machine.gpus()) {
        fail(fmt::format("tokens: found {}, at least one for each of the {} GPUs is needed",
                         in.routing.tokens, in.machine.gpus()));
    }
    const std::int64_t most = kMostRows / in.model.top_k / most_experts_of_a_rank(in.placement);
    if (in.routing.tokens > most) {
        fail(fmt::format("tokens: found {}, allowed at most {}: row ids have 32 bits",
                         in.routing.tokens, most));
    }
}

Layer::Layer(const Job& job)
    : input(job.input),
      system(job.system),
      options(job.options),
      fabric(input.machine, fabric_options(job)),
      books(input, options.tensor_parallel, numbers_of_row(input, options, fabric.link().payload)),
      gpus_(static_cast<std::uint32_t>(input.machine.gpus())),
      experts_(experts_by_rank(input.placement)),
      host_lead_(job.host_lead),
      issued_(gpus_) {
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
        cards_.emplace_back(fabric.gpu(gpu), input.machine.gpu);
        hubs_.emplace_back(
            fabric.gpu(gpu), input.machine,
            sim::Hub::Options{options.page_pool, options.verify, fabric.link().payload});
        gradients_.push_back(fabric.gpu(gpu).add_counter("gradients of the weights"));
    }
    ended_.resize(gpus_);
    make_rows();
}

std::uint32_t Layer::first_token(GpuId gpu) const {
    return static_cast<std::uint32_t>(input.routing.tokens * gpu / gpus_);
}

GpuId Layer::home_of(std::uint32_t token) const {
    auto gpu = static_cast<GpuId>(std::int64_t{token} * gpus_ / input.routing.tokens);
    while (token >= first_token(gpu + 1)) ++gpu;
    return gpu;
}

/// Rows for the first expert of every rank come first, so that each GPU has work early and no GPU
/// is sent everything at once; the id says so: (place of the expert on its rank, token, slot).
void Layer::make_rows() {
    std::vector<std::uint32_t> place(static_cast<std::size_t>(input.model.experts));
    for (const auto& experts : experts_) {
        for (std::size_t i = 0; i < experts.size(); ++i) {
            const auto expert = static_cast<std::size_t>(experts[i]);
            if (input.placement.hosts[expert].front() == &experts - experts_.data()) {
                place[expert] = static_cast<std::uint32_t>(i);
            }
        }
    }
    const auto tokens_in_all = static_cast<std::uint32_t>(input.routing.tokens);
    rows_.resize(gpus_);
    rows_on_.resize(experts_.size() * static_cast<std::size_t>(input.model.experts));
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
        const std::uint32_t first = first_token(static_cast<GpuId>(gpu));
        const std::uint32_t last = first + tokens(static_cast<GpuId>(gpu));
        for (std::uint32_t token = first; token < last; ++token) {
            const auto chosen = input.routing.chosen_by(0, token);
            for (std::uint16_t slot = 0; slot < chosen.size(); ++slot) {
                const std::uint32_t id =
                    (place[chosen[slot]] * tokens_in_all + token) * top_k() + slot;
                rows_[gpu].push_back({id, token, chosen[slot], slot});
            }
        }
        std::sort(rows_[gpu].begin(), rows_[gpu].end(),
                  [](const Row& a, const Row& b) { return a.id < b.id; });
        choose_copies(static_cast<GpuId>(gpu));
    }
}

/// As the hub does when a row is sent: by its own table of replicas.
void Layer::choose_copies(GpuId gpu) {
    sim::ReplicaTable replicas(options.replicas, gpu);
    for (const auto& hosts : input.placement.hosts) {
        replicas.add(std::vector<std::uint32_t>(hosts.begin(), hosts.end()));
    }
    for (Row& row : rows_[gpu]) {
        row.rank = static_cast<std::uint16_t>(replicas.choose(row.expert));
        ++rows_on_[row.rank * static_cast<std::size_t>(input.model.experts) + row.expert];
    }
}

std::int64_t Layer::rows_on(GpuId gpu) const {
    std::int64_t rows_here = 0;
    for (const int expert : experts_of(gpu)) rows_here += rows_on(rank_of(gpu), expert);
    return rows_here;
}

std::int64_t Layer::tiling_rows(int expert) const {
    const std::size_t copies = input.placement.hosts[static_cast<std::size_t>(expert)].size();
    const double mean =
        static_cast<double>(rows()) / input.model.experts / static_cast<double>(copies);
    return std::llround(std::ceil(mean) + 2 * std::sqrt(mean));
}

void Layer::deliver_all_locally() {
    for (const auto& rows_of_gpu : rows_) {
        for (const Row& row : rows_of_gpu) {
            for (int shard = 0; shard < shards(); ++shard) {
                books.delivered(row.token, row.slot, shard);
                books.returned(row.token, row.slot, shard,
                               books.result(row.expert, shard, books.input(row.token)));
            }
        }
    }
}

void Layer::first_gemm_ended(GpuId gpu) {
    first_gemm_ = std::max(first_gemm_, fabric.gpu(gpu).now());
}

void Layer::experts_ended(GpuId gpu) {
    endpoint(gpu).spawn("gradients of the weights", weight_gradients(gpu));
}

Process Layer::finish(GpuId gpu) {
    co_await endpoint(gpu).until(gradients_[gpu], 1);
    const Ps now = endpoint(gpu).now();
    cards_[gpu].activity.compute(0, now);  // the books up to here
    ended_[gpu] = now;
    end_ = std::max(end_, now);
}

Ps Layer::host_lead_gained() const {
    Ps least = end_;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
        least = std::min(least, ended_[gpu] - issued_[gpu]);
    }
    return std::max<Ps>(0, least);
}

/// Of the GPU that computes longest. What it waits for when it is done itself are rows from others.
Breakdown Layer::breakdown() const {
    const auto longest = std::max_element(
        cards_.begin(), cards_.end(),
        [](const auto& a, const auto& b) { return a.activity.computed() < b.activity.computed(); });
    const Ps own = ended_[static_cast<std::size_t>(longest - cards_.begin())];
    const Ps compute = longest->activity.computed();
    const Ps exposed = longest->activity.exposed();
    return {compute, exposed + end_ - own, own - compute - exposed};
}

LayerResult Layer::result() const {
    books.check();
    LayerResult made;
    made.system = system.name;
    made.time = end_;
    made.dispatch = dispatch_.time();
    made.combine = combine_.time();
    made.first_gemm = first_gemm_;
    made.breakdown = breakdown();
    made.bytes_up = fabric.wire_bytes_up();
    made.bytes_down = fabric.wire_bytes_down();
    made.payload = fabric.payload_received();
    double busy = 0;
    for (const sim::Card& card : cards_) busy += card.blocks.sm_time();
    made.sm_busy =
        busy / (std::max(1.0, static_cast<double>(end_)) * input.machine.gpu.sms * gpus_);
    made.rows = rows();
    made.packets = fabric.packets_received();
    made.events = fabric.events();
    made.verified = options.verify;
    made.largest_error = books.largest_error();
    return made;
}

}  // namespace moehub::systems
