// TensorRT-LLM's one-shot all-reduce: every GPU stores its whole buffer to all others, who see by
// the data itself that it has come (no number is the one that marks an empty place), add up n
// buffers of their own memory, and clear those of the call before:
//
//     time = start + (n − 1) · bytes / link + 2n · bytes / memory
#include "sim/collective/nccl.hpp"

namespace moehub::sim {

using Count = Communicator::Count;

Process one_shot(Communicator& all, GpuId gpu, Bytes bytes) {
    const std::uint32_t n = all.size();
    const std::uint32_t rank = all.rank(gpu);
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.nccl().one_shot_start);
    for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t peer = (rank + i) % n;
        Transfer transfer;
        transfer.dst = all.member(peer);
        transfer.bytes = bytes;
        transfer.address = (std::uint64_t{peer} << 48) + (std::uint64_t{rank} << 40);
        transfer.arrived = all.counter(transfer.dst, Count::gathered, gpu);
        all.endpoint(gpu).post(transfer);
    }
    co_await all.until(gpu, Count::gathered, n - 1);
    co_await all.endpoint(gpu).delay(
        work_time(static_cast<double>(bytes), 1, all.nccl().one_shot_memory / (2.0 * n)));
}

}  // namespace moehub::sim
