#include "sim/wire.hpp"

#include "sim/credit.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

Wire::Wire(const LinkSpec& spec, double share, std::uint32_t folded)
    : latency(spec.latency),
      flit(spec.flit),
      payload(spec.payload),
      header_flits(static_cast<std::uint32_t>(spec.header_flits)),
      ack_flits(static_cast<std::uint32_t>(spec.ack_flits)),
      multicast_flits(static_cast<std::uint32_t>(spec.multicast_flits)),
      fold(folded) {
    // Credit updates take their share of every link.
    const double lane_flit_ps = static_cast<double>(flit) * share / spec.bandwidth * 1e12;
    const double updates = std::min(0.1, spec.credit_flits * lane_flit_ps / kCreditUpdate);
    const double flit_ps = lane_flit_ps / folded / (1.0 - updates);
    flit_time = static_cast<std::uint64_t>(std::llround(flit_ps * 65536.0));
    if (flit_time == 0) flit_time = 1;
    full_packet_flits = flits(Kind::store, payload, 1, 0);
    const std::uint32_t longest = std::max(full_packet_flits + multicast_flits, ack_flits);
    largest_train = 65535 / std::max(longest, 1u) * payload;
    // A buffer holds what a full-rate sender has in flight until the first credit is back.
    const double round_trip = static_cast<double>(2 * latency) / flit_ps + 2.0 * full_packet_flits;
    buffer_flits = static_cast<std::int64_t>(std::ceil(round_trip)) +
                   static_cast<std::int64_t>(spec.buffer_flits) * folded;
}

}  // namespace moehub::sim
