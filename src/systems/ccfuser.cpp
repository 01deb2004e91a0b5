// CCFuser (PPoPP 2025): the experts' GEMMs reach into the other GPUs' memory. Row blocks of the
// first are fetched from where their tokens lie, each copy by itself, and start when their rows are
// there; row blocks of the second are stored where the results belong. The host resolves addresses:
// it must know all counts before, and buffers are handed over by a barrier of all GPUs before and
// after. Moving experts, which balances skewed routing, is a matter of placement here.
#include "systems/buffers.hpp"
#include "systems/eager_host.hpp"
#include "systems/mail.hpp"
#include "systems/row_gemm.hpp"
#include "systems/systems.hpp"

#include <map>
#include <span>

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;  ///< bytes of a count of rows

struct CcFuser {
    explicit CcFuser(Layer& of)
        : layer(of),
          counts(of),
          ready(of, "barrier", 2),
          combine(of, "results", 1),
          rows(of.gpus(), std::vector<Buffer>(static_cast<std::size_t>(of.input.model.experts))) {
        for (std::uint32_t gpu = 0; gpu < of.gpus(); ++gpu) {
            for (const Row& row : of.rows_of(static_cast<GpuId>(gpu))) {
                rows[row.rank][row.expert].push_back(buffered(of, row));
            }
        }
    }
    Buffer& rows_for(GpuId gpu, int expert) { return rows[gpu][static_cast<std::size_t>(expert)]; }

    Layer& layer;
    CountExchange counts;
    Mail ready;
    Mail combine;
    std::vector<std::vector<Buffer>> rows;  ///< [gpu][expert], in the order of tokens
};

Process barrier(CcFuser& c, GpuId gpu, std::size_t which) {
    const Communicating communicating(c.layer.card(gpu));
    co_await meet(c.layer, c.ready, gpu, which, 1);
    co_await c.layer.endpoint(gpu).delay(c.layer.system.barrier);
}

Process count(CcFuser& c, GpuId gpu, EagerHost& host) {
    Layer& layer = c.layer;
    co_await host.launch(4);  // logits, softmax, top-k, weights
    co_await layer.route(gpu);
    co_await host.launch(2);  // rows for each expert, the exchange
    co_await small_kernels(layer, gpu, 1);
    co_await c.counts.exchange(gpu, kCount * layer.input.model.experts);
    co_await host.launch(3);  // order of the rows, running sums, addresses
    co_await small_kernels(layer, gpu, 3);
    co_await host.synchronise();
}

/// Loads a row block from all GPUs that have tokens of it; returns how many loads that takes.
std::int64_t fetch_block(CcFuser& c, GpuId gpu, std::span<const BufferedRow> rows,
                         sim::CounterId arrived) {
    std::map<GpuId, Bytes> bytes;
    for (const BufferedRow& row : rows) {
        bytes[c.layer.home_of(row.token)] += c.layer.dispatch_bytes();
    }
    for (const auto& [from, some] : bytes) {
        if (from == gpu) {
            c.layer.endpoint(gpu).increase(arrived);
            continue;
        }
        sim::Transfer load;
        load.kind = sim::Kind::load;
        load.dst = from;
        load.bytes = some;
        load.address = std::uint64_t{rows.front().token} * std::uint64_t(c.layer.dispatch_bytes());
        load.arrived = arrived;
        c.layer.endpoint(gpu).post(load);
    }
    return static_cast<std::int64_t>(bytes.size());
}

Process run_up(CcFuser& c, GpuId gpu, int expert, sim::CounterId done) {
    Layer& layer = c.layer;
    const std::span<const BufferedRow> rows = c.rows_for(gpu, expert);
    const auto all = static_cast<std::int64_t>(rows.size());
    RowGemm gemm(layer.card(gpu), layer.plan_up(all), TileOrder::by_columns);
    const std::size_t size = std::max(1u, gemm.block_rows());
    const std::size_t blocks = (rows.size() + size - 1) / size;
    const sim::CounterId arrived =
        layer.endpoint(gpu).add_counters("rows of a row block", std::max<std::size_t>(1, blocks));
    std::vector<std::int64_t> loads;
    for (std::size_t block = 0; block < blocks; ++block) {
        const auto some = rows.subspan(block * size, std::min(size, rows.size() - block * size));
        loads.push_back(fetch_block(c, gpu, some, arrived + static_cast<sim::CounterId>(block)));
    }
    for (std::size_t block = 0; block < blocks; ++block) {
        co_await layer.endpoint(gpu).until(arrived + static_cast<sim::CounterId>(block),
                                           loads[block]);
        gemm.start(static_cast<std::uint32_t>(block), 1);
    }
    co_await gemm.finish(all);
    layer.endpoint(gpu).increase(done);
}

Process first_kernel(CcFuser& c, GpuId gpu) {
    Layer& layer = c.layer;
    const Communicating communicating(layer.card(gpu));
    const sim::CounterId done = layer.endpoint(gpu).add_counter("first GEMMs");
    co_await run_for(layer.card(gpu), to_seconds(layer.card(gpu).gpu.kernels.grouped_start));
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        layer.endpoint(gpu).spawn("first GEMM", run_up(c, gpu, expert, done));
    }
    co_await layer.endpoint(gpu).until(done, static_cast<std::int64_t>(experts.size()));
    layer.first_gemm_ended(gpu);
}

/// Results of a row block go to their tokens' GPUs.
void send_block(CcFuser& c, GpuId gpu, std::span<const BufferedRow> rows) {
    std::map<GpuId, Buffer> by_home;
    for (const BufferedRow& row : rows) by_home[c.layer.home_of(row.token)].push_back(row);
    for (auto& [home, some] : by_home) {
        const Bytes bytes = static_cast<Bytes>(some.size()) * c.layer.combine_bytes();
        c.combine.send(gpu, home, 0, std::move(some), bytes);
    }
}

Process run_down(CcFuser& c, GpuId gpu, int expert, sim::CounterId done) {
    Layer& layer = c.layer;
    Buffer& rows = c.rows_for(gpu, expert);
    const auto all = static_cast<std::int64_t>(rows.size());
    compute(layer, gpu, rows);
    const GemmPlan plan = layer.plan_down(all);
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, plan.tile_rows));
    RowGemm gemm(layer.card(gpu), plan, TileOrder::by_rows, [&](std::uint32_t block) {
        const std::size_t begin = block * size;
        send_block(c, gpu, std::span(rows).subspan(begin, std::min(size, rows.size() - begin)));
    });
    gemm.start_all(all);
    co_await gemm.finish(all);
    layer.endpoint(gpu).increase(done);
}

Process second_kernel(CcFuser& c, GpuId gpu) {
    Layer& layer = c.layer;
    const Communicating communicating(layer.card(gpu));
    const sim::CounterId done = layer.endpoint(gpu).add_counter("second GEMMs");
    co_await run_for(layer.card(gpu), to_seconds(layer.card(gpu).gpu.kernels.grouped_start));
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        layer.endpoint(gpu).spawn("second GEMM", run_down(c, gpu, expert, done));
    }
    co_await layer.endpoint(gpu).until(done, static_cast<std::int64_t>(experts.size()));
    layer.experts_ended(gpu);
    co_await c.combine.acknowledged(gpu, c.combine.sent(gpu));
}

Process run_layer(CcFuser& c, GpuId gpu) {
    Layer& layer = c.layer;
    EagerHost host(layer, gpu);
    if (!layer.backward()) co_await count(c, gpu, host);
    co_await host.launch(1);
    co_await barrier(c, gpu, 0);
    co_await host.launch(1);
    co_await first_kernel(c, gpu);
    co_await host.launch(1);
    co_await run_activation(layer, gpu, layer.rows_on(gpu));
    co_await host.launch(1);
    co_await second_kernel(c, gpu);
    co_await host.launch(1);
    co_await barrier(c, gpu, 1);
    take_back(layer, gpu, c.combine.take(gpu, 0));
    co_await host.launch(1);  // weighted sum
    co_await layer.scale(gpu);
    if (layer.input.model.shared_experts > 0) co_await host.launch(3);
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

LayerResult run(Layer& layer) {
    CcFuser shared(layer);
    run_on_all(layer, shared, [](CcFuser& c, GpuId gpu) {
        c.layer.endpoint(gpu).spawn("ccfuser layer", run_layer(c, gpu));
    });
    return layer.result();
}

}  // namespace

LayerResult run_ccfuser(const Job& job) {
    return run_eager(job, run);
}

}  // namespace moehub::systems
