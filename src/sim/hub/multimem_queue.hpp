/// MultimemQ, beside a GPU's load/store queue (DySHARP): an instruction with a list of targets
/// stays in one of its entries until the list has been fetched, so that
///     instructions per second = entries / time of a fetch.
#pragma once
#include <moehub/machine.hpp>

#include <algorithm>
#include <cstdint>

namespace moehub::sim {

class MultimemQueue {
  public:
    /// So many instructions of one row, at `now`; returns when the last one's list is there.
    Ps pass(const DysharpSpec& spec, std::int64_t instructions, Ps now) {
        const Ps rounds = (instructions - 1) / spec.multimem_entries;
        const Ps start = std::max(now, free_at_);
        free_at_ = start + instructions * spec.list_fetch / spec.multimem_entries;
        return start + (rounds + 1) * spec.list_fetch;
    }

  private:
    Ps free_at_ = 0;
};

}  // namespace moehub::sim
