/// System: how a MoE layer is executed. A program (src/systems) and its parameters, as plain
/// values: presets/systems/*.toml, or a file of the user's own.
#pragma once
#include <moehub/kernel_calls.hpp>
#include <moehub/units.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct OwnProgram;

/// How stores wait for a GPU's links.
enum class StoreQueue {
    per_peer,  ///< a queue per peer: a library that paces each peer's channel
    fifo,      ///< stores of all peers in one line
    rpm,       ///< MoE-Hub's Runtime Packet Manager
};

/// Who issues a layer's kernels.
enum class HostMode {
    graph,  ///< a CUDA graph: kernels follow one another by themselves
    eager,  ///< a framework, operator by operator
};

/// Whose units find addresses and count rows in the hubs.
enum class HubUnits {
    moe_hub,  ///< MoE-Hub's AAU and DAM
    dysharp,  ///< DySHARP's AL table and TLB, TS table
};

/// Parameters of a system; its program reads only what concerns it, see docs/systems.md.
struct SystemSpec {
    std::string name;
    std::string title;    ///< one line for `moehub list`
    std::string program;  ///< name of the program that its GPUs run

    HostMode host = HostMode::graph;
    bool fused_activation = false;  ///< activation ends the first GEMM; false: a kernel of its own

    StoreQueue stores = StoreQueue::per_peer;
    HubUnits hub = HubUnits::moe_hub;
    bool switch_copies = true;   ///< switches copy rows and add results; false: one by one
    int communication_sms = 0;   ///< SMs that communication holds while it runs
    int sending_sms = 0;         ///< SMs that read rows and store them away
    int combining_sms = 0;       ///< SMs that load sums of results
    Bytes load_window = 32768;   ///< bytes of loads that a combining SM keeps in flight
    Bytes packet = 0;            ///< largest payload that its packets have; 0: the link's
    int chunk_rows = 1;          ///< rows that one store to a peer's queue holds
    int node_chunk_rows = 1;     ///< tokens that cross to another node before anyone is told
    bool nic_only = false;       ///< rows take NICs inside a node, too
    double qp_rate = 0;          ///< bytes/s of a GPU to one in another node; 0: the NIC's
    double copy_share = 1;       ///< share of what SMs copy in kernels that do nothing else
    bool once_per_node = false;  ///< a row crosses to a node once; the GPU of its rail passes it on
    bool pxn = false;            ///< rows leave their node by the NIC of their target's rail
    int group_gpus = 1;          ///< GPUs that exchange rows in one step
    int chunks = 1;              ///< pieces in which rows travel, so that compute can start
    bool host_waits = false;     ///< the host must know the counts before it goes on
    double tensor_share = 1;     ///< share of plain GEMMs' tensor core rate that its GEMMs reach
    /// Format of the experts' matrices, and of rows as they read them.
    NumberFormat expert_format = NumberFormat::bf16;
    double dispatch_element = 2;  ///< bytes of an element on its way to the experts
    double combine_element = 2;   ///< bytes of an element on its way back
    Ps dispatch_start = 0;        ///< time of the dispatch from launch to the first packet
    Ps combine_start = 0;         ///< time of the combine from launch to the first packet
    bool overlap_passes = false;  ///< training: a micro-batch's forward beside another's backward
    bool coordinate = false;      ///< switches have thread blocks of all GPUs start together
    bool fuse_blocks = false;     ///< kernels depend on one another by thread blocks
    bool separate_channels = false;  ///< loads do not wait behind reductions
    Ps barrier = 0;                  ///< barrier of all GPUs in a kernel, beyond its packets' way

    std::shared_ptr<const OwnProgram> own;  ///< a user's program instead of `program` (program.hpp)

    /// Experts read rows of fewer bits than bf16 has.
    bool narrow_experts() const {
        return expert_format != NumberFormat::bf16 && expert_format != NumberFormat::w4a16;
    }
};

/// The software around a system: what is set here replaces the system's own, so that several can be
/// compared with the same. The bound, ideal, has no host to wait for.
struct Software {
    std::optional<HostMode> host;
    std::optional<bool> fused_activation;
    std::optional<bool> fp8;  ///< FP8 experts, and rows on their way to them
};
SystemSpec with_software(SystemSpec system, const Software& software);

/// The system's software in a few words: "eager", "graph, fused", "graph, fused, FP8".
std::string software_words(const SystemSpec& system);

/// Throws InputError when a value lies outside its limits, as reading a file would.
void check(const SystemSpec& system);

/// Keys whose values are not the defaults; `name`, `title` and `program` aside.
std::vector<std::string> changed_keys(const SystemSpec& system);

}  // namespace moehub
