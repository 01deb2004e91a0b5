/// A link's numbers as the simulator uses them: exact flit counts and picoseconds.
#pragma once
#include "sim/event.hpp"

#include <moehub/machine.hpp>

#include <cstdint>

namespace moehub::sim {

struct Wire {
    std::uint64_t flit_time = 0;  ///< picoseconds in 48.16 fixed point
    Ps latency = 0;
    Bytes flit = 16;
    Bytes payload = 128;  ///< of a full packet
    std::uint32_t header_flits = 1;
    std::uint32_t ack_flits = 1;
    std::uint32_t multicast_flits = 1;
    std::uint32_t full_packet_flits = 9;
    std::int64_t buffer_flits = 0;  ///< per virtual channel, credit round trip included

    Wire() = default;
    /// `share`: how many parallel links divide the bandwidth; `folded`: how many of them this one
    /// wire stands for (row grain folds all planes into one).
    Wire(const LinkSpec& spec, double share, std::uint32_t folded);

    Bytes largest_train = 0;  ///< payload of the longest train whose flits can be counted
    std::uint32_t fold = 1;   ///< parallel links this one stands for

    Ps serialise(std::uint64_t flits) const {
        return static_cast<Ps>((flits * flit_time + 0x8000) >> 16);
    }
    /// A packet takes one of the folded links, so its own time on the wire is longer than its
    /// share of the whole: by this much.
    Ps lane_extra(std::uint64_t packet_flits) const { return (fold - 1) * serialise(packet_flits); }
    std::uint16_t packets(Bytes bytes) const {
        if (bytes == payload) return 1;
        return static_cast<std::uint16_t>((bytes + payload - 1) / payload);
    }
    /// Flits of a train of `packets` packets that carries (or, for a load, asks for) `bytes`;
    /// `more`: of each packet, beyond its header.
    std::uint16_t flits(Kind kind, Bytes bytes, std::uint32_t packets, std::uint32_t more) const {
        if (kind == Kind::ack) return static_cast<std::uint16_t>(packets * ack_flits);
        const std::uint32_t header = packets * (header_flits + more);
        // Where packets have no headers, a request is still something: a flit.
        if (kind == Kind::load || kind == Kind::meet) {
            return static_cast<std::uint16_t>(header > 0 ? header : 1);
        }
        // All packets but the last are full, and a full one is whole flits.
        return static_cast<std::uint16_t>(header + (bytes + flit - 1) / flit);
    }
};

}  // namespace moehub::sim
