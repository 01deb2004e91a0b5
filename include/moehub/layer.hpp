/// One MoE layer, executed by a system on a machine: simulated packet by packet, with real rows.
///
///     const Machine machine = with_gpus(load_machine("dgx-h800"), 8);
///     const Model model = load_model("mixtral-8x7b");
///     const Routing routing = make_routing(parse_routing("normal:0.032"), model, 8192);
///     const Placement placement = contiguous_placement(model.experts, 8);
///     const LayerResult result =
///         simulate_layer({machine, model, routing, placement}, "moe-hub", {});
///
/// Every run checks that each row arrived once, densely packed, and that each result returned once,
/// and with `verify` what it says; a run that fails throws std::logic_error. Same input, same bytes
/// out.
#pragma once
#include <moehub/collective.hpp>
#include <moehub/error.hpp>
#include <moehub/layer_options.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/placement.hpp>
#include <moehub/routing.hpp>
#include <moehub/system.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct LayerInput {
    Machine machine;  ///< already of the size wanted (with_gpus)
    Model model;
    Routing routing;      ///< first layer is run; tokens in total, shared out evenly over GPUs
    Placement placement;  ///< ranks · tensor_parallel = GPUs
};

/// Where the time went on the GPU that computes longest; the parts add up to the layer's time.
struct Breakdown {
    Ps compute = 0;        ///< time in which some kernel ran
    Ps communication = 0;  ///< no kernel ran, and rows were underway or others still at work
    Ps host = 0;           ///< neither ran: the GPU waited for its host or for launches
};

/// A number that a unit counted, summed over all GPUs unless its name says otherwise.
struct Statistic {
    std::string unit;  ///< link, switch, rpm, aau, dam or memory
    std::string name;
    double value = 0;
    std::string doc;
};

/// One direction of a link: what it carried, and how busy it was over time. Row grain folds a
/// node's planes into one.
struct LinkUse {
    std::string from;  ///< "gpu 3", "switch 1 of node 0", "leaf 2", "spine 0"
    std::string to;
    Bytes bytes = 0;       ///< bytes on the wire, headers included
    Ps busy = 0;           ///< time in which it carried something
    Ps bin = 0;            ///< width of a bin of time, from the start on
    std::vector<Ps> bins;  ///< busy time in each bin; in row grain trains that share a link are
                           ///< booked one after the other up to each one's end, so nearly
};

/// A stretch of time in which a GPU did one thing without a break: kernels ran, or rows were
/// underway.
struct BusyInterval {
    enum class What { compute, communication };
    What what = What::compute;
    int gpu = 0;
    Ps begin = 0;
    Ps end = 0;
};

struct LayerResult {
    std::string system;
    Ps time = 0;        ///< time until the last GPU has its tokens' outputs
    Ps first_gemm = 0;  ///< time from the start to the end of the last GEMM-1
    Ps dispatch = 0;    ///< where rows move in a step of their own, until all have arrived; else 0
    Ps combine = 0;  ///< where results move in a step of their own, until all have arrived; else 0
    /// Time that the kernels of dispatch take by themselves, on the GPU with most, where they can
    /// leave the SMs while rows are underway; else 0.
    Ps dispatch_work = 0;
    Ps combine_work = 0;  ///< time that the kernels of combine take by themselves, as dispatch_work
    Breakdown breakdown;
    Ps host_lead = 0;          ///< time by which an eager host was ahead of the GPUs in the end
    Bytes bytes_up = 0;        ///< bytes on the wire, GPUs to switches and NICs, headers included
    Bytes bytes_down = 0;      ///< bytes on the wire, switches and NICs to GPUs
    Bytes payload = 0;         ///< bytes of rows that crossed between GPUs
    double sm_busy = 0;        ///< share of all SMs' time in which they ran blocks
    double tensor_busy = 0;    ///< share of what power lets all tensor cores multiply that they did
    std::int64_t rows = 0;     ///< (token, expert) pairs, each delivered and returned once
    std::int64_t packets = 0;  ///< packets that reached a GPU, acknowledgements aside
    std::int64_t events = 0;   ///< events that the engine handled
    bool host_waits = false;   ///< its host waited for counts of rows
    bool verified = false;     ///< numbers were carried and compared with the reference layer
    double largest_error = 0;  ///< largest relative error of an output, when verified
    std::vector<Statistic> statistics;    ///< what links, switches and hubs counted
    std::vector<LinkUse> links;           ///< every direction of every link
    std::vector<BusyInterval> intervals;  ///< sorted by GPU and kind, each in the order of time
    Timeline timeline;                    ///< recorded where the options ask for it; else empty
};

/// Throws InputError when the system cannot run this input (sizes that do not fit, a machine it
/// needs more of, parameters it does not have), without running anything.
void check_layer(const LayerInput& input, const SystemSpec& system, const LayerOptions& options);

/// Throws as check_layer does, and InputError when something overflows on the way (a region too
/// small, …).
LayerResult simulate_layer(const LayerInput& input, const SystemSpec& system,
                           const LayerOptions& options);
/// Simulates a system by its name: a preset or a TOML file.
LayerResult simulate_layer(const LayerInput& input, std::string_view system,
                           const LayerOptions& options);

struct SystemInfo {
    std::string name;
    std::string title;    ///< one line
    std::string program;  ///< the source of what its GPUs run (src/systems)
    int lines = 0;        ///< lines of code in the program: neither blank, nor comment, nor include
};

/// All systems, in the order of the table.
std::vector<SystemInfo> all_systems();

}  // namespace moehub
