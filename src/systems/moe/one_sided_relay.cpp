// The one-sided all-to-all between nodes: the GPUs in between.
#include "layers/rows.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "systems/moe/one_sided.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems::one_sided {

constexpr Bytes kTotal = 8;  ///< bytes of how many messages crossed

/// How long one SM needs to read and to store so many rows.
Ps copy_time(const OneSided& o, std::int64_t read, std::int64_t stored, Bytes row) {
    const RowCopy copy{static_cast<double>(read * row), 0, static_cast<double>(stored * row)};
    return std::llround(row_copy_seconds(o.layer.input.machine.gpu.kernels, copy) * 1e12);
}

std::int64_t copies_of(const Group& group) {
    std::int64_t copies = 0;
    for (const Rows& rows : group.rows) copies += copies_in(rows);
    return copies;
}

/// A relaying SM's channel of loads lies behind those of the blocks.
Group group_for_node(const OneSided& o, std::uint32_t sm, const Rows& crossed) {
    Group group{o.block_sms + sm, o.layer.home_of(crossed.front().token), {}, {}};
    group.rows.resize(o.layer.gpus.count());
    for (const CarriedRow& row : crossed) group.rows[o.targets.of(row)].push_back(row);
    return group;
}

Process pass_on(OneSided& o, GpuId gpu, std::uint32_t sm) {
    sim::Endpoint& endpoint = o.layer.endpoint(gpu);
    for (std::int64_t seen = 1;; ++seen) {
        co_await o.crossing.arrived(gpu, sm, seen);
        const std::vector<sim::Received> came = o.crossing.take_messages(gpu, sm);
        for (const sim::Received& one : came) {
            const Rows& rows = one.message.rows;
            Group group = group_for_node(o, sm, rows);
            co_await endpoint.delay(
                copy_time(o, copies_in(rows), copies_of(group), o.layer.dispatch_bytes()));
            co_await put_group(o, gpu, group);
            o.passed[gpu][sm].push_back(std::move(group));
            endpoint.increase(o.passed_on);
        }
    }
}

/// The results of a token that a node's GPUs made become one row.
Process bring_home(OneSided& o, GpuId gpu, std::uint32_t sm) {
    MoeLayer& layer = o.layer;
    const Bytes row = layer.combine_bytes();
    const Ps post = layer.input.machine.gpu.exchange.post_row;
    for (Group& group : o.passed[gpu][sm]) {
        co_await get_group(o, gpu, group);
        Rows rows = o.got.take(gpu, group.sm);
        std::stable_sort(rows.begin(), rows.end(), [](const CarriedRow& a, const CarriedRow& b) {
            return a.token < b.token;
        });
        const std::int64_t made = copies_in(rows);
        const Ps added = copy_time(o, copies_of(group), made, row);
        co_await layer.endpoint(gpu).delay(added + made * post);
        o.sums.send(gpu, group.home, 0, std::move(rows), made * row);
    }
    layer.endpoint(gpu).increase(o.relays);
}

Process cross(OneSided& o, GpuId home, GpuId to, const Group& group, Bytes bytes) {
    const std::int64_t copies = copies_in(group.rows[to]);
    const Ps post = o.layer.input.machine.gpu.exchange.post_row;
    co_await o.layer.endpoint(home).delay(copies * post);
    ++o.put_to[home][to];
    o.crossing.send(home, to, group.sm % o.relay_sms, group.rows[to], copies * bytes);
}

void spawn_relays(OneSided& o, GpuId gpu) {
    for (std::uint32_t sm = 0; sm < o.relay_sms; ++sm)
        o.layer.endpoint(gpu).spawn_unit("relaying SM", pass_on(o, gpu, sm));
}

Process pass_on_rest(OneSided& o, GpuId gpu) {
    if (o.relay_sms == 0) co_return;
    const std::uint32_t nodes = o.layer.gpus.count() / o.reach;
    for (std::uint32_t step = 1; step < nodes; ++step) {
        const auto to = static_cast<GpuId>((gpu + step * o.reach) % o.layer.gpus.count());
        o.crossing.tell(gpu, to, o.relay_sms, {o.put_to[gpu][to]}, kTotal);
    }
    co_await o.crossing.arrived(gpu, o.relay_sms, nodes - 1);
    std::int64_t messages = 0;
    for (const sim::Received& told : o.crossing.take_messages(gpu, o.relay_sms))
        messages += told.message.counts.front();
    co_await o.layer.endpoint(gpu).until(o.passed_on, messages);
}

void spawn_bringers(OneSided& o, GpuId gpu) {
    for (std::uint32_t sm = 0; sm < o.relay_sms; ++sm)
        o.layer.endpoint(gpu).spawn("SM that brings sums home", bring_home(o, gpu, sm));
}

Process add_sums(OneSided& o, GpuId gpu) {
    if (o.relay_sms == 0) co_return;
    std::int64_t messages = 0;
    for (std::uint32_t peer = 0; peer < o.layer.gpus.count(); ++peer)
        if (!o.same_node(gpu, static_cast<GpuId>(peer))) messages += o.put_to[gpu][peer];
    if (messages == 0) co_return;
    co_await o.sums.arrived(gpu, 0, messages);
    co_await o.layer.endpoint(gpu).delay(o.layer.input.machine.gpu.overheads.flag_round_trip / 2);
    std::int64_t rows = 0;
    for (const sim::Received& one : o.sums.take_messages(gpu, 0)) {
        rows += copies_in(one.message.rows);
        take_back(o.layer, gpu, one.message.rows);
    }
    const double bytes = static_cast<double>(rows) * static_cast<double>(o.layer.combine_bytes());
    const Traffic traffic{.read = 2 * bytes, .written = bytes};
    co_await run_stream_blocks(o.layer.card(gpu), traffic, KernelName::weighted_sum,
                               sim::Priority::normal);
}

}  // namespace moehub::systems::one_sided
