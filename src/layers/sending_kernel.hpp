/// A kernel that sends a GPU's rows away: some SMs read each row and store it where it belongs, as
/// fast as an SM does, and stay until the hub has taken in what they stored. A row that lies in L2
/// is read faster; what was evicted since the router read it comes from HBM.
#pragma once
#include "layers/mail.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace moehub::layers {

/// Of rows that were written or read a while ago, the part that is not in L2 any more; `table`:
/// bytes of all of them.
double missed_in_l2(const Gpu& gpu, double table);

struct Sending {
    int sms = 1;
    std::int64_t rows = 0;  ///< in the order in which SMs take them
    double read = 0;        ///< bytes of a row, as it lies in memory
    double stored = 0;      ///< bytes of a row, as it is stored away
    double table = 0;       ///< bytes of all that rows are read from
};

/// `store(i)` stores row i: to others, or to the GPU itself; it returns how many of the stores it
/// posts tell when they are taken in (Transfer::told). Ends when all are.
Process run_sending(MoeLayer& layer, GpuId gpu, Sending sending,
                    std::function<int(std::int64_t)> store);

/// A message, and its rows as they are sent.
struct Outgoing {
    GpuId to = 0;
    std::size_t channel = 0;
    Rows rows;
    Bytes bytes = 0;
};

/// The system's `sending_sms` read the GPU's rows and store them, message after message; a message
/// goes with its last row. One without rows is a flag, which an SM stores beside the others.
Process send_messages(MoeLayer& layer, Mail& mail, GpuId gpu, std::vector<Outgoing> messages);

}  // namespace moehub::layers
