// DeepGEMM's Mega MoE: one kernel for the whole layer. Counts to all and a barrier; then every GPU
// pulls the rows of its experts, and a block of rows is multiplied as soon as it is there; its
// results are stored where their tokens are. After a second barrier each token's results are added.
// Every (token, expert) pair is pulled and stored by itself: copies are not shared.
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "systems/systems.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace moehub::systems {
namespace mega_moe {

constexpr std::int64_t kBlockRows[] = {16, 32, 64, 128};
constexpr std::int64_t kBlockColumns = 128;

struct Expert {
    int number = 0;
    Rows rows;  ///< pulled: by source, in the order of tokens
    std::unique_ptr<sim::RowGemm> up;
    std::unique_ptr<sim::RowGemm> down;
};

struct MegaMoe {
    MoeLayer& layer;
    RowCounts counts{layer};
    /// Channel 0: before, with counts; 1: after the experts.
    Mail barriers{layer.gpus, "counts of a peer", 2};
    PulledRows pulled{layer, counts, "blocks of rows"};
    Mail results{layer.gpus, "results", 1};
    sim::CounterId done = layer.gpus.add_counter("finished experts");  ///< experts
    /// 1 when the shared experts are done.
    sim::CounterId shared = layer.gpus.add_counter("shared experts");
    /// By GPU.
    std::vector<std::vector<Expert>> experts = std::vector<std::vector<Expert>>(layer.gpus.count());
};

/// The smallest block that holds what an expert can expect.
GemmPlan blocks_for(const MoeLayer& layer, int expert) {
    GemmPlan like;
    for (const std::int64_t rows : kBlockRows) {
        like.tile_rows = rows;
        if (rows >= layer.tiling_rows(expert)) break;
    }
    like.tile_cols = kBlockColumns;
    return like;
}

/// The SMs also move rows, scale FP8 sums and quantise between the GEMMs.
GemmPlan shared_with_rest(const MoeLayer& layer, GemmPlan plan) {
    for (TileRun& run : plan.runs) run.work.flops /= layer.system.tensor_share;
    return plan;
}

void send_back(MegaMoe& m, GpuId gpu, std::size_t number, std::uint32_t block) {
    MoeLayer& layer = m.layer;
    const Expert& expert = m.experts[gpu][number];
    const std::size_t rows = expert.down->block_rows();
    const std::size_t last = std::min((block + 1) * rows, expert.rows.size());
    for (std::size_t row = block * rows; row < last; ++row) {
        Rows result = {expert.rows[row]};
        compute(layer, gpu, result);
        m.results.store(gpu, layer.home_of(result.front().token), 0, result, layer.combine_bytes());
    }
}

void add_expert(MegaMoe& m, GpuId gpu, int number) {
    MoeLayer& layer = m.layer;
    const std::size_t index = m.experts[gpu].size();
    const std::int64_t rows = m.counts.rows(gpu, number);
    const GemmPlan like = blocks_for(layer, number);
    Expert& expert = m.experts[gpu].emplace_back();
    expert.number = number;
    expert.rows.resize(static_cast<std::size_t>(rows));
    sim::Card& card = layer.card(gpu);
    expert.down = std::make_unique<sim::RowGemm>(
        card, shared_with_rest(layer, layer.plan_down_like(rows, like)), KernelName::expert_down,
        sim::TileOrder::by_rows,
        [&m, gpu, index](std::uint32_t block) { send_back(m, gpu, index, block); });
    sim::RowGemm* const down = expert.down.get();
    expert.up = std::make_unique<sim::RowGemm>(
        card, shared_with_rest(layer, layer.plan_up_like(rows, like)), KernelName::expert_up,
        sim::TileOrder::by_rows, [down](std::uint32_t block) { down->start(block, 1); });
}

/// All tell all others how many rows they have for each expert, and wait for them.
Process tell_counts(MegaMoe& m, GpuId gpu, Bytes bytes) {
    const Communicating communicating(m.layer.card(gpu));
    const std::uint32_t gpus = m.layer.gpus.count();
    std::vector<std::vector<std::int64_t>> counts = m.counts.counted(gpu);
    for (std::uint32_t step = 1; step < gpus; ++step) {
        const auto peer = static_cast<GpuId>((gpu + step) % gpus);
        m.barriers.tell(gpu, peer, 0, std::move(counts[peer]), bytes);
    }
    co_await m.barriers.arrived(gpu, 0, gpus - 1);
    m.counts.heard(gpu, {gpu, 0, {{}, std::move(counts[gpu])}});
    for (const sim::Received& told : m.barriers.take_messages(gpu, 0)) m.counts.heard(gpu, told);
    co_await m.layer.endpoint(gpu).delay(m.layer.system.barrier);
}

struct Block {
    std::size_t number;
    std::int64_t loads;
    sim::CounterId arrived;
};

Process start_block(MegaMoe& m, GpuId gpu, Expert& expert, Block block) {
    co_await m.layer.endpoint(gpu).until(block.arrived, block.loads);
    const Rows rows = m.pulled.take(gpu, block.arrived);
    const std::size_t first = block.number * expert.up->block_rows();
    const std::size_t asked =
        std::min<std::size_t>(expert.up->block_rows(), expert.rows.size() - first);
    if (rows.size() != asked) throw std::logic_error("a block got other rows than it asked for");
    std::copy(rows.begin(), rows.end(), expert.rows.begin() + static_cast<std::ptrdiff_t>(first));
    expert.up->start(static_cast<std::uint32_t>(block.number), 1);
}

Process run_expert(MegaMoe& m, GpuId gpu, Expert& expert) {
    sim::Endpoint& endpoint = m.layer.endpoint(gpu);
    const auto rows = static_cast<std::int64_t>(expert.rows.size());
    const std::size_t size = expert.up->block_rows();
    for (std::size_t block = 0; block * size < expert.rows.size(); ++block) {
        const sim::CounterId arrived = endpoint.add_counter("rows of a block");
        const RowRange some{static_cast<std::uint32_t>(block * size),
                            static_cast<std::uint32_t>(size)};
        const std::int64_t loads =
            m.pulled.pull(gpu, {expert.number, some, m.layer.dispatch_bytes(), arrived});
        endpoint.spawn("block of rows", start_block(m, gpu, expert, {block, loads, arrived}));
    }
    co_await expert.up->finish(rows);
    m.layer.gpus.first_gemm_ended(gpu);
    co_await expert.down->finish(rows);
    endpoint.increase(m.done);
}

Process run_layer(MegaMoe& m, GpuId gpu) {
    MoeLayer& layer = m.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    m.pulled.offer(gpu, rows_by_peer(layer, gpu));
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, m.shared));
    co_await layer.host(gpu).launch(1);
    co_await endpoint.delay(layer.system.dispatch_start);
    const auto counts = static_cast<Bytes>(layer.experts_of(gpu).size());
    co_await tell_counts(m, gpu, kCount * std::max<Bytes>(1, counts));
    layer.card(gpu).activity.communicate(1, endpoint.now());
    m.experts[gpu].reserve(layer.experts_of(gpu).size());
    for (const int expert : layer.experts_of(gpu)) add_expert(m, gpu, expert);
    for (Expert& expert : m.experts[gpu]) endpoint.spawn("expert", run_expert(m, gpu, expert));
    co_await endpoint.until(m.done, counts);
    layer.experts_ended(gpu);

    co_await m.results.acknowledged(gpu, m.results.sent(gpu));
    {
        const Communicating communicating(layer.card(gpu));
        co_await meet(layer.gpus, m.barriers, gpu, 1, kCount);
        co_await endpoint.delay(layer.system.barrier);
    }
    co_await m.results.arrived(gpu, 0, static_cast<std::int64_t>(layer.rows_of(gpu).size()));
    layer.card(gpu).activity.communicate(-1, endpoint.now());
    take_back(layer, gpu, m.results.take(gpu, 0));
    co_await layer.scale(gpu);
    co_await endpoint.until(m.shared, 1);
    co_await layer.finish(gpu);
}

}  // namespace mega_moe

LayerResult run_mega_moe(const Job& job) {
    return run_program(job, "mega-moe layer", mega_moe::run_layer);
}

}  // namespace moehub::systems
