/// Machine: GPUs, links, switches, nodes and NICs, as plain values.
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/units.hpp>

#include <string>

namespace moehub {

/// One direction of a connection between two neighbours, and its packet format.
struct LinkSpec {
    double bandwidth = 0;      ///< bytes/s of raw flits, one direction, all parallel lanes together
    Ps latency = 0;            ///< one way, between neighbours (GPU and switch)
    Bytes flit = 16;           ///< unit of transfer and of buffer credits
    Bytes payload = 128;       ///< largest payload of one packet
    int header_flits = 1;      ///< flits of every packet's header
    int ack_flits = 1;         ///< flits of a write acknowledgement; 0: it costs nothing
    int multicast_flits = 1;   ///< extra address flits of an in-switch (multimem) request
    int credit_flits = 0;      ///< flits of the credit update that a link carries every 16 ns; at
                               ///< most a tenth of the link goes to updates
    int request_channels = 8;  ///< virtual channels for requests, chosen by destination;
                               ///< responses have one of their own
    int buffer_flits = 256;    ///< buffer of a virtual channel, on top of the credit round trip
};

enum class NodeTopology {
    switched,  ///< every GPU has a link to every switch of its node
    mesh,      ///< every GPU has a link to every other GPU of its node; no switches
};

/// The GPU's door to the fabric.
struct HubSpec {
    Ps store_latency = 0;     ///< SM store to the hub's egress queue
    Ps write_latency = 0;     ///< hub ingress to memory, until the acknowledgement leaves
    Ps read_latency = 0;      ///< hub ingress to memory and back to the hub's egress (remote load)
    int staging_packets = 8;  ///< packets each (uplink, virtual channel) holds ahead of the wire
};

/// What a switch inside a node has beyond ports, where it multicasts and reduces.
struct SwitchSpec {
    int sum_packets = 1056;  ///< partial sums that a port holds; one more sends the oldest on as it
                             ///< is. As many as a GPU of 132 SMs has loads outstanding at one of
                             ///< four switches: with half of them large all-reduces overflow and
                             ///< miss their published bandwidth by 7 to 10 % (docs/model.md)
};

/// The units that MoE-Hub adds to the hub (docs/moe-hub.md). The paper leaves their sizes open:
/// these are choices, the same for all experiments.
struct MoeHubSpec {
    Bytes store_bytes = 32;        ///< bytes of one store as it leaves an SM: a sector
    int rpm_entries = 64;          ///< lines (packets) in a peer's partition of the RPM; packet
                                   ///< grain: a train enters when its first packet fits
    Ps rpm_timer = 200 * kNs;      ///< time after which a line that is not full goes as it is;
                                   ///< packet grain: a train takes its source column along
    int rat_entries = 16'384;      ///< rows that the RAT remembers
    int rat_banks = 16;            ///< banks of the RAT
    Ps rat_lookup = kNs;           ///< time for which a packet occupies a bank of the RAT
    int dam_entries = 256;         ///< row blocks whose bytes the DAM counts at a time; counters of
                                   ///< further ones lie in memory
    Ps ready_latency = 166 * kNs;  ///< time from an acknowledgement to the thread-block scheduler
};

/// The units that DySHARP adds to SMs, hubs and switches (docs/dysharp.md).
struct DysharpSpec {
    int multimem_entries = 32;   ///< MultimemQ: instructions (512 B each) that wait for their lists
    Ps list_fetch = 20 * kNs;    ///< time of a list of targets from shared memory to the MultimemQ
    int flit_targets = 8;        ///< targets that one extension flit names
    Ps replicate = kNs;          ///< time that trimmed lists add to a packet's way through a switch
    int sum_packets = 512;       ///< partial sums that a switch's port holds (64 KB)
    bool reduce_locally = true;  ///< a GPU adds up what several of its experts made of a token;
                                 ///< false: each result goes to the switch by itself
    int tlb_entries = 512;       ///< entries of the AL TLB
    int tlb_banks = 16;          ///< banks of the AL TLB
    Ps tlb_lookup = kNs;         ///< time for which a packet occupies a bank of the AL TLB
    int ts_entries = 1024;       ///< tiles that the TS table tracks; further ones lie in memory
    int or_entries = 1024;       ///< tokens whose results the OR table counts at a time
    Ps poll = 332 * kNs;         ///< time from a tracker's update to the SM that polls it
};

/// The units that CAIS adds to switches (docs/cais.md).
struct CaisSpec {
    int merge_entries = 320;     ///< lines (packets) that a port's merging table holds: 40 KB
    Ps merge_timeout = 5 * kUs;  ///< time after which an entry goes as it is; coordinated requests
                                 ///< for a line come within 4 us
};

/// What a collective library costs around the wire (NCCL's own tuning constants).
struct CollectiveCosts {
    Ps launch = 0;              ///< time of the call before the first byte and after the last
    Ps hop = 0;                 ///< software hand-over from one ring step to the next
    Ps switch_launch = 0;       ///< launch of in-switch (NVLS) collectives
    int outstanding_loads = 1;  ///< in-switch reduction loads a GPU keeps in flight, in packets
    /// Thread blocks of an in-switch all-reduce; each copies so many bytes/s between the user's
    /// buffer and the one that switches reach, all of it in and all of it out again.
    int switch_channels = 16;
    double channel_copy = 35.4e9;
};

/// How NCCL's blocks hand over what they have stored into another GPU's memory.
struct ProtocolCosts {
    Ps hop = 0;       ///< time that handing over adds to the fabric's
    Ps slice = 0;     ///< time for which a block is busy with handing over, whatever the size
    double rate = 0;  ///< bytes/s of payload that one channel moves
};
/// What NCCL's kernels cost on a card, and TensorRT-LLM's one-shot all-reduce. A machine that says
/// nothing has a Hopper's. Fitted to published times (docs/collectives.md).
struct NcclCosts {
    Ps start = 4'600 * kNs;   ///< launch to first store, and last store to the kernel's end
    Ps blocks = 1'000 * kNs;  ///< more time when several blocks start, and the last ends
    int channels = 24;        ///< channels of a ring: thread blocks
    ProtocolCosts ll{0, 0, 25e9};
    ProtocolCosts ll128{750 * kNs, 0, 10.9e9};
    ProtocolCosts simple{2'900 * kNs, 2'500 * kNs, 18.3e9};
    bool ll128_used = true;     ///< false: NCCL goes from LL to Simple at once
    double int8_sum = 0.875;    ///< share of a channel's rate when it adds up bytes
    int peer_channels = 32;     ///< channels of sends and receives, over all peers
    Ps peer_hop = 3'500 * kNs;  ///< ProtocolCosts::hop of a send by Simple, with its own waits
    double peer_rate = 20e9;    ///< bytes/s of a peer channel
    double peer_copy = 35.4e9;  ///< bytes/s of a peer channel's copy from its buffer to the user's
    Ps switch_start = 13'900 * kNs;  ///< start of an in-switch all-reduce
    Ps switch_pair = 80 * kNs;       ///< more switch_start for each pair of GPUs, counted both ways
    Ps switch_wave = 3'000 * kNs;    ///< time between waves of an in-switch all-reduce's chunks
    /// NCCL's own estimate of in-switch reduction, by which it chooses.
    double switch_rate = 60e9;        ///< most bytes/s of the channel that a GPU heads
    double switch_efficiency = 0.85;  ///< share of switch_rate that is reached
    int net_rings = 8;                ///< between nodes: rings, each through a NIC of every node
    Ps net_hop = 3'000 * kNs;         ///< time that NICs' proxies add to the fabric's
    Ps net_start = 5'000 * kNs;  ///< more start of a call between nodes: proxies take up their work
    Ps one_shot_start = 2'200 * kNs;  ///< start of TensorRT-LLM's one-shot all-reduce
    double one_shot_memory = 2.5e12;  ///< bytes/s at which one-shot buffers are read and cleared
};

struct Machine {
    std::string name;
    std::string title;  ///< one line for `moehub list`
    int nodes = 1;
    int gpus_per_node = 1;
    int max_gpus = 0;  ///< largest size a user may ask for; 0: nodes * gpus_per_node
    NodeTopology topology = NodeTopology::switched;
    int switches = 1;        ///< switches of a node
    int switches_down = 0;   ///< switches of a node out of service, and every GPU's links to them
    bool in_switch = false;  ///< switches multicast and reduce (NVLS)
    SwitchSpec switch_spec;
    std::string gpu_name;  ///< preset the gpu came from
    Gpu gpu;
    double gpu_spread = 0;  ///< share of the clock by which the last GPU is slower than the first
    Ps start_spread = 0;    ///< time by which the last GPU starts a layer later than the first
    LinkSpec link;          ///< inside a node
    HubSpec hub;
    MoeHubSpec moe_hub;
    DysharpSpec dysharp;
    CaisSpec cais;
    LinkSpec nic;          ///< between nodes; bandwidth 0: the machine is one node
    int leaf_nodes = 0;    ///< nodes that a rail's leaf switch joins; 0: all, however many
    int leaf_uplinks = 0;  ///< a leaf's uplinks, each of a NIC's rate; 0: as many as its nodes
    int spines = 0;        ///< spines that each `leaf_nodes` nodes bring; 0: leaves reach every GPU
    Ps spine_latency = 0;  ///< leaf to spine, one way
    bool adaptive_routing = false;  ///< a leaf takes the uplink with the least before it for each
                                    ///< packet; false: one by source and destination
    bool sharp = false;             ///< leaves and spines add up and multicast
    CollectiveCosts collective;
    NcclCosts nccl;

    int gpus() const { return nodes * gpus_per_node; }
};

/// Throws InputError as reading it from a file would: a value outside its limits, or values that do
/// not go together. What is simulated is checked so.
void check(const Machine& machine);

}  // namespace moehub
