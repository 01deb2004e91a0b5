#include "sim/hub/multimem.hpp"

#include <stdexcept>

namespace moehub::sim {

void OrTable::expect(std::uint32_t token, std::uint32_t experts) {
    if (experts == 0 || !counts_.try_emplace(token, Count{experts, 0, false, false}).second)
        throw std::logic_error("OR table: a token is expected twice, or of no expert");
}

std::optional<Ps> OrTable::add(std::uint32_t token, Ps now) {
    const auto found = counts_.find(token);
    if (found == counts_.end())
        throw std::logic_error("OR table: an expert is through with a token that nobody expects");
    Count& count = found->second;
    ++stats_.updates;
    count.latest = std::max(count.latest, count.held ? now : hold(token, count, now));
    if (--count.missing > 0) return std::nullopt;
    const Ps ready = count.latest;
    ++stats_.ready;
    --used_;
    counts_.erase(found);
    return ready;
}

/// Makes room for a count; returns when it can be changed.
Ps OrTable::hold(std::uint32_t token, Count& count, Ps now) {
    while (used_ >= entries_) {
        const auto oldest = counts_.find(held_.front());
        held_.pop_front();
        if (oldest == counts_.end() || !oldest->second.held) continue;  // ready since
        oldest->second.held = false;
        oldest->second.spilled = true;
        --used_;
    }
    count.held = true;
    held_.push_back(token);
    ++used_;
    if (!count.spilled) return now;
    ++stats_.restored;
    return now + restore_;
}

}  // namespace moehub::sim
