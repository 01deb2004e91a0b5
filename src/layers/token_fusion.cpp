#include "layers/token_fusion.hpp"

#include "sim/gpu/memory_ops.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::layers {
namespace {

constexpr Bytes kTid = 4;      ///< bytes of an entry of the TID table
constexpr Bytes kNotice = 16;  ///< bytes: a token's number, in one flit

/// Row block after row block, so that tokens are through early; where one fills the card by itself,
/// column after column, so that those that wait read the weights together.
sim::TileOrder order_of(const sim::Card& card, const GemmPlan& plan) {
    return plan.tiles_across >= card.gpu.sms ? sim::TileOrder::by_columns
                                             : sim::TileOrder::by_rows_that_come;
}

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
      told_(static_cast<std::size_t>(rows.layer.rows())),
      collected_(rows.layer.gpus.add_counter("sums of results")),
      experts_done_(rows.layer.gpus.add_counter("experts that are done")) {
    layer_.gpus.add_statistics([this] { return statistics(); });
    for (const GpuId gpu : layer_.gpus.all()) {
        gemms_[gpu].resize(rows_.experts(gpu).size());
        for (std::size_t expert = 0; expert < gemms_[gpu].size(); ++expert) add_gemms(gpu, expert);
        layer_.gpus.hub(gpu).listen(starters_.emplace_back(
            rows_, gpu,
            [this, gpu](std::size_t expert) -> sim::RowGemm& { return *gemms_[gpu][expert].up; }));
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
    const std::int64_t expected = layer_.tiling_rows(number);
    const GemmPlan like = layer_.plan_up(expected);
    sim::Card& card = layer_.card(gpu);
    Gemms& made = gemms_[gpu][expert];
    const GemmPlan down =
        layer_.plan_down_like(rows, layer_.plan_down_and_send(expected, like.tile_rows));
    made.down = std::make_unique<sim::RowGemm>(
        card, down, KernelName::expert_down, order_of(card, down),
        [this, gpu, expert](std::uint32_t block) {
            layer_.endpoint(gpu).spawn("results", tell_collectors(gpu, expert, block));
        });
    const GemmPlan up = layer_.plan_up_like(rows, like);
    made.up = std::make_unique<sim::RowGemm>(card, up, KernelName::expert_up, order_of(card, up),
                                             [this, gpu, expert](std::uint32_t block) {
                                                 layer_.endpoint(gpu).spawn(
                                                     "row block", start_second(gpu, expert, block));
                                             });
}

Ps TokenFusion::ready_latency() const {
    const Machine& machine = layer_.input.machine;
    return layer_.system.hub == HubUnits::dysharp ? machine.dysharp.poll
                                                  : machine.moe_hub.ready_latency;
}

// Out.

std::int64_t TokenFusion::add_tokens(GpuId gpu) {
    const std::int64_t stores = layers::add_tokens(rows_, gpu);
    for (std::uint32_t i = 0; i < layer_.tokens(gpu); ++i)
        expect(gpu, rows_.token_on(gpu, layer_.first_token(gpu) + i));
    return stores;
}

Process TokenFusion::dispatch(GpuId gpu, sim::CounterId answered) {
    Crossings crossings;
    if (relay_.several_nodes()) {
        crossings.stores = relay_.crossings(gpu);
        crossings.store = [this, gpu](std::uint32_t token) {
            return relay_.cross(gpu, rows_.rows_by_node(token));
        };
    }
    return send_tokens(rows_, gpu, answered, std::move(crossings));
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
            co_await layer_.endpoint(gpu).delay(to_ps(seconds));
            const NodeToken& token = rows_.add_token(gpu, rows.front().token, rows);
            expect(gpu, token);
            rows_.store(gpu, token, {sim::kNoCounter, false});
        }
    }
}

// Through the experts.

Process TokenFusion::start_second(GpuId gpu, std::size_t expert, std::uint32_t block) {
    co_await layer_.endpoint(gpu).delay(ready_latency());
    gemms_[gpu][expert].down->start(block, 1);
}

/// When its results are in memory, the TS table reads whose rows they are (TID table, in memory),
/// and who collects a token is told of it.
Process TokenFusion::tell_collectors(GpuId gpu, std::size_t expert, std::uint32_t block) {
    const MultimemExpert& of = rows_.experts(gpu)[expert];
    const std::uint32_t first = block * gemms_[gpu][expert].down->block_rows();
    const std::uint32_t last = first + gemms_[gpu][expert].down->block_rows();
    const HubSpec& hub = layer_.input.machine.hub;
    rows_.write_results(gpu, of, first, last);
    co_await layer_.endpoint(gpu).delay(hub.write_latency + hub.read_latency);
    const Rows rows = rows_.rows_of(gpu, of, first, last);
    layer_.card(gpu).hbm.take(static_cast<double>(kTid * static_cast<Bytes>(rows.size())));
    for (const CarriedRow& row : rows)
        notices_.store(gpu, relay_.collector(gpu, row.token), 0, {row}, kNotice);
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
                std::vector<bool>::reference told =
                    told_[std::size_t{row.token} * layer_.top_k() + row.choice];
                if (told) throw std::logic_error("a collector was told of one result twice");
                told = true;
                const auto ready = or_tables_[gpu].add(row.token, endpoint.now());
                if (sim::Recorder* recorder = layer_.gpus.recorder())
                    recorder->count(gpu, "or", endpoint.now(), 1);
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
    if (layer_.home_of(token) == gpu)
        layer_.endpoint(gpu).increase(collected_);
    else
        relay_.send_home(gpu, token);
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
    for (std::uint32_t i = 0; i < layer_.tokens(gpu); ++i)
        for (const Rows& rows : rows_.rows_by_node(layer_.first_token(gpu) + i))
            parts += !rows.empty();
    co_await endpoint.until(collected_, parts);
    kernel_.stop(gpu);
}

std::vector<Statistic> TokenFusion::statistics() const {
    sim::OrStats sum;
    for (const sim::OrTable& one : or_tables_) {
        sum.updates += one.stats().updates;
        sum.restored += one.stats().restored;
    }
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {{"or", "updates", number(sum.updates), "experts through with a token"},
            {"or", "restored", number(sum.restored), "counts read back from memory"}};
}

}  // namespace moehub::layers
