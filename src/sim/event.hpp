/// What travels: units on links, and the events that carry them between components.
#pragma once
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace moehub::sim {

inline constexpr Ps kNever = std::numeric_limits<Ps>::max();

/// Index of a component in the engine: GPUs, egresses and ports share one numbering (layout.hpp).
using ComponentId = std::uint32_t;
using GpuId = std::uint16_t;
using TransferId = std::uint32_t;
using PoolId = std::uint32_t;
inline constexpr PoolId kNoPool = std::numeric_limits<PoolId>::max();

enum class Kind : std::uint8_t {
    post,    ///< a program hands a transfer to its egress; never on a wire
    store,   ///< request with payload, answered by an ack
    load,    ///< request without payload, answered by data
    atomic,  ///< request with payload, answered by data
    ack,     ///< response without payload
    data,    ///< response with payload
};
constexpr bool is_response(Kind kind) {
    return kind == Kind::ack || kind == Kind::data;
}

/// Units wait by class: 0 responses, 1 requests.
constexpr std::size_t class_of(Kind kind) {
    return is_response(kind) ? 0 : 1;
}

/// A unit is a packet (packet grain) or a train of packets (row grain). It reaches the next
/// component as a whole, or as the arrival of its first packet and, later, of its last.
enum class Phase : std::uint8_t { whole, head, tail };

/// One packet, or one train of packets of the same transfer. It is copied at every hop, so it is
/// small and aligned, and is changed where it lies: a wide copy of what was just written in pieces
/// stalls the processor.
struct alignas(16) Unit {
    TransferId transfer = 0;
    std::uint32_t index = 0;  ///< which unit of its transfer
    std::uint32_t bytes = 0;  ///< of payload, or asked for
    PoolId hold = kNoPool;    ///< whose credits it occupies until it leaves its buffer
    std::uint16_t flits = 0;  ///< on the wire, headers included
    std::uint16_t packets = 1;
    GpuId src = 0;  ///< sender of this unit
    GpuId dst = 0;
    std::uint8_t plane = 0;  ///< uplink it takes: its switch, or the NIC
    Kind kind = Kind::store;
    Phase phase = Phase::whole;
    bool multicast = false;       ///< to every GPU of src's node, replicated by the switch
    bool gather = false;          ///< response that the switch merges with its peers'
    std::uint8_t unused[3] = {};  ///< so that a copy is two whole registers
};

inline std::uint32_t first_packet_flits(const Unit& unit) {
    return unit.packets == 1 ? unit.flits : (unit.flits + unit.packets - 1) / unit.packets;
}

/// A unit that waits for a link, and since when it may go.
struct Staged {
    Unit unit;
    Ps time = 0;
};

struct Event {
    Unit unit;
    Ps time = 0;
    ComponentId source = 0;
};
static_assert(sizeof(Unit) == 32 && sizeof(Event) == 48);

}  // namespace moehub::sim
