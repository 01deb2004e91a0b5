/// What a transfer carries beside bytes: rows, so that a receiver knows of a row when its bytes
/// have arrived and not before; and counts of rows, which are told in the same way.
#pragma once
#include "sim/event.hpp"

#include <moehub/program.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace moehub::sim {

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
    MessageId reserve();
    MessageId add(Message message);
    void write(MessageId id, Message message);
    /// Rows, or room for them.
    bool has_rows(MessageId id) const {
        return !messages_[id].written || !messages_[id].message.rows.empty();
    }
    std::span<const CarriedRow> rows(MessageId id) const { return messages_[id].message.rows; }
    bool written(MessageId id) const { return messages_[id].written; }
    /// A copy of some rows; `count` 0: of all.
    Message part(MessageId id, std::size_t first, std::size_t count) const;
    Message take(MessageId id);

  private:
    struct Kept {
        Message message;
        bool written = false;
    };
    std::vector<Kept> messages_;
    std::vector<MessageId> free_;
};

}  // namespace moehub::sim
