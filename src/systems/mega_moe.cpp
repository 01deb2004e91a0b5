// DeepGEMM's Mega MoE: one kernel for the whole layer. Counts to all and a barrier; then every GPU
// pulls the rows of its experts, and a block of rows is multiplied as soon as it is there; its
// results are stored where their tokens are. After a second barrier each token's results are added.
// Every (token, expert) pair is pulled and stored by itself: copies are not shared.
#include "systems/buffers.hpp"
#include "systems/copies.hpp"
#include "systems/expert_kernels.hpp"
#include "systems/mail.hpp"
#include "systems/row_gemm.hpp"
#include "systems/systems.hpp"

#include <algorithm>
#include <memory>

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;  ///< bytes of a count of rows
constexpr std::int64_t kBlockRows[] = {16, 32, 64, 128};
constexpr std::int64_t kBlockColumns = 128;

struct Expert {
    Buffer rows;  ///< pulled: by source, in the order of tokens
    std::unique_ptr<RowGemm> up;
    std::unique_ptr<RowGemm> down;
    std::size_t first_channel = 0;  ///< of its blocks of rows
};

struct MegaMoe {
    explicit MegaMoe(Layer& of);

    Layer& layer;
    Mail counts;  ///< channel 0: before, 1: after the experts
    Mail pulled;  ///< a channel for each block of rows on a GPU
    Mail results;
    std::vector<std::vector<Expert>> experts;  ///< by GPU
    std::vector<sim::CounterId> done;          ///< by GPU: experts
    std::vector<sim::CounterId> shared;        ///< by GPU: 1 when the shared experts are done
};

/// The smallest block that holds what an expert can expect.
GemmPlan blocks_for(const Layer& layer, int expert) {
    GemmPlan like;
    for (const std::int64_t rows : kBlockRows) {
        like.tile_rows = rows;
        if (rows >= layer.tiling_rows(expert)) break;
    }
    like.tile_cols = kBlockColumns;
    return like;
}

/// The SMs also move rows, scale FP8 sums and quantise between the GEMMs.
GemmPlan shared_with_rest(const Layer& layer, GemmPlan plan) {
    for (TileRun& run : plan.runs) run.work.flops /= layer.system.tensor_share;
    return plan;
}

void send_back(MegaMoe& m, GpuId gpu, std::size_t number, std::uint32_t block) {
    Layer& layer = m.layer;
    const Expert& expert = m.experts[gpu][number];
    const std::size_t rows = expert.down->block_rows();
    const std::size_t last = std::min((block + 1) * rows, expert.rows.size());
    for (std::size_t row = block * rows; row < last; ++row) {
        Buffer result = {expert.rows[row]};
        compute(layer, gpu, result);
        m.results.send(gpu, layer.home_of(result.front().token), 0, result, layer.combine_bytes());
    }
}

void add_expert(MegaMoe& m, GpuId gpu, int number) {
    Layer& layer = m.layer;
    const std::size_t place = m.experts[gpu].size();
    const std::int64_t rows = layer.rows_on(layer.rank_of(gpu), number);
    const GemmPlan like = blocks_for(layer, number);
    Expert& expert = m.experts[gpu].emplace_back();
    sim::Card& card = layer.card(gpu);
    expert.down = std::make_unique<RowGemm>(
        card, shared_with_rest(layer, layer.plan_down_like(rows, like)), TileOrder::by_rows,
        [&m, gpu, place](std::uint32_t block) { send_back(m, gpu, place, block); });
    RowGemm* const down = expert.down.get();
    expert.up = std::make_unique<RowGemm>(
        card, shared_with_rest(layer, layer.plan_up_like(rows, like)), TileOrder::by_rows,
        [down](std::uint32_t block) { down->start(block, 1); });
}

/// Blocks of rows on a GPU, over all its experts.
std::size_t blocks_on(const Layer& layer, GpuId gpu) {
    std::int64_t blocks = 0;
    for (const int expert : layer.experts_of(gpu)) {
        const std::int64_t size = blocks_for(layer, expert).tile_rows;
        blocks += (layer.rows_on(layer.rank_of(gpu), expert) + size - 1) / size;
    }
    return static_cast<std::size_t>(blocks);
}

std::size_t most_blocks(const Layer& layer) {
    std::size_t most = 1;
    for (std::uint32_t gpu = 0; gpu < layer.gpus(); ++gpu) {
        most = std::max(most, blocks_on(layer, static_cast<GpuId>(gpu)));
    }
    return most;
}

MegaMoe::MegaMoe(Layer& of)
    : layer(of),
      counts(of, "counts of a peer", 2),
      pulled(of, "blocks of rows", most_blocks(of)),
      results(of, "results", 1),
      experts(of.gpus()) {
    for (std::uint32_t i = 0; i < of.gpus(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        done.push_back(of.endpoint(gpu).add_counter("finished experts"));
        shared.push_back(of.endpoint(gpu).add_counter("shared experts"));
        experts[gpu].reserve(of.experts_of(gpu).size());
        std::size_t first = 0;
        for (const int expert : of.experts_of(gpu)) {
            add_expert(*this, gpu, expert);
            experts[gpu].back().first_channel = first;
            const auto rows = static_cast<std::size_t>(of.rows_on(of.rank_of(gpu), expert));
            if (rows > 0) first += (rows - 1) / experts[gpu].back().up->block_rows() + 1;
        }
    }
    for (std::uint32_t source = 0; source < of.gpus(); ++source) {
        const std::vector<Buffer> rows = rows_by_peer(of, static_cast<GpuId>(source));
        for (std::size_t gpu = 0; gpu < rows.size(); ++gpu) {
            const std::vector<int>& local = of.experts_of(static_cast<GpuId>(gpu));
            for (const BufferedRow& row : rows[gpu]) {
                const auto place = std::lower_bound(local.begin(), local.end(), row.expert);
                experts[gpu][static_cast<std::size_t>(place - local.begin())].rows.push_back(row);
            }
        }
    }
}

/// All tell all others `bytes` and wait for them.
Process barrier(MegaMoe& m, GpuId gpu, std::size_t channel, Bytes bytes) {
    const Communicating communicating(m.layer.card(gpu));
    co_await meet(m.layer, m.counts, gpu, channel, bytes);
    co_await m.layer.endpoint(gpu).delay(m.layer.system.barrier);
}

/// One block of an expert's rows: a load from each source that has some of them.
std::int64_t pull(MegaMoe& m, GpuId gpu, const Expert& expert, std::size_t block) {
    Layer& layer = m.layer;
    const std::size_t size = expert.up->block_rows();
    const std::size_t last = std::min((block + 1) * size, expert.rows.size());
    const Bytes bytes = layer.dispatch_bytes() + scale_bytes(layer);
    std::int64_t loads = 0;
    for (std::size_t first = block * size; first < last; ++loads) {
        const GpuId home = layer.home_of(expert.rows[first].token);
        Buffer rows;
        for (; first < last && layer.home_of(expert.rows[first].token) == home; ++first)
            rows.push_back(expert.rows[first]);
        const Bytes all = bytes * static_cast<Bytes>(rows.size());
        m.pulled.fetch(gpu, home, expert.first_channel + block, std::move(rows), all);
    }
    return loads;
}

Process start_block(MegaMoe& m, GpuId gpu, Expert& expert, std::size_t block, std::int64_t loads) {
    co_await m.pulled.arrived(gpu, expert.first_channel + block, loads);
    expert.up->start(static_cast<std::uint32_t>(block), 1);
}

Process run_expert(MegaMoe& m, GpuId gpu, Expert& expert) {
    const auto rows = static_cast<std::int64_t>(expert.rows.size());
    const std::size_t size = expert.up->block_rows();
    for (std::size_t block = 0; block * size < expert.rows.size(); ++block) {
        const std::int64_t loads = pull(m, gpu, expert, block);
        m.layer.endpoint(gpu).spawn("block of rows", start_block(m, gpu, expert, block, loads));
    }
    co_await expert.up->finish(rows);
    m.layer.first_gemm_ended(gpu);
    co_await expert.down->finish(rows);
    m.layer.endpoint(gpu).increase(m.done[gpu]);
}

Process run_layer(MegaMoe& m, GpuId gpu) {
    Layer& layer = m.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, m.shared[gpu]));
    co_await endpoint.delay(layer.system.dispatch_start);
    const auto counts = static_cast<Bytes>(layer.experts_of(gpu).size());
    co_await barrier(m, gpu, 0, kCount * std::max<Bytes>(1, counts));
    layer.card(gpu).activity.communicate(1, endpoint.now());
    for (Expert& expert : m.experts[gpu]) endpoint.spawn("expert", run_expert(m, gpu, expert));
    co_await endpoint.until(m.done[gpu], counts);
    layer.experts_ended(gpu);

    co_await m.results.acknowledged(gpu, m.results.sent(gpu));
    co_await barrier(m, gpu, 1, kCount);
    co_await m.results.arrived(gpu, 0, static_cast<std::int64_t>(layer.rows_of(gpu).size()));
    layer.card(gpu).activity.communicate(-1, endpoint.now());
    take_back(layer, gpu, m.results.take(gpu, 0));
    co_await layer.scale(gpu);
    co_await endpoint.until(m.shared[gpu], 1);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_mega_moe(const Job& job) {
    Layer layer(job);
    MegaMoe mega(layer);
    run_on_all(layer, mega, [](MegaMoe& shared, GpuId gpu) {
        shared.layer.endpoint(gpu).spawn("mega-moe layer", run_layer(shared, gpu));
    });
    return layer.result();
}

}  // namespace moehub::systems
