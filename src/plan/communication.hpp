/// What communication takes in a training step, simulated on the machine's fabric: collectives over
/// groups of GPUs, messages between pipeline stages, MoE layers under a system. Asked once for each
/// size of a coarse grid, when it is first needed, and interpolated between; or `exact`, as asked.
/// Of groups too large for that, smaller ones alike are simulated and their equal steps counted on
/// (group_collective.cpp), of layers with too many rows fewer tokens (moe_communication.cpp).
///
/// Any number of threads may ask at once: what two want is simulated once, and all find the same.
#pragma once
#include <moehub/collective.hpp>
#include <moehub/layer_options.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/routing.hpp>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace moehub {

/// Every `stride`-th GPU, `size` in all; all groups of the machine like it do the same at once.
/// GPUs are numbered node by node.
struct GpuGroup {
    int size = 1;
    int stride = 1;
};

/// A MoE layer of `ep` · `etp` neighbouring GPUs.
struct MoeCase {
    std::string system;
    int ep = 1;
    int etp = 1;
    std::int64_t tokens = 0;  ///< tokens of one GPU
    bool fp8 = false;         ///< experts compute in FP8
    bool fp8_rows = false;    ///< rows travel to experts in FP8
    Pass pass = Pass::forward;

    friend auto operator<=>(const MoeCase&, const MoeCase&) = default;
};

/// What a MoE layer's communication takes, in seconds.
struct MoeCommunication {
    /// The layer under the system less the layer with every row in place: rows on their way, and
    /// what the system's kernels do beyond products and activation (permutation, casts, sums).
    double exposed = 0;
    double alone = 0;  ///< dispatch and combine; `exposed` of systems without such steps
    int sms = 0;       ///< SMs that they hold while they run
};

class Communication {
  public:
    /// `routing` is a TrainingRun's.
    Communication(Machine machine, Model model, const RoutingSpec& routing);
    /// Communication of a model of another shape on the same machine, by rule of thumb and without
    /// simulating, for searches over shapes: collectives are `other`'s, and a MoE layer takes what
    /// `other`'s takes with as many tokens as move as many bytes.
    Communication(std::shared_ptr<Communication> other, const Model& model);
    ~Communication();

    /// Seconds of a collective of `bytes` as nccl-tests counts them: of an all-gather all that a
    /// GPU has in the end, of a reduce-scatter all that it starts with, of an all-to-all what it
    /// sends. NCCL chooses the algorithm. 0 for a group of one.
    double collective(Collective::Op op, GpuGroup group, double bytes, bool exact = false);

    /// Seconds from every GPU to the one `distance` further at once, and as much from another: over
    /// NVLink where both are of one node, else NICs; where only some leave their node, the mean.
    double message(int distance, double bytes, bool exact = false);

    /// Seconds from every GPU to the next one of its ring. What crosses between nodes decides
    /// where any does: each part passes all of the ring.
    double ring_step(GpuGroup group, double bytes, bool exact = false);

    /// A layer forward or backward, experts already chosen; 0 when nothing travels. Throws
    /// InputError when the system cannot run it.
    MoeCommunication moe(const MoeCase& one, bool exact = false);

  private:
    struct State;
    std::shared_ptr<State> state_;  ///< tables, shared between shapes
    double tokens_ = 1;             ///< tokens of the simulated model per token of this one
};

}  // namespace moehub
