// The bound: routing and experts, with every row where it is needed; results add up on their way,
// as switches can do (with `switch_copies = false` GPUs do it, as the MoE-Hub paper has its bound).
// The experts run in each of the ways in which systems run them, and the fastest counts. There is
// no host to wait for: the first GEMMs were launched while the router ran.
#include "layers/rows.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "systems/systems.hpp"

#include <array>

namespace moehub::systems {
namespace ideal {

enum class Way {
    own_tiles,       ///< a GEMM for each expert, with the tiles that suit its rows
    expected_tiles,  ///< tiles that suit the rows expected: experts fill the card otherwise
    by_columns,      ///< as moe-hub
    by_rows,         ///< as moe-hub, with tiles of the second GEMM that suit its rows alone
    by_blocks,       ///< as flashdmoe: a row block's second GEMM follows its first
    small_blocks,    ///< as mega-moe: with the smallest block that holds an expert's rows
    one_by_one,      ///< as own_tiles, one expert after the other
    grouped,         ///< grouped GEMMs
};
constexpr std::array kWays = {Way::own_tiles, Way::expected_tiles, Way::by_columns, Way::by_rows,
                              Way::by_blocks, Way::small_blocks,   Way::one_by_one, Way::grouped};

struct Ideal {
    MoeLayer& layer;
    Way way;
    bool shared_first;  ///< shared experts before the others, or beside them with low priority
};

/// One of the experts of a GPU.
struct One {
    GpuId gpu = 0;
    int expert = 0;
    std::int64_t rows = 0;
};

Process run_whole(Ideal& ideal, One one) {
    MoeLayer& layer = ideal.layer;
    const bool own = ideal.way != Way::expected_tiles;
    const std::int64_t expected = own ? one.rows : layer.tiling_rows(one.expert);
    GemmPlan up = layer.plan_up_like(one.rows, layer.plan_up(expected));
    const GemmPlan down = layer.plan_down_like(one.rows, layer.plan_down(expected));
    up.start = 0;
    co_await run_gemm(layer.card(one.gpu), up, KernelName::expert_up);
    layer.gpus.first_gemm_ended(one.gpu);
    co_await run_activation(layer, one.gpu, one.rows);
    co_await run_gemm(layer.card(one.gpu), down, KernelName::expert_down);
}

Process run_by_columns(Ideal& ideal, One one) {
    MoeLayer& layer = ideal.layer;
    const std::int64_t expected = layer.tiling_rows(one.expert);
    sim::RowGemm up(layer.card(one.gpu), layer.plan_up_like(one.rows, layer.plan_up(expected)),
                    KernelName::expert_up, sim::TileOrder::by_columns);
    const GemmPlan like =
        ideal.way == Way::by_rows ? layer.plan_down(one.rows) : layer.plan_down_and_send(expected);
    sim::RowGemm down(layer.card(one.gpu), layer.plan_down_like(one.rows, like),
                      KernelName::expert_down, sim::TileOrder::by_rows);
    up.start_all(one.rows);
    co_await up.finish(one.rows);
    layer.gpus.first_gemm_ended(one.gpu);
    co_await run_activation(layer, one.gpu, one.rows);
    co_await down.run(one.rows);
}

/// A tile of 128 columns.
GemmPlan small_block(std::int64_t rows) {
    GemmPlan like;
    for (like.tile_rows = 16; like.tile_rows < std::min<std::int64_t>(rows, 128);)
        like.tile_rows *= 2;
    like.tile_cols = 128;
    return like;
}

Process run_by_blocks(Ideal& ideal, One one) {
    MoeLayer& layer = ideal.layer;
    const bool small = ideal.way == Way::small_blocks;
    GemmPlan like = small ? small_block(one.rows) : layer.plan_up(layer.tiling_rows(one.expert));
    like.split = 1;
    sim::RowGemm down(layer.card(one.gpu), layer.plan_down_like(one.rows, like),
                      KernelName::expert_down, sim::TileOrder::by_rows);
    sim::RowGemm up(layer.card(one.gpu), layer.plan_up_like(one.rows, like), KernelName::expert_up,
                    small ? sim::TileOrder::by_rows : sim::TileOrder::by_columns,
                    [&down](std::uint32_t block) { down.start(block, 1); });
    up.start_all(one.rows);
    co_await up.finish(one.rows);
    layer.gpus.first_gemm_ended(one.gpu);
    co_await down.finish(one.rows);
}

Process run_expert(Ideal& ideal, One one, sim::CounterId done) {
    if (one.rows == 0) {
        ideal.layer.gpus.first_gemm_ended(one.gpu);
    } else if (ideal.way == Way::by_columns || ideal.way == Way::by_rows) {
        co_await run_by_columns(ideal, one);
    } else if (ideal.way == Way::by_blocks || ideal.way == Way::small_blocks) {
        co_await run_by_blocks(ideal, one);
    } else {
        co_await run_whole(ideal, one);
    }
    ideal.layer.endpoint(one.gpu).increase(done);
}

Process run_experts_here(Ideal& ideal, GpuId gpu) {
    MoeLayer& layer = ideal.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const std::vector<int>& experts = layer.experts_of(gpu);
    std::vector<std::int64_t> rows;
    for (const int expert : experts) rows.push_back(layer.rows_on(layer.rank_of(gpu), expert));
    if (ideal.way == Way::grouped) {
        co_await run_grouped_experts(layer, gpu, rows);
        co_return;
    }
    const sim::CounterId done = endpoint.add_counter("finished experts");
    for (std::size_t i = 0; i < experts.size(); ++i) {
        const One one{gpu, experts[i], rows[i]};
        endpoint.spawn("expert", run_expert(ideal, one, done));
        const auto ended = static_cast<std::int64_t>(i) + 1;
        if (ideal.way == Way::one_by_one) co_await endpoint.until(done, ended);
    }
    co_await endpoint.until(done, static_cast<std::int64_t>(experts.size()));
}

Process run_layer(Ideal& ideal, GpuId gpu) {
    MoeLayer& layer = ideal.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId shared = endpoint.add_counter("shared experts");
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, shared));
    if (ideal.shared_first) co_await endpoint.until(shared, 1);
    co_await run_experts_here(ideal, gpu);
    layer.experts_ended(gpu);
    co_await endpoint.until(shared, 1);
    if (!layer.system.switch_copies) co_await layer.scale(gpu);
    co_await layer.finish(gpu);
}

LayerResult run(const Job& job, Way way, bool shared_first) {
    MoeLayer layer(job);
    Ideal ideal{layer, way, shared_first};
    layer.gpus.run("ideal layer", [&](GpuId gpu) { return run_layer(ideal, gpu); });
    layer.deliver_all_locally();
    return layer.result();
}

}  // namespace ideal

LayerResult run_ideal(const Job& job) {
    const bool shares = job.input.model.shared_experts > 0;
    LayerResult best = ideal::run(job, ideal::kWays.front(), false);
    for (const ideal::Way way : ideal::kWays) {
        const bool in_blocks = way == ideal::Way::by_blocks || way == ideal::Way::small_blocks;
        if (in_blocks && !job.system.fused_activation) continue;
        for (const bool shared_first : {false, true}) {
            if (shared_first && !shares) continue;
            LayerResult other = ideal::run(job, way, shared_first);
            if (other.time < best.time) best = std::move(other);
        }
    }
    return best;
}

}  // namespace moehub::systems
