/// What a program asks the fabric to move, what that carries, and what tests break of it.
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"

#include <moehub/program.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace moehub::sim {

/// What a transfer carries beside bytes: rows, so that a receiver knows of a row when its bytes
/// have arrived and not before; and counts of rows, which are told in the same way.

using MessageId = std::uint32_t;
inline constexpr MessageId kNoMessage = 0xffffffff;

struct Message {
    Rows rows;
    std::vector<std::int64_t> counts;
};

/// A message that has arrived.
struct Received {
    GpuId from = 0;
    TransferId carrier = 0;  ///< smaller was sent before
    Message message;
};

/// The messages of all transfers. One that is to be loaded by others lies here from when it is
/// reserved, as memory does, and can be read once it is written.
class MessageStore {
  public:
    MessageId reserve() { return messages_.take(); }
    MessageId add(Message message) {
        const MessageId id = reserve();
        write(id, std::move(message));
        return id;
    }
    void write(MessageId id, Message message) { messages_[id] = {std::move(message), true}; }
    /// Rows, or room for them.
    bool has_rows(MessageId id) const {
        return !messages_[id].written || !messages_[id].message.rows.empty();
    }
    std::span<const CarriedRow> rows(MessageId id) const { return messages_[id].message.rows; }
    bool written(MessageId id) const { return messages_[id].written; }
    /// A copy of some rows; `count` 0: of all.
    Message part(MessageId id, std::size_t first, std::size_t count) const {
        const Rows& rows = messages_[id].message.rows;
        if (count == 0) return {rows, {}};
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
        return {Rows(begin, begin + static_cast<std::ptrdiff_t>(count)), {}};
    }
    Message take(MessageId id) {
        messages_.give_back(id);
        return std::exchange(messages_[id], {}).message;
    }

  private:
    struct Kept {
        Message message;
        bool written = false;
    };
    Reused<Kept> messages_;
};

/// A transfer: what a program asks the fabric to move. Its egress cuts it into trains lazily.

using CounterId = std::uint32_t;
inline constexpr CounterId kNoCounter = 0xffffffff;
inline constexpr TransferId kNoTransfer = 0xffffffff;
using RegionId = std::uint32_t;
inline constexpr RegionId kNoRegion = 0xffffffff;

/// Which row of a region in dst's memory a transfer writes or reads. A conventional transfer may go
/// on into the rows that follow. A reduce reads `region`, sums at its sender that do not change any
/// more, and adds to `into`, sums at dst: the same row and offset in both.
struct RowTarget {
    RegionId region = kNoRegion;
    std::uint32_t row = 0;      ///< RowID where dst's AAU allocates, else the row's number
    std::uint32_t offset = 0;   ///< offset of its first byte within the row
    bool allocate = false;      ///< `st.rowsp`; false: a conventional store
    bool low_priority = false;  ///< `.nop`
    std::uint16_t merge = 0;    ///< ld.cais, red.cais: requests for each line that a switch merges;
                                ///< meet: GPUs that must come; 0: an ordinary request
    std::uint64_t tag = 0;      ///< what the source column says; of a load of rows: how many, from
                                ///< `row` on, 0: all
    const double* numbers = nullptr;  ///< store: one per line, where rows carry numbers
    RegionId into = kNoRegion;        ///< load: sums at the asker that take in what comes back;
                                      ///< reduce: sums at dst
    GroupId list = kNoGroup;  ///< the regions that it goes to, or reads from, instead of one
};

/// A meet is for nobody's memory: its dst is its sender, and the switches that its lines lie on
/// answer it, each when as many GPUs as `target.merge` says have met at the line's address. So many
/// bytes as there are switches times a packet's payload, at a multiple of that, visit each switch
/// once.
///
/// Millions wait at once, so what sending needs lies together, in the first cache line.
struct alignas(64) Transfer {
    EventKind kind = EventKind::store;  ///< any request
    bool faulty = false;   ///< its contents do not arrive as they should (FabricOptions::fault)
    GpuId src = 0;         ///< GPU that asks
    GpuId dst = 0;         ///< GPU whose memory it is about; ignored for a group or a meet
    bool from_sm = false;  ///< an SM has what is stored: the sender's memory is not read
    bool told = false;     ///< the sender is told when the hub has taken it in from the SM
    Bytes bytes = 0;
    std::uint64_t address = 0;        ///< decides, with the offset, the switch
    CounterId arrived = kNoCounter;   ///< counter at dst (load: src; group: each of it): one more
                                      ///< when all bytes are in memory
    CounterId answered = kNoCounter;  ///< counter at src: one more when all responses are back
    GroupId group = kNoGroup;  ///< store: it goes to all GPUs of the group; load: it is reduced
                               ///< over them; atomic: leaves and spines add it up
    MessageId message = kNoMessage;  ///< store: rows it carries; load: rows it reads

    // Progress, kept by the fabric; more of it below.
    Ps ready = 0;                   ///< when it reached the egress
    TransferId next = kNoTransfer;  ///< transfer behind this one in its egress queue
    std::uint32_t issued = 0;       ///< trains that left the shared FIFO

    RowTarget target = {};

    Bytes delivered = 0;  ///< bytes put into memory, over all of a group
    Bytes completed = 0;  ///< bytes answered, over all of a group
    Ps delivered_at = kNever;
    Ps completed_at = kNever;

    bool multicast() const { return group != kNoGroup && kind != EventKind::atomic; }
    /// Whether leaves and spines add it up over its group, for each of it: an atomic.
    bool added_in_network() const { return group != kNoGroup && kind == EventKind::atomic; }
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

/// A fault for tests: what one transfer carries is lost, comes twice, or comes late, while all
/// counts and acknowledgements say that it has arrived. Whatever the system, its check must notice.
struct Fault {
    enum class What { none, drop, duplicate, delay };
    What what = What::none;
    std::int64_t transfer = 0;     ///< the n-th of those that carry rows
    Ps late = 0;                   ///< time by which a delay makes it late
    std::int64_t* seen = nullptr;  ///< counts those that carry rows, where set
};

}  // namespace moehub::sim
