/// A transfer: what a program asks the fabric to move. Its egress cuts it into units lazily.
#pragma once
#include "sim/event.hpp"

namespace moehub::sim {

using CounterId = std::uint32_t;
inline constexpr CounterId kNoCounter = 0xffffffff;
inline constexpr TransferId kNoTransfer = 0xffffffff;
using RegionId = std::uint32_t;
inline constexpr RegionId kNoRegion = 0xffffffff;

/// Which row of a region in dst's memory a transfer writes.
struct RowTarget {
    RegionId region = kNoRegion;
    std::uint32_t row = 0;          ///< RowID where dst's AAU allocates the place, else the place
    std::uint32_t offset = 0;       ///< of its first byte within the row
    bool allocate = false;          ///< `st.rowsp`; false: a conventional store
    bool low_priority = false;      ///< `.nop`
    std::uint64_t tag = 0;          ///< what the source column says
    const double* numbers = nullptr;  ///< one per line, where rows carry numbers
};

struct Transfer {
    Kind kind = Kind::store;  ///< store, load or atomic
    bool multicast = false;   ///< store: to all GPUs of the node; load: reduced over all of them
    GpuId src = 0;            ///< who asks
    GpuId dst = 0;            ///< whose memory; ignored for multicast
    Bytes bytes = 0;
    std::uint64_t address = 0;        ///< decides, with the offset, the switch
    CounterId arrived = kNoCounter;   ///< at dst (load: src; multicast: who is last), one
                                      ///< more when all bytes are in memory
    CounterId answered = kNoCounter;  ///< at src, one more when all responses are back
    RowTarget target;                 ///< where it writes a row of a region

    // Progress, kept by the fabric.
    Ps ready = 0;                   ///< when it reached the egress
    std::uint32_t issued = 0;       ///< units that left the shared FIFO
    Bytes delivered = 0;            ///< into memory
    Bytes completed = 0;            ///< answered
    TransferId next = kNoTransfer;  ///< behind this one in its egress queue
    Ps delivered_at = kNever;
    Ps completed_at = kNever;
};

}  // namespace moehub::sim
