// FlashDMoE (2025): one persistent kernel. Rows for an expert go straight into a buffer of their
// own (source, expert) on its GPU, over-provisioned, so no counts are exchanged; a signal follows
// the last of them. One thread block schedules: a packet whose signal is up becomes tiles, its rows
// padded to whole row blocks by themselves; a row block's second GEMM follows its first, and its
// results go home at once. No host, no barrier.
#include "layers/mail.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "systems/moe/host_steps.hpp"

#include <deque>
#include <memory>

namespace moehub::systems {
namespace flashdmoe {

/// An expert on one GPU: its row blocks in the order in which packets came.
struct Expert {
    std::unique_ptr<sim::RowGemm> up;
    std::unique_ptr<sim::RowGemm> down;
    std::vector<Rows> blocks;
};

struct FlashDmoe {
    explicit FlashDmoe(MoeLayer& of);

    std::size_t channel(std::size_t expert, GpuId source) const {
        return expert * layer.gpus.count() + source;
    }
    void send_home(GpuId gpu, const Rows& rows);

    MoeLayer& layer;
    std::size_t most_experts;  ///< most experts of a GPU
    Mail dispatch;
    Mail combine;
    sim::CounterId up_done;                   ///< row blocks
    sim::CounterId down_done;                 ///< row blocks
    std::vector<std::deque<Expert>> experts;  ///< by GPU
};

std::size_t most_experts(const MoeLayer& layer) {
    std::size_t most = 1;
    for (std::uint32_t gpu = 0; gpu < layer.gpus.count(); ++gpu) {
        most = std::max(most, layer.experts_of(static_cast<GpuId>(gpu)).size());
    }
    return most;
}

FlashDmoe::FlashDmoe(MoeLayer& of)
    : layer(of),
      most_experts(flashdmoe::most_experts(of)),
      dispatch(of.gpus, "packets of a source", most_experts * of.gpus.count()),
      combine(of.gpus, "results", 1),
      up_done(of.gpus.add_counter("row blocks of first GEMMs")),
      down_done(of.gpus.add_counter("row blocks of second GEMMs")),
      experts(of.gpus.count()) {
    for (std::uint32_t i = 0; i < of.gpus.count(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        sim::Card& card = of.card(gpu);
        for (const int number : of.experts_of(gpu)) {
            const std::int64_t rows = of.tiling_rows(number);
            GemmPlan up = of.plan_up(rows);
            up.split = 1;
            Expert& expert = experts[gpu].emplace_back();
            expert.down = std::make_unique<sim::RowGemm>(
                card, of.plan_down_like(rows, up), KernelName::expert_down, sim::TileOrder::by_rows,
                [this, gpu, &expert](std::uint32_t block) {
                    compute(layer, gpu, expert.blocks[block]);
                    send_home(gpu, expert.blocks[block]);
                    layer.endpoint(gpu).increase(down_done);
                });
            expert.up = std::make_unique<sim::RowGemm>(
                card, of.plan_up_like(rows, up), KernelName::expert_up, sim::TileOrder::by_columns,
                [this, gpu, &expert](std::uint32_t block) {
                    layer.endpoint(gpu).increase(up_done);
                    expert.down->start(block, 1);
                });
        }
    }
}

/// A row block comes from one source: all its results go there.
void FlashDmoe::send_home(GpuId gpu, const Rows& rows) {
    const GpuId home = layer.home_of(rows.front().token);
    combine.store(gpu, home, 0, rows, static_cast<Bytes>(rows.size()) * layer.combine_bytes());
}

std::int64_t blocks_of(std::int64_t rows, std::int64_t block_rows) {
    return (rows + block_rows - 1) / block_rows;
}

/// A GPU's packets, those for everyone's first expert first.
std::vector<Outgoing> packets_of(FlashDmoe& f, GpuId gpu) {
    MoeLayer& layer = f.layer;
    std::vector<std::vector<Rows>> packets = rows_by_gpu_and_expert(layer, gpu);
    std::vector<Outgoing> list;
    for (std::size_t expert = 0; expert < f.most_experts; ++expert) {
        for (std::uint32_t turn = 0; turn < layer.gpus.count(); ++turn) {
            const auto to = static_cast<GpuId>((gpu + turn) % layer.gpus.count());
            if (expert >= layer.experts_of(to).size()) continue;
            Rows& rows = packets[to][expert];
            const Bytes bytes = static_cast<Bytes>(rows.size()) * layer.dispatch_bytes();
            list.push_back({to, f.channel(expert, gpu), std::move(rows), bytes});
        }
    }
    return list;
}

/// Messages that will come back.
std::int64_t results_of(const FlashDmoe& f, const std::vector<Outgoing>& packets) {
    std::int64_t results = 0;
    for (const Outgoing& packet : packets) {
        const std::size_t expert = packet.channel / f.layer.gpus.count();
        const sim::RowGemm& gemm = *f.experts[packet.to][expert].up;
        results += blocks_of(static_cast<std::int64_t>(packet.rows.size()), gemm.block_rows());
    }
    return results;
}

/// What the scheduler block does with one packet.
Process schedule(FlashDmoe& f, GpuId gpu, std::size_t expert, GpuId source,
                 sim::CounterId packets) {
    const std::size_t channel = f.channel(expert, source);
    co_await f.dispatch.arrived(gpu, channel, 1);
    co_await f.layer.endpoint(gpu).delay(f.layer.input.machine.gpu.overheads.flag_round_trip);
    const Rows rows = f.dispatch.take(gpu, channel);
    Expert& here = f.experts[gpu][expert];
    const std::size_t size = here.up->block_rows();
    for (std::size_t at = 0; at < rows.size(); at += size) {
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = static_cast<std::ptrdiff_t>(std::min(size, rows.size() - at));
        here.blocks.emplace_back(begin, begin + count);
        here.up->start(static_cast<std::uint32_t>(here.blocks.size() - 1), 1);
    }
    f.layer.endpoint(gpu).increase(packets);
}

Process run_consumer(FlashDmoe& f, GpuId gpu) {
    MoeLayer& layer = f.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId packets = endpoint.add_counter("packets");
    std::int64_t expected = 0;
    for (std::size_t expert = 0; expert < f.experts[gpu].size(); ++expert) {
        for (std::uint32_t source = 0; source < layer.gpus.count(); ++source, ++expected) {
            endpoint.spawn("packet", schedule(f, gpu, expert, static_cast<GpuId>(source), packets));
        }
    }
    co_await endpoint.until(packets, expected);
    std::int64_t blocks = 0;
    for (const Expert& expert : f.experts[gpu]) {
        blocks += static_cast<std::int64_t>(expert.blocks.size());
    }
    co_await endpoint.until(f.up_done, blocks);
    layer.gpus.first_gemm_ended(gpu);
    co_await endpoint.until(f.down_done, blocks);
    layer.experts_ended(gpu);
}

Process run_layer(FlashDmoe& f, GpuId gpu) {
    MoeLayer& layer = f.layer;
    layer.endpoint(gpu).spawn("consumer", run_consumer(f, gpu));
    layer.card(gpu).blocks.hold(layer.system.communication_sms, KernelName::dispatch);
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await layer.host(gpu).launch(1);
    {
        const Communicating communicating(layer.card(gpu));
        std::vector<Outgoing> packets = packets_of(f, gpu);
        const std::int64_t results = results_of(f, packets);
        co_await send_messages(layer, f.dispatch, gpu, std::move(packets));
        co_await f.combine.arrived(gpu, 0, results);
    }
    take_back(layer, gpu, f.combine.take(gpu, 0));
    co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.flag_round_trip);
    layer.card(gpu).blocks.release(layer.system.communication_sms, KernelName::dispatch);
    co_await layer.scale(gpu);
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

}  // namespace flashdmoe

LayerResult run_flashdmoe(const Job& job) {
    return run_program(job, "flashdmoe layer", flashdmoe::run_layer);
}

}  // namespace moehub::systems
