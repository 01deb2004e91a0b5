#include "sim/collective/nccl.hpp"

#include <cmath>

namespace moehub::sim {

Chunks::Chunks(const Machine& machine) {
    const Bytes payload = machine.link.payload;
    const Bytes in_flight = machine.collective.outstanding_loads * payload;
    size = std::clamp<Bytes>(in_flight / 16 / payload * payload, payload, 32768);
    window = std::max<std::int64_t>(1, in_flight / size);
}

Slice own_slice(const Communicator& all, GpuId gpu, Bytes bytes) {
    return {
        part_begin(bytes, all.rank(gpu), all.size()), part(bytes, all.rank(gpu), all.size()), {}};
}

Transfer switch_chunk(const SwitchRequest& request, const Slice& slice, Bytes offset, Bytes size) {
    Transfer transfer{.kind = request.kind,
                      .bytes = std::min(size, slice.bytes - offset),
                      .address = static_cast<std::uint64_t>(slice.begin + offset),
                      .group = request.group,
                      .target = slice.target};
    transfer.target.offset += static_cast<std::uint32_t>(offset);
    return transfer;
}

Ps copy_time(const Communicator& all, std::uint32_t heads, Bytes part_of_slice) {
    const double rate = all.costs().switch_channels * all.costs().channel_copy;
    return std::llround(static_cast<double>(part_of_slice) * heads / rate * kSecond);
}

Ps copied_in(const Communicator& all, std::uint32_t heads, const SlicePlace& place) {
    const Bytes unit = place.waves.bytes > 0 ? place.waves.bytes : Chunks(all.machine()).size;
    const Bytes begin = place.offset / unit * unit;
    return copy_time(all, heads, 2 * begin + std::min(unit, place.slice.bytes - begin)) +
           (place.waves.bytes > 0 ? place.offset / unit * place.waves.pause : 0);
}

Ps switch_start(const Communicator& all, std::uint32_t gpus) {
    return all.nccl().switch_start + Ps{gpus} * gpus * all.nccl().switch_pair;
}

// Chunks of a channel by the bytes of the call (NCCL, src/enqueue.cc): smaller ones where few would
// be underway.
Waves waves_of(const Machine& machine, std::uint32_t heads, Bytes bytes) {
    const Bytes channels = machine.collective.switch_channels;
    const Bytes at_once = channels * heads;
    Bytes chunk = 131072;
    if (bytes <= 64 * at_once * chunk) chunk = 65536;
    if (bytes < 8 * at_once * chunk) chunk = std::min<Bytes>(chunk, 32768);
    if (bytes < 2 * at_once * chunk) chunk = std::min<Bytes>(chunk, 16384);
    return {channels * chunk, machine.nccl.switch_wave};
}

// In-switch: every GPU reduces its n-th of the buffer by loads that the switch adds up over all
// GPUs, and stores the result to all of them by multicast. A bounded number of packets is between
// load and stored result, as warps load again only when they are through with the last.
//
// An all-reduce of NCCL's works on a buffer of its own that all switches reach. Its thread blocks
// copy every byte of the user's buffer there, and every byte of the result back, whatever the
// number of GPUs: `switch_channels` · `channel_copy`, against which the n-th that a GPU loads and
// stores shrinks as n grows. On Blackwell's links this binds, on Hopper's the wire does.

namespace {

/// `after`: whose chunks must be through before one more may be underway. `copied`: they are copied
/// in first, while the blocks copy as much out.
Process load(Communicator& all, GpuId gpu, Slice slice, Count after, bool copied = false,
             Waves waves = {}) {
    const Chunks chunks(all.machine());
    const Ps begin = all.endpoint(gpu).now();
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice.bytes; offset += chunks.size, ++posted) {
        co_await all.until(gpu, after, posted - chunks.window + 1);
        if (copied) {
            const Ps ready = begin + copied_in(all, all.size(), {slice, waves, offset});
            co_await all.endpoint(gpu).delay(std::max<Ps>(0, ready - all.endpoint(gpu).now()));
        }
        Transfer transfer =
            switch_chunk({EventKind::load, all.group()}, slice, offset, chunks.size);
        transfer.answered = all.counter(gpu, Count::loaded, gpu);
        all.endpoint(gpu).post(transfer);
    }
    co_await all.until(gpu, Count::loaded, posted);
}

/// Stores a slice at once; with `loads` a chunk goes when its sum has come.
Process store(Communicator& all, GpuId gpu, Slice slice, bool loads) {
    const Chunks chunks(all.machine());
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice.bytes; offset += chunks.size, ++posted) {
        if (loads) co_await all.until(gpu, Count::loaded, posted + 1);
        Transfer transfer =
            switch_chunk({EventKind::store, all.group()}, slice, offset, chunks.size);
        transfer.answered = all.counter(gpu, Count::stored, gpu);
        all.endpoint(gpu).post(transfer);
    }
    co_await all.until(gpu, Count::stored, posted);
}

/// What both kinds of in-switch all-reduce do once they have begun; the copying out of the last
/// wave, or chunk, is seen at the end.
Process all_reduce_chunks(Communicator& all, GpuId gpu, Slice slice, RowTarget stored,
                          Waves waves) {
    Slice result = slice;
    result.target = stored;
    if (all.meets()) co_await barrier(all, gpu);
    all.endpoint(gpu).spawn("reduction loads", load(all, gpu, slice, Count::stored, true, waves));
    co_await store(all, gpu, result, true);
    if (all.meets()) co_await barrier(all, gpu, 2);  // everyone's stores are here
    const Bytes last = waves.bytes > 0 ? waves.bytes : Chunks(all.machine()).size;
    co_await all.endpoint(gpu).delay(copy_time(all, all.size(), std::min(last, slice.bytes)));
}

}  // namespace

Process multicast_slice(Communicator& all, GpuId gpu, Slice slice) {
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.costs().switch_launch);
    co_await store(all, gpu, slice, false);
    if (all.meets()) co_await barrier(all, gpu);
}

Process reduce_slice(Communicator& all, GpuId gpu, Slice slice) {
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.costs().switch_launch);
    if (all.meets()) co_await barrier(all, gpu);
    co_await load(all, gpu, slice, Count::loaded);
}

Process all_reduce_slice(Communicator& all, GpuId gpu, Slice slice, RowTarget stored) {
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.costs().switch_launch);
    co_await all_reduce_chunks(all, gpu, slice, stored, {});
}

Process all_reduce_in_waves(Communicator& all, GpuId gpu, Slice slice, Waves waves) {
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(switch_start(all, all.size()) + 2 * waves.pause);
    co_await all_reduce_chunks(all, gpu, slice, slice.target, waves);
}

Process in_switch(Communicator& all, GpuId gpu, Op op, Bytes bytes) {
    const Slice slice = own_slice(all, gpu, bytes);
    if (op == Op::all_gather) return multicast_slice(all, gpu, slice);
    if (op == Op::reduce_scatter) return reduce_slice(all, gpu, slice);
    return all_reduce_slice(all, gpu, slice, {});
}

}  // namespace moehub::sim
