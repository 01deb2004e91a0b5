// Direct: every GPU sends each peer its part at once; all_reduce reduces first, then gathers.
#include "sim/collective/run.hpp"

namespace moehub::sim {
namespace {

enum Counters : CounterId { kReduced, kGathered, kAnswered };

/// To every peer its part of the buffer, or to all of them this GPU's own. Returns how many.
std::int64_t send_to_peers(const CollectiveRun& run, Endpoint& gpu, bool own_part,
                           CounterId arrived) {
    std::int64_t sent = 0;
    for (std::uint32_t i = 1; i < run.gpus(); ++i) {
        const std::uint32_t peer = (gpu.id() + i) % run.gpus();
        const std::uint32_t which = own_part ? gpu.id() : peer;
        Transfer transfer;
        transfer.dst = static_cast<GpuId>(peer);
        transfer.bytes = part(run.what.bytes, which, run.gpus());
        // The peer's buffer, at the place of the part.
        transfer.address = (std::uint64_t{peer} << 40) + static_cast<std::uint64_t>(part_begin(
                                                             run.what.bytes, gpu.id(), run.gpus()));
        transfer.arrived = arrived;
        transfer.answered = kAnswered;
        if (transfer.bytes == 0) continue;
        gpu.post(transfer);
        ++sent;
    }
    return sent;
}

Process exchange(CollectiveRun& run, Endpoint& gpu) {
    const std::uint32_t n = run.gpus();
    const Bytes bytes = run.what.bytes;
    co_await gpu.delay(run.machine.collective.launch);
    std::int64_t sent = 0;
    if (run.what.op != Collective::Op::all_gather) {
        sent += send_to_peers(run, gpu, false, kReduced);
        co_await gpu.until(kReduced, part(bytes, gpu.id(), n) > 0 ? n - 1 : 0);
    }
    if (run.gathers()) {
        if (run.reduces()) co_await gpu.delay(run.machine.collective.hop);
        sent += send_to_peers(run, gpu, true, kGathered);
        std::int64_t expected = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            if (i != gpu.id() && part(bytes, i, n) > 0) ++expected;
        }
        co_await gpu.until(kGathered, expected);
    }
    co_await gpu.until(kAnswered, sent);
    run.finish(gpu);
}

}  // namespace

void spawn_direct(CollectiveRun& run, Endpoint& gpu) {
    for (const char* name : {"parts to reduce", "parts to gather", "acknowledged parts"}) {
        gpu.add_counter(name);
    }
    gpu.spawn("direct exchange", exchange(run, gpu));
}

}  // namespace moehub::sim
