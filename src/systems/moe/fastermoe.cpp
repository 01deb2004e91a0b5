// FasterMoE's smart schedule (PPoPP 2022): ranks form groups of `group_gpus`, and in each of gpus /
// group_gpus steps a GPU exchanges rows with one group, one NCCL group call per local expert. All
// calls of the way out are issued first; a step's rows are computed, expert by expert, when they
// are there, and go back the same way. The host must know all counts before, and calls the expert
// for every (step, expert): three operators and a call of the library each.
#include "layers/mail.hpp"
#include "systems/moe/host_steps.hpp"

namespace moehub::systems {
namespace fastermoe {

constexpr Bytes kWideCount = 8;  ///< bytes of a count of rows: FastMoE keeps int64

struct FasterMoe {
    std::size_t channel(std::uint32_t step, std::size_t expert) const {
        return step * experts + expert;
    }
    /// Who sends to a GPU in a step: the members of the group that lies `step` groups behind.
    std::vector<GpuId> senders(GpuId gpu, std::uint32_t step) const {
        return members((gpu / group + steps - step) % steps);
    }
    std::vector<GpuId> receivers(GpuId gpu, std::uint32_t step) const {
        return members((gpu / group + step) % steps);
    }
    std::vector<GpuId> members(std::uint32_t of) const {
        std::vector<GpuId> list;
        for (std::uint32_t i = of * group; i < std::min((of + 1) * group, layer.gpus.count());
             ++i) {
            list.push_back(static_cast<GpuId>(i));
        }
        return list;
    }

    MoeLayer& layer;
    /// GPUs.
    std::uint32_t group =
        std::min(static_cast<std::uint32_t>(layer.system.group_gpus), layer.gpus.count());
    std::uint32_t steps = (layer.gpus.count() - 1) / group + 1;
    std::size_t experts = layer.experts_of(0).size();  ///< experts of a GPU
    RowCounts counts{layer};
    Mail dispatch{layer.gpus, "rows of a step", (steps * experts)};
    Mail combine{layer.gpus, "results of a step", (steps * experts)};
};

Bytes bytes_of(const Rows& rows, Bytes row) {
    return static_cast<Bytes>(rows.size()) * row;
}

/// The stream of the library: one call after the other.
Process send_all(FasterMoe& f, GpuId gpu, Ps first_issued, std::vector<std::vector<Rows>> rows) {
    sim::Endpoint& endpoint = f.layer.endpoint(gpu);
    const Communicating communicating(f.layer.card(gpu));
    const int sms = f.layer.system.communication_sms;
    const Ps issue = f.layer.host(gpu).per_operator();
    Ps issued = first_issued;
    for (std::uint32_t step = 0; step < f.steps; ++step) {
        for (std::size_t expert = 0; expert < f.experts; ++expert) {
            issued += issue;
            co_await endpoint.delay(issued - endpoint.now());
            f.layer.card(gpu).blocks.hold(sms, KernelName::dispatch);
            co_await endpoint.delay(f.layer.input.machine.collective.launch);
            for (const GpuId to : f.receivers(gpu, step)) {
                Rows& some = rows[to][expert];
                const Bytes bytes = bytes_of(some, f.layer.dispatch_bytes());
                f.dispatch.send(gpu, to, f.channel(step, expert), std::move(some), bytes);
            }
            co_await f.dispatch.arrived(gpu, f.channel(step, expert),
                                        static_cast<std::int64_t>(f.senders(gpu, step).size()));
            f.layer.card(gpu).blocks.release(sms, KernelName::dispatch);
        }
    }
    f.layer.gpus.dispatch_ended(gpu);
}

Process run_expert(FasterMoe& f, GpuId gpu, std::int64_t rows) {
    MoeLayer& layer = f.layer;
    Host& host = layer.host(gpu);
    co_await convert_rows(layer, gpu, rows);
    const GemmPlan up = layer.plan_up(rows);
    const GemmPlan down = layer.plan_down(rows);
    co_await host.launch(1);
    if (up.tiles() > 0) co_await run_gemm(layer.card(gpu), up, KernelName::expert_up);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, rows);
    co_await host.launch(1);
    if (down.tiles() > 0) co_await run_gemm(layer.card(gpu), down, KernelName::expert_down);
}

/// The results of one (step, expert) go back to whom the rows came from.
void send_back(FasterMoe& f, GpuId gpu, std::size_t channel, const Rows& results,
               const std::vector<GpuId>& homes) {
    std::vector<Rows> by_home = rows_by_home(f.layer, results);
    for (const GpuId home : homes) {
        Rows& some = by_home[home];
        const Bytes bytes = bytes_of(some, f.layer.combine_bytes());
        f.combine.send(gpu, home, channel, std::move(some), bytes);
    }
}

Process run_layer(FasterMoe& f, GpuId gpu) {
    MoeLayer& layer = f.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    Host& host = layer.host(gpu);
    // Operators: rows for each expert, the exchange.
    co_await exchange_counts(layer, f.counts, gpu,
                             {.operators = 2, .bytes = kWideCount * layer.input.model.experts});
    if (!layer.backward()) {
        co_await host.launch(2);  // running sums, places of the rows
        co_await small_kernels(layer, gpu, 2);
    }
    std::vector<std::vector<Rows>> rows = rows_by_gpu_and_expert(layer, gpu);
    const auto all = static_cast<std::int64_t>(layer.rows_of(gpu).size());
    co_await quantise_tokens(layer, gpu);
    co_await host.launch(1);
    co_await reorder(layer, gpu, all, layer.tokens(gpu), layer.dispatch_bytes());
    layer.gpus.dispatch_began(gpu);
    endpoint.spawn("library", send_all(f, gpu, host.issued(), std::move(rows)));
    const auto calls = static_cast<int>(f.steps * f.experts);
    host.issue(calls);

    for (std::uint32_t step = 0; step < f.steps; ++step) {
        for (std::size_t expert = 0; expert < f.experts; ++expert) {
            const std::size_t channel = f.channel(step, expert);
            const std::vector<GpuId> senders = f.senders(gpu, step);
            co_await f.dispatch.arrived(gpu, channel, static_cast<std::int64_t>(senders.size()));
            Rows here = f.dispatch.take(gpu, channel);
            co_await run_expert(f, gpu, static_cast<std::int64_t>(here.size()));
            if (step == 0 && expert == 0) layer.gpus.combine_began(gpu);
            compute(layer, gpu, here);
            co_await host.launch(1);
            send_back(f, gpu, channel, here, senders);
        }
    }
    layer.experts_ended(gpu);
    {
        const Communicating communicating(layer.card(gpu));
        co_await endpoint.delay(layer.input.machine.collective.launch);
        for (std::uint32_t step = 0; step < f.steps; ++step) {
            for (std::size_t expert = 0; expert < f.experts; ++expert) {
                const std::size_t channel = f.channel(step, expert);
                const auto homes = static_cast<std::int64_t>(f.receivers(gpu, step).size());
                co_await f.combine.arrived(gpu, channel, homes);
                take_back(layer, gpu, f.combine.take(gpu, channel));
            }
        }
    }
    co_await host.launch(1);  // back in order
    co_await reorder(layer, gpu, all, all, layer.combine_bytes());
    co_await layer.scale(gpu);
    layer.gpus.combine_ended(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace fastermoe

LayerResult run_fastermoe(const Job& job) {
    return run_program(job, "fastermoe layer", fastermoe::run_layer);
}

}  // namespace moehub::systems
