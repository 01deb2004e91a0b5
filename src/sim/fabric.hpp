/// The fabric: all components of a machine, wired up, and the engine that runs them.
///
///     Fabric fabric(machine, {.grain = Grain::packet});
///     fabric.gpu(0).spawn("sender", program(fabric.gpu(0)));
///     fabric.run();
///
/// Nothing is global: any number of fabrics run side by side.
#pragma once
#include "sim/endpoint.hpp"
#include "sim/engine.hpp"
#include "sim/hub/egress.hpp"
#include "sim/sums.hpp"
#include "sim/switch/group_table.hpp"
#include "sim/switch/switch.hpp"
#include "sim/topology.hpp"
#include "sim/transfer.hpp"
#include "sim/wire.hpp"

#include <moehub/collective.hpp>
#include <moehub/layer.hpp>
#include <moehub/machine.hpp>

#include <memory>
#include <stdexcept>
#include <vector>

namespace moehub::sim {

/// How requests wait for a GPU's uplinks (egress.hpp).
enum class Queueing {
    per_peer,     ///< a queue per peer without limit: a library that paces each peer's channel
    shared_fifo,  ///< one line for all requests: plain stores
    rpm,          ///< MoE-Hub's Runtime Packet Manager (hub/rpm.hpp)
};

struct FabricOptions {
    Grain grain = Grain::row;
    Bytes train = 65536;  ///< row grain: largest payload of one train
    Bytes nic_train = 0;  ///< row grain: largest payload that a NIC sends as one, whole from hop to
                          ///< hop; 0: a packet
    Queueing queueing = Queueing::per_peer;
    Bytes packet = 0;  ///< largest payload inside a node; 0: the link's
    Scheme scheme = Scheme::windows;
    bool slow_ingress = false;    ///< what arrives may have to wait at a hub, for its memory or AAU
    bool separate_loads = false;  ///< per_peer: a peer's loads and other requests take turns, each
                                  ///< in a queue of their own
    Fault fault;                  ///< what tests break
};

/// Payload of a packet inside a node: without an RPM to merge them, stores travel as they leave the
/// SMs; `packet` as in FabricOptions.
Bytes line_bytes(const Machine& machine, Queueing queueing, Bytes packet);

/// The events ran out while programs were still waiting; the text names them.
class Deadlock : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// When the first and the last packet of a train reach the next component, and who sent it.
struct Flight {
    Ps head;
    Ps tail;
    ComponentId source;
};

class Recorder;

class Fabric {
  public:
    Fabric(const Machine& machine, const FabricOptions& options);
    Fabric(const Fabric&) = delete;  // its components refer to it
    ~Fabric();

    /// Runs until nothing is left to do. Throws Deadlock when programs still wait, or a transfer
    /// was never answered.
    void run();

    /// Has what happens recorded from now on; the recorder must outlive the run.
    void record(Recorder& recorder);
    Recorder* recorder() const { return recorder_; }  ///< null where nobody records

    /// Ends all programs where they stand: for owners of what programs use, when they go first.
    void drop_programs();

    Endpoint& gpu(std::uint32_t id) { return endpoints_[id]; }
    std::vector<GpuId> all_gpus() const;
    const Egress& egress(std::uint32_t gpu) const { return egresses_[gpu]; }
    std::span<const Switch> switches() const { return switches_; }
    const Transfer& transfer(TransferId id) const { return transfers_[id]; }
    std::size_t transfers() const { return transfers_.size(); }

    /// Every direction of every link.
    std::vector<LinkUse> links() const;
    GatherStats gather_stats() const;         ///< sum over all switches
    MergeStats merge_stats() const;           ///< sum over all switches
    GroupSyncStats group_sync_stats() const;  ///< sum over all switches

    // Totals over the machine.
    Bytes wire_bytes_up() const;    ///< GPUs to switches inside nodes, and into NICs
    Bytes wire_bytes_down() const;  ///< switches to GPUs inside nodes, and out of NICs
    Bytes payload_received() const;
    std::int64_t packets_received() const;  ///< packets that carry payload or ask for it
    std::int64_t events() const { return engine_.events(); }

    // What components call.
    const Machine& machine() const { return machine_; }
    const FabricOptions& options() const { return options_; }
    const Topology& topology() const { return topology_; }
    std::uint32_t request_channels(std::uint32_t uplink) const;
    /// Packets of partial sums that a switch's port has room for, of a group's kind.
    std::int64_t sum_packets(GroupId group) const {
        const int packets = groups_.is_list(group) ? machine_.dysharp.sum_packets
                                                   : machine_.switch_spec.sum_packets;
        return std::int64_t{packets} * link_.fold;
    }
    /// Packets of requests that a port's merge unit has room for.
    std::int64_t merge_packets() const {
        return std::int64_t{machine_.cais.merge_entries} * link_.fold;
    }
    /// What each packet of an in-switch request has beyond its header: an address flit, or those of
    /// its list.
    std::uint32_t multicast_flits(GroupId group) const {
        return groups_.is_list(group) ? list_flits(groups_.goals(group)) : link_.multicast_flits;
    }
    std::uint32_t list_flits(std::size_t goals) const {
        const auto each = static_cast<std::size_t>(machine_.dysharp.flit_targets);
        return static_cast<std::uint32_t>((goals + each - 1) / each);
    }
    /// Extra latency of a packet through a switch that trims its list, beyond that of others.
    Ps replication(const Train& train) const {
        const bool list = train.multicast && groups_.is_list(transfers_[train.transfer].group);
        return list ? machine_.dysharp.replicate : 0;
    }
    const Wire& wire_of_uplink(std::uint32_t uplink) const {
        return topology_.is_nic(uplink) ? nic_ : link_;
    }
    const Wire& link() const { return link_; }
    const Wire& wire_of_port(SwitchId number, std::uint32_t port) const;
    // A link into a GPU has credits where its hub may be slow; where it takes in at once what
    // arrives, a buffer that covers the round trip never makes anyone wait. In row grain a switch's
    // ports have none: what a slow hub has not taken in yet lies there.
    bool uplink_has_credits(std::uint32_t uplink) const {
        return topology_.is_nic(uplink) || !topology_.mesh || options_.slow_ingress;
    }
    /// Tells the sender of a store that its hub has taken it in, at `now`.
    void tell_taken_in(TransferId id, Ps now);
    PoolId add_pool(ComponentId owner, const Wire& wire);
    CreditPool& pool(PoolId id) { return pools_[id]; }
    /// Lets `copies` replicas of a train hold its credits together, until the last one leaves.
    PoolId share_hold(const Train& train, std::uint32_t copies);
    /// A train left the buffer whose credits it held.
    void release(PoolId hold, Ps left, std::int64_t flits) {
        if (hold == kNoPool) return;
        if ((hold & kSharedBit) != 0 && !release_shared(hold, left, flits)) return;
        CreditPool& pool = pools_[hold];
        const Ps usable = pool.give(left, flits);
        if (pool.wanted()) engine_.wake(pool.owner(), usable);
    }

    GroupTable& groups() { return groups_; }
    const GroupTable& groups() const { return groups_; }
    SumStore& sums() { return sums_; }
    MessageStore& messages() { return messages_; }
    /// How many GPUs answer a transfer.
    std::uint32_t answers(const Transfer& transfer) const {
        return transfer.multicast()
                   ? static_cast<std::uint32_t>(groups_.members(transfer.group).size())
                   : 1;
    }

    TransferId add_transfer(const Transfer& transfer);
    Transfer& transfer(TransferId id) { return transfers_[id]; }
    /// Has the processor fetch what will be needed soon: transfers lie all over the memory.
    void prefetch(TransferId id) const {
        const Transfer& transfer = transfers_[id];
        __builtin_prefetch(&transfer);
        __builtin_prefetch(&transfer.delivered);
    }
    // A transfer is cut into trains: single packets, or several. A network packet of some KiB is
    // a train already, and stays whole in both grains unless `nic_train` says otherwise.
    Bytes train_bytes(const Wire& wire) const {
        if (options_.grain == Grain::packet) return wire.payload;
        if (&wire == &link_) return train_;
        return std::max(options_.nic_train / wire.payload, Bytes{1}) * wire.payload;
    }
    std::uint32_t trains(const Transfer& transfer, const Wire& wire) const {
        const Bytes size = train_bytes(wire);
        return static_cast<std::uint32_t>((transfer.bytes + size - 1) / size);
    }
    std::uint64_t first_line(const Transfer& transfer, const Wire& wire) const {
        return transfer.address / static_cast<std::uint64_t>(wire.payload);
    }
    /// A train of a reduce gets what its sender's sums say then.
    void cut(Train& train, TransferId id, const Wire& wire, std::uint32_t index);

    Train& push(ComponentId target, const Train& train, Ps time, ComponentId source) {
        return engine_.push(target, time, source, train);
    }
    /// A response for `gpu` to send from `time` on, to be filled in by the caller. Hub ingress and
    /// egress are one piece of hardware, so no event is needed.
    Train& answer(GpuId gpu, std::uint32_t uplink, Ps time) {
        engine_.wake(topology_.egress(gpu), time);
        return egresses_[gpu].add_response(uplink, time);
    }
    /// Sends a copy of a train, or a packet, into a wire: as head and tail where it is a train and
    /// the next component is a switch.
    void send_train(ComponentId target, const Train& train, PoolId hold, const Flight& flight);

    /// Runs a component, for the engine.
    Ps run(ComponentId component, std::span<const Event> events, Ps until);

  private:
    struct Shared {  // a hold that several replicas have together
        PoolId pool;
        std::uint32_t copies;
        Ps latest;
        std::int64_t flits;  ///< flits that the replicas hold, however long each is
    };
    static constexpr PoolId kSharedBit = 0x80000000;

    void check_list(const Transfer& transfer) const;
    void check_merging(const Transfer& transfer) const;
    bool merged(const Transfer& transfer) const;
    /// True when the last replica left; then `hold` is the pool and `left` the latest departure.
    bool release_shared(PoolId& hold, Ps& left, std::int64_t& flits);

    Machine machine_;
    FabricOptions options_;
    Topology topology_;
    Wire link_;
    Bytes train_;  ///< largest payload of one train, in whole packets
    Wire nic_;
    Wire spine_;
    Engine engine_;
    Recorder* recorder_ = nullptr;
    std::vector<CreditPool> pools_;
    Reused<Shared> shared_;
    TransferStore transfers_;
    std::vector<Egress> egresses_;
    std::vector<Switch> switches_;
    GroupTable groups_;
    SumStore sums_;
    MessageStore messages_;
    std::int64_t carriers_ = 0;  ///< transfers with rows so far
    std::vector<Endpoint> endpoints_;
};

}  // namespace moehub::sim
