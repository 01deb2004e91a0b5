// Placements that look at nothing: what engines do by themselves.
#include "place/counts.hpp"
#include "place/methods.hpp"

namespace moehub {
namespace {

/// Slots of a layer, counted through all GPUs; slot s holds expert s mod experts.
struct Slots {
    int count = 0;
    int experts = 0;
    int gpus = 0;

    /// The first count % gpus GPUs have one more where it does not divide.
    int contiguous_gpu(int slot) const {
        const int each = count / gpus, more = count % gpus;
        const int in_larger = more * (each + 1);
        return slot < in_larger ? slot / (each + 1) : more + (slot - in_larger) / each;
    }
    /// When experts divide by GPUs, each further round begins one GPU later: otherwise all copies
    /// of an expert would meet on one GPU.
    int round_robin_gpu(int slot) const {
        const int round = experts % gpus == 0 ? slot / experts : 0;
        return (slot % gpus + round) % gpus;
    }
};

template <class GpuOf>
Solution deal(const PlaceInput& input, GpuOf gpu_of) {
    const LayoutShape shape = shape_of(input.profiles.front());
    Solution solution{empty_layout(shape, input.gpus), {}, false, {}};
    const Slots slots{shape.experts + input.redundant, shape.experts, input.gpus};
    for (auto& on : solution.layout.on)
        for (int slot = 0; slot < slots.count; ++slot)
            on[static_cast<std::size_t>(gpu_of(slots, slot))].push_back(slot % slots.experts);
    return solution;
}

}  // namespace

Solution solve_contiguous(const PlaceInput& input, const PlaceOptions&) {
    return deal(input, [](const Slots& slots, int slot) { return slots.contiguous_gpu(slot); });
}

Solution solve_round_robin(const PlaceInput& input, const PlaceOptions&) {
    return deal(input, [](const Slots& slots, int slot) { return slots.round_robin_gpu(slot); });
}

}  // namespace moehub
