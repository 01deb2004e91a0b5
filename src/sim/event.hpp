/// What travels: trains on links, and the events that carry them between components.
#pragma once
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace moehub::sim {

inline constexpr Ps kNever = std::numeric_limits<Ps>::max();

/// Index of a component in the engine: GPUs, egresses and switches share one numbering
/// (topology.hpp).
using ComponentId = std::uint32_t;
using GpuId = std::uint16_t;
using TransferId = std::uint32_t;
using PoolId = std::uint32_t;
inline constexpr PoolId kNoPool = std::numeric_limits<PoolId>::max();
using GroupId = std::uint32_t;  ///< GPUs that a switch copies to (switch/group_table.hpp)
inline constexpr GroupId kNoGroup = std::numeric_limits<GroupId>::max();
using SumId = std::uint32_t;  ///< index in the fabric's SumStore (sums.hpp)
inline constexpr SumId kNoSum = std::numeric_limits<SumId>::max();

enum class EventKind : std::uint8_t {
    post,    ///< a program hands a transfer to its egress; never on a wire
    store,   ///< request with payload, answered by an ack
    load,    ///< request without payload, answered by data
    atomic,  ///< request with payload, answered by data
    ack,     ///< response without payload
    data,    ///< response with payload
    reduce,  ///< request with payload that is added to sums at its target, answered by an ack
    meet,    ///< request without payload to the switch itself, answered by an ack when all came
};
constexpr bool is_response(EventKind kind) {
    return kind == EventKind::ack || kind == EventKind::data;
}

/// Requests that bring something into memory, and are acknowledged.
constexpr bool is_write(EventKind kind) {
    return kind == EventKind::store || kind == EventKind::reduce;
}

/// Trains wait by class: 0 responses, 1 requests.
constexpr std::size_t class_of(EventKind kind) {
    return is_response(kind) ? 0 : 1;
}

/// A train reaches the next component as a whole, or as the arrival of its first packet and, later,
/// of its last.
enum class Phase : std::uint8_t { whole, head, tail };

/// Packets of one transfer that travel as one: a single one in packet grain, more in row grain. It
/// is copied at every hop, so it is
/// small and aligned, and is changed where it lies: a wide copy of what was just written in pieces
/// stalls the processor.
struct alignas(16) Train {
    TransferId transfer = 0;
    std::uint32_t index = 0;  ///< which train of its transfer
    std::uint32_t bytes = 0;  ///< payload bytes, carried or asked for
    PoolId hold = kNoPool;    ///< pool whose credits it occupies until it leaves its buffer
    std::uint16_t flits = 0;  ///< flits on the wire, headers included
    std::uint16_t packets = 1;
    GpuId src = 0;              ///< sender of this train
    GpuId dst = 0;              ///< receiver; of a multicast its sender
    SumId sum = kNoSum;         ///< sums of the rows that are added up
    std::uint16_t answers = 1;  ///< GPUs whose answers (of a reduce: sums) it stands for
    std::uint8_t plane = 0;     ///< uplink it takes: its switch, or the NIC
    EventKind kind : 3 = EventKind::store;
    Phase phase : 2 = Phase::whole;
    bool multicast : 1 = false;  ///< it goes to its transfer's group, replicated by the switch
    bool gather : 1 = false;     ///< response that the switch merges with its peers'
    bool merge : 1 = false;      ///< the home's merge unit in the switch takes it (merge_unit.hpp)
};

inline std::uint32_t first_packet_flits(const Train& train) {
    return train.packets == 1 ? train.flits : (train.flits + train.packets - 1) / train.packets;
}

/// A train that waits for a link, and since when it may go.
struct Staged {
    Train train;
    Ps time = 0;
};

struct Event {
    Train train;
    Ps time = 0;
    ComponentId source = 0;
};
static_assert(sizeof(Train) == 32 && sizeof(Event) == 48);

}  // namespace moehub::sim
