/// Requests in one line: plain stores. The line's head moves on when its channel's staging buffer
/// has room, so a busy uplink holds up all others: head-of-line blocking. Each SM stores one row at
/// a time, so as many rows as there are SMs take turns in the line.
#pragma once
#include "sim/hub/uplinks.hpp"
#include "sim/transfer.hpp"

#include <vector>

namespace moehub::sim {

class SharedFifo {
  public:
    explicit SharedFifo(const Uplinks&) {}

    void post(Fabric& fabric, Uplinks& uplinks, TransferId id);
    Ps run(Fabric& fabric, Uplinks& uplinks, Ps until);
    static constexpr bool kEachByItself = true;  ///< each is taken up as it comes

  private:
    void feed(Fabric& fabric, Uplinks& uplinks);
    bool next_lane(Fabric& fabric);

    TransferId head_ = kNoTransfer;  ///< first that no lane has taken
    TransferId tail_ = kNoTransfer;
    std::vector<TransferId> lanes_;  ///< rows being stored, which take turns in the line
    std::size_t lane_ = 0;           ///< whose turn it is
    Ps departed_ = 0;                ///< when something last left and made room
};

}  // namespace moehub::sim
