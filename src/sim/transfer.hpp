/// A transfer: what a program asks the fabric to move. Its egress cuts it into units lazily.
#pragma once
#include "sim/event.hpp"

#include <memory>
#include <vector>

namespace moehub::sim {

using CounterId = std::uint32_t;
inline constexpr CounterId kNoCounter = 0xffffffff;
inline constexpr TransferId kNoTransfer = 0xffffffff;
using RegionId = std::uint32_t;
inline constexpr RegionId kNoRegion = 0xffffffff;

/// Which row of a region in dst's memory a transfer writes.
struct RowTarget {
    RegionId region = kNoRegion;
    std::uint32_t row = 0;            ///< RowID where dst's AAU allocates the place, else the place
    std::uint32_t offset = 0;         ///< of its first byte within the row
    bool allocate = false;            ///< `st.rowsp`; false: a conventional store
    bool low_priority = false;        ///< `.nop`
    std::uint64_t tag = 0;            ///< what the source column says
    const double* numbers = nullptr;  ///< one per line, where rows carry numbers
};

/// Millions wait at once, so what sending needs lies together, in the first cache line.
struct alignas(64) Transfer {
    Kind kind = Kind::store;  ///< store, load or atomic
    bool multicast = false;   ///< store: to all GPUs of the node; load: reduced over all of them
    GpuId src = 0;            ///< who asks
    GpuId dst = 0;            ///< whose memory; ignored for multicast
    Bytes bytes = 0;
    std::uint64_t address = 0;        ///< decides, with the offset, the switch
    CounterId arrived = kNoCounter;   ///< at dst (load: src; multicast: who is last), one
                                      ///< more when all bytes are in memory
    CounterId answered = kNoCounter;  ///< at src, one more when all responses are back

    // Progress, kept by the fabric; more of it below.
    Ps ready = 0;                   ///< when it reached the egress
    TransferId next = kNoTransfer;  ///< behind this one in its egress queue
    std::uint32_t issued = 0;       ///< units that left the shared FIFO

    RowTarget target;  ///< where it writes a row of a region

    Bytes delivered = 0;  ///< into memory
    Bytes completed = 0;  ///< answered
    Ps delivered_at = kNever;
    Ps completed_at = kNever;
};
static_assert(sizeof(Transfer) == 128);

/// All transfers of a run, by id. In blocks, since there may be a gigabyte of them: a vector that
/// grows would for a while need three times as much, and copy it.
class TransferStore {
  public:
    Transfer& operator[](TransferId id) { return blocks_[id / kBlock][id % kBlock]; }
    const Transfer& operator[](TransferId id) const { return blocks_[id / kBlock][id % kBlock]; }
    std::size_t size() const { return size_; }
    TransferId add(const Transfer& transfer) {
        if (size_ % kBlock == 0) blocks_.emplace_back(std::make_unique<Transfer[]>(kBlock));
        const auto id = static_cast<TransferId>(size_++);
        (*this)[id] = transfer;
        return id;
    }

  private:
    static constexpr std::size_t kBlock = 1024;

    std::vector<std::unique_ptr<Transfer[]>> blocks_;
    std::size_t size_ = 0;
};

}  // namespace moehub::sim
