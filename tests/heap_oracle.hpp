/// The heap, which takes events one by one, as the oracle of the windows.
#pragma once
#include "small_layer.hpp"
#include "systems/systems.hpp"

namespace moehub::testing {

/// Expects the same picoseconds and bytes of a layer in both schemes and both grains.
inline void expect_same_on_the_heap(Case layer, const std::string& system) {
    const SystemSpec spec = load_system(system);
    const LayerInput input{layer.machine, layer.model, make_routing({}, layer.model, layer.tokens),
                           contiguous_placement(layer.model.experts, layer.machine.gpus())};
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        layers::Job job{input, spec, layer.options};
        const LayerResult windows = systems::run_job(job);
        job.scheme = sim::Scheme::heap;
        const LayerResult heap = systems::run_job(job);
        EXPECT_EQ(windows.time, heap.time);
        EXPECT_EQ(windows.first_gemm, heap.first_gemm);
        EXPECT_EQ(windows.breakdown.communication, heap.breakdown.communication);
        EXPECT_EQ(windows.bytes_up, heap.bytes_up);
        EXPECT_EQ(windows.bytes_down, heap.bytes_down);
    }
}

/// Whether the run ends with an error, or its numbers with one.
inline bool notices(const Case& layer, const std::string& system, const sim::Fault& fault) {
    const LayerInput input{layer.machine, layer.model, make_routing({}, layer.model, layer.tokens),
                           contiguous_placement(layer.model.experts, layer.machine.gpus())};
    const SystemSpec spec = load_system(system);
    layers::Job job{input, spec, layer.options};
    job.fault = fault;
    try {
        const LayerResult result = systems::run_job(job);
        return layer.options.verify && result.largest_error > 1e-11;
    } catch (const std::exception&) {
        return true;
    }
}

/// Expects each kind of fault to be noticed, in so many transfers over the whole run, first and
/// last included.
inline void expect_noticed(const Case& layer, const std::string& system, int transfers) {
    using What = sim::Fault::What;
    std::int64_t carriers = 0;
    EXPECT_FALSE(notices(layer, system, {What::none, 0, 0, &carriers})) << "all is well";
    ASSERT_GE(carriers, transfers) << "there and back";
    for (const What what : {What::drop, What::duplicate, What::delay}) {
        for (std::int64_t i = 0; i < transfers; ++i) {
            const std::int64_t transfer = (carriers - 1) * i / (transfers - 1);
            EXPECT_TRUE(notices(layer, system, {what, transfer, 1'000'000 * kUs, nullptr}))
                << "fault " << static_cast<int>(what) << " of transfer " << transfer << " of "
                << carriers;
        }
    }
}

}  // namespace moehub::testing
