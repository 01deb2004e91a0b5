#include "sim/message.hpp"

#include <utility>

namespace moehub::sim {

MessageId MessageStore::reserve() {
    if (free_.empty()) {
        free_.push_back(static_cast<MessageId>(messages_.size()));
        messages_.emplace_back();
    }
    const MessageId id = free_.back();
    free_.pop_back();
    return id;
}

MessageId MessageStore::add(Message message) {
    const MessageId id = reserve();
    write(id, std::move(message));
    return id;
}

void MessageStore::write(MessageId id, Message message) {
    messages_[id] = {std::move(message), true};
}

Message MessageStore::part(MessageId id, std::size_t first, std::size_t count) const {
    const Rows& rows = messages_[id].message.rows;
    if (count == 0) return {rows, {}};
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    return {Rows(begin, begin + static_cast<std::ptrdiff_t>(count)), {}};
}

Message MessageStore::take(MessageId id) {
    free_.push_back(id);
    return std::exchange(messages_[id], {}).message;
}

}  // namespace moehub::sim
