// In-switch: every GPU reduces its n-th of the buffer by loads that the switch adds up over all
// GPUs, and stores the result to all of them by multicast. A bounded number of packets is between
// load and stored result, as warps load again only when they are through with the last.
#include "sim/collective/run.hpp"

namespace moehub::sim {
namespace {

enum Counters : CounterId { kLoaded, kStored };

/// The pipeline moves in chunks: a sixteenth of what may be in flight, in whole packets.
struct Chunks {
    Bytes size;
    std::int64_t window;  ///< chunks in flight

    explicit Chunks(const Machine& machine) {
        const Bytes payload = machine.link.payload;
        const Bytes in_flight = machine.collective.outstanding_loads * payload;
        size = std::clamp<Bytes>(in_flight / 16 / payload * payload, payload, 32768);
        window = std::max<std::int64_t>(1, in_flight / size);
    }
};

/// A GPU's slice of the buffer, chunk by chunk.
struct Slice {
    Bytes begin;
    Bytes bytes;

    Slice(const CollectiveRun& run, const Endpoint& gpu)
        : begin(part_begin(run.what.bytes, gpu.id(), run.gpus())),
          bytes(part(run.what.bytes, gpu.id(), run.gpus())) {}

    Transfer chunk(Kind kind, Bytes offset, Bytes size, CounterId answered) const {
        Transfer transfer;
        transfer.kind = kind;
        transfer.multicast = true;
        transfer.bytes = std::min(size, bytes - offset);
        transfer.address = static_cast<std::uint64_t>(begin + offset);
        transfer.answered = answered;
        return transfer;
    }
};

Process load(CollectiveRun& run, Endpoint& gpu) {
    const Chunks chunks(run.machine);
    const Slice slice(run, gpu);
    co_await gpu.delay(run.machine.collective.switch_launch);
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice.bytes; offset += chunks.size) {
        co_await gpu.until(run.gathers() ? kStored : kLoaded, posted - chunks.window + 1);
        gpu.post(slice.chunk(Kind::load, offset, chunks.size, kLoaded));
        ++posted;
    }
    co_await gpu.until(kLoaded, posted);
    run.finish(gpu);
}

Process store(CollectiveRun& run, Endpoint& gpu) {
    const Chunks chunks(run.machine);
    const Slice slice(run, gpu);
    co_await gpu.delay(run.machine.collective.switch_launch);
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice.bytes; offset += chunks.size) {
        if (run.reduces()) co_await gpu.until(kLoaded, posted + 1);
        gpu.post(slice.chunk(Kind::store, offset, chunks.size, kStored));
        ++posted;
    }
    co_await gpu.until(kStored, posted);
    run.finish(gpu);
}

}  // namespace

void spawn_nvls(CollectiveRun& run, Endpoint& gpu) {
    gpu.add_counter("reduced chunks");
    gpu.add_counter("stored chunks");
    if (run.reduces()) gpu.spawn("reduction loads", load(run, gpu));
    if (run.gathers()) gpu.spawn("multicast stores", store(run, gpu));
}

}  // namespace moehub::sim
