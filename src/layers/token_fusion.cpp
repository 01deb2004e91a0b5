#include "layers/token_fusion.hpp"

#include "layers/rows.hpp"
#include "layers/sending_kernel.hpp"
#include "sim/gpu/row_copy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace moehub::layers {
namespace {

constexpr Bytes kToken = 4;  ///< bytes of a token's number in a notice

}  // namespace

TokenFusion::TokenFusion(MultimemLayer& rows)
    : rows_(rows),
      layer_(rows.layer),
      gemms_(rows.layer.gpus.count()),
      notices_(rows.layer.gpus, "experts that are through with tokens", 1),
      relay_(rows),
      kernel_(rows, [this](GpuId gpu, std::uint32_t token) { collected(gpu, token); }),
      or_tables_(rows.layer.gpus.count(), sim::OrTable(rows.layer.input.machine.dysharp.or_entries,
                                                       rows.layer.input.machine.hub.read_latency)),
      collected_(rows.layer.gpus.add_counter("sums of results")),
      experts_done_(rows.layer.gpus.add_counter("experts that are done")) {
    for (std::uint32_t i = 0; i < layer_.gpus.count(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        gemms_[gpu].resize(rows_.experts(gpu).size());
        for (std::size_t expert = 0; expert < gemms_[gpu].size(); ++expert) add_gemms(gpu, expert);
        layer_.gpus.hub(gpu).listen(starters_.emplace_back(*this, gpu));
        sim::Endpoint& endpoint = layer_.endpoint(gpu);
        endpoint.spawn_unit("OR table", watch_notices(gpu));
        if (relay_.several_nodes()) endpoint.spawn_unit("relay", watch_crossings(gpu));
        if (relay_.several_nodes())
            endpoint.spawn_unit("sums of other nodes", watch_homecoming(gpu));
    }
}

/// Both GEMMs have the same row blocks: the first passes them on to the second.
void TokenFusion::add_gemms(GpuId gpu, std::size_t expert) {
    const int number = rows_.experts(gpu)[expert].expert;
    const std::int64_t rows = layer_.rows_on(layer_.rank_of(gpu), number);
    GemmPlan like = layer_.plan_up(layer_.tiling_rows(number));
    like.split = 1;
    sim::Card& card = layer_.card(gpu);
    Gemms& made = gemms_[gpu][expert];
    made.down = std::make_unique<sim::RowGemm>(
        card, layer_.plan_down_like(rows, like), sim::TileOrder::by_rows,
        [this, gpu, expert](std::uint32_t block) { tell_collectors(gpu, expert, block); });
    made.up = std::make_unique<sim::RowGemm>(
        card, layer_.plan_up_like(rows, like), sim::TileOrder::by_columns,
        [this, gpu, expert](std::uint32_t block) {
            layer_.endpoint(gpu).spawn("row block", start_second(gpu, expert, block));
        });
}

Ps TokenFusion::ready_latency() const {
    const Machine& machine = layer_.input.machine;
    return layer_.system.hub == HubUnits::dysharp ? machine.dysharp.poll
                                                  : machine.moe_hub.ready_latency;
}

// Out.

void TokenFusion::add_tokens(GpuId gpu) {
    const std::uint32_t first = layer_.first_token(gpu);
    const std::uint32_t node = layer_.gpus.fabric.topology().node(gpu);
    for (std::uint32_t token = first; token < first + layer_.tokens(gpu); ++token) {
        expect(gpu, rows_.add_token(gpu, token, rows_.rows_by_node(token)[node]));
    }
}

Process TokenFusion::dispatch(GpuId gpu, sim::CounterId answered) {
    const std::uint32_t first = layer_.first_token(gpu);
    const std::int64_t stores_in_all = stores(gpu) + relay_.crossings(gpu);
    Sending sending;
    sending.sms = layer_.system.sending_sms;
    sending.rows = layer_.tokens(gpu);
    sending.read = static_cast<double>(layer_.dispatch_bytes());
    sending.stored = sending.read * static_cast<double>(stores_in_all) /
                     static_cast<double>(std::max<std::int64_t>(1, sending.rows));
    sending.table = sending.read * static_cast<double>(sending.rows);
    std::function<int(std::int64_t)> store = [this, gpu, first, answered](std::int64_t i) {
        const auto token = first + static_cast<std::uint32_t>(i);
        const int here = rows_.store(gpu, rows_.token_on(gpu, token), {answered, true});
        return here + (relay_.several_nodes() ? relay_.cross(gpu, rows_.rows_by_node(token)) : 0);
    };
    co_await run_sending(layer_, gpu, sending, store);
}

std::int64_t TokenFusion::stores(GpuId gpu) const {
    const std::uint32_t first = layer_.first_token(gpu);
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < layer_.tokens(gpu); ++i) {
        sum += rows_.stores_of(rows_.token_on(gpu, first + i));
    }
    return sum;
}

/// A token from another node goes on to its experts in this one.
Process TokenFusion::watch_crossings(GpuId gpu) {
    const auto bytes = static_cast<double>(rows_.sent_bytes());
    const Kernels& kernels = layer_.input.machine.gpu.kernels;
    const double seconds =
        row_copy_seconds(kernels, {bytes, 0, bytes}) / layer_.system.combining_sms;
    for (std::int64_t seen = 0;;) {
        co_await relay_.crossed(gpu, seen + 1);
        for (const Rows& rows : relay_.take(gpu)) {
            ++seen;
            if (rows.empty()) continue;
            co_await layer_.endpoint(gpu).delay(std::llround(seconds * 1e12));
            const NodeToken& token = rows_.add_token(gpu, rows.front().token, rows);
            expect(gpu, token);
            rows_.store(gpu, token, {sim::kNoCounter, false});
        }
    }
}

// Through the experts.

void TokenFusion::Starter::rows_ready(sim::RegionId region, std::uint32_t tile) {
    const auto& experts = fusion.rows_.experts(gpu);
    const auto expert = std::find_if(experts.begin(), experts.end(),
                                     [&](const auto& one) { return one.input == region; });
    sim::RowGemm& up = *fusion.gemms_[gpu][static_cast<std::size_t>(expert - experts.begin())].up;
    const std::uint32_t in_tile = fusion.layer_.gpus.hub(gpu).space(region).block_rows;
    const std::uint32_t rows =
        std::min(in_tile, fusion.rows_.rows_in(gpu, *expert) - tile * in_tile);
    const std::uint32_t size = up.block_rows();
    up.start(tile * (in_tile / size), (rows - 1) / size + 1);
}

Process TokenFusion::start_second(GpuId gpu, std::size_t expert, std::uint32_t block) {
    co_await layer_.endpoint(gpu).delay(ready_latency());
    gemms_[gpu][expert].down->start(block, 1);
}

/// One notice to each of those who collect tokens of a row block.
void TokenFusion::tell_collectors(GpuId gpu, std::size_t expert, std::uint32_t block) {
    const MultimemExpert& of = rows_.experts(gpu)[expert];
    const std::uint32_t size = gemms_[gpu][expert].down->block_rows();
    rows_.write_results(gpu, of, block * size, (block + 1) * size);
    std::map<GpuId, Rows> notices;
    for (const CarriedRow& row : rows_.rows_of(gpu, of, block * size, (block + 1) * size)) {
        notices[relay_.collector(gpu, row.token)].push_back(row);
    }
    for (auto& [to, rows] : notices) {
        const Bytes bytes = kToken * static_cast<Bytes>(rows.size());
        notices_.store(gpu, to, 0, std::move(rows), bytes);
    }
}

Process TokenFusion::run_expert(GpuId gpu, std::size_t expert, std::int64_t rows) {
    co_await gemms_[gpu][expert].up->finish(rows);
    layer_.gpus.first_gemm_ended(gpu);
    co_await gemms_[gpu][expert].down->finish(rows);
    layer_.endpoint(gpu).increase(experts_done_);
}

Process TokenFusion::experts_ended(GpuId gpu) {
    co_await layer_.endpoint(gpu).until(experts_done_, static_cast<std::int64_t>(experts(gpu)));
    layer_.experts_ended(gpu);
}

// And back.

void TokenFusion::expect(GpuId gpu, const NodeToken& token) {
    const std::uint32_t rows = rows_.rows_in_node(token);
    if (rows > 0) or_tables_[gpu].expect(token.token, rows);
}

Process TokenFusion::watch_notices(GpuId gpu) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    for (std::int64_t seen = 0;;) {
        co_await notices_.arrived(gpu, 0, seen + 1);
        for (const sim::Received& notice : notices_.take_messages(gpu, 0)) {
            ++seen;
            for (const CarriedRow& row : notice.message.rows) {
                const auto ready = or_tables_[gpu].add(row.token, endpoint.now());
                if (ready) endpoint.spawn("token", release(gpu, row.token, *ready));
            }
        }
    }
}

Process TokenFusion::release(GpuId gpu, std::uint32_t token, Ps time) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    co_await endpoint.delay(time - endpoint.now() + ready_latency());
    kernel_.add(gpu, {token, {0, layer_.combine_bytes()}, true});
}

/// At home it is part of a token; elsewhere it goes there.
void TokenFusion::collected(GpuId gpu, std::uint32_t token) {
    if (layer_.home_of(token) == gpu) {
        layer_.endpoint(gpu).increase(collected_);
    } else {
        relay_.send_home(gpu, token);
    }
}

Process TokenFusion::watch_homecoming(GpuId gpu) {
    for (std::int64_t seen = 0;;) {
        co_await relay_.came_home(gpu, seen + 1);
        const Relay::Homecoming home = relay_.take_home(gpu);
        seen += home.messages;
        for (std::int64_t i = 0; i < home.sums; ++i) layer_.endpoint(gpu).increase(collected_);
    }
}

Process TokenFusion::combine(GpuId gpu, bool from_the_start) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    if (!from_the_start) co_await kernel_.ready(gpu);
    kernel_.start(gpu);
    std::int64_t parts = 0;  // a token's in each node
    for (std::uint32_t i = 0; i < layer_.tokens(gpu); ++i) {
        for (const Rows& rows : rows_.rows_by_node(layer_.first_token(gpu) + i)) {
            parts += !rows.empty();
        }
    }
    co_await endpoint.until(collected_, parts);
    kernel_.stop(gpu);
}

void TokenFusion::report_statistics() {
    sim::OrStats sum;
    for (const sim::OrTable& one : or_tables_) {
        sum.updates += one.stats().updates;
        sum.restored += one.stats().restored;
    }
    const auto number = [](auto value) { return static_cast<double>(value); };
    layer_.gpus.report({"or", "updates", number(sum.updates), "experts through with a token"});
    layer_.gpus.report({"or", "restored", number(sum.restored), "counts read back from memory"});
}

}  // namespace moehub::layers
