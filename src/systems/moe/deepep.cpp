// DeepEP's normal kernels with grouped GEMMs: counts first, then one copy of a token to each GPU
// that needs it, pushed in chunks by a few SMs; the user copies rows to their experts and sums
// what a GPU's experts made of a token, so that one row comes back. Between nodes a token crosses
// once for each node, to the GPU of the sender's rail, which forwards it.
#include "systems/moe/copies_layer.hpp"
#include "systems/moe/forwarded.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace deepep {

/// Copies inside a node; between nodes they are forwarded.
struct ChunkedWays {
    int channels() const { return out.channels(); }
    std::vector<std::int64_t> announcement(GpuId, GpuId to, const Lanes& lanes) const {
        return out.announcement(to, lanes);
    }
    Bytes announcement_bytes(GpuId, GpuId to) const { return bytes_of_counts(layer, to); }
    Bytes beside() const { return bytes_of_choices(layer); }
    void expect(GpuId gpu, const std::vector<std::int64_t>& announced) {
        out.expect(gpu, announced);
    }
    void expect_return(GpuId from, const Lanes& lanes) { back.expect_return(from, lanes); }
    Process dispatch(GpuId gpu, Lanes lanes, Bytes bytes) {
        return out.run(gpu, std::move(lanes), bytes);
    }
    std::vector<Rows> dispatched(GpuId gpu) { return out.received(gpu); }
    /// Results go back the way the rows came.
    Process combine(GpuId gpu, std::vector<Rows> results, Bytes bytes) {
        Lanes lanes;
        for (const Rows& rows : results) lanes.push_back(rows_by_home(layer, rows));
        return back.run(gpu, std::move(lanes), bytes);
    }
    std::vector<Rows> combined(GpuId gpu) { return back.received(gpu); }

    MoeLayer& layer;
    ChunkedExchange out{layer, "chunks of rows", false};
    ChunkedExchange back{layer, "chunks of results", true};
};

}  // namespace deepep

LayerResult run_deepep(const Job& job) {
    if (job.input.machine.nodes > 1)
        return run_program(job, "deepep layer",
                           run_copies_layer<CountedWays<warps_through_queues>>);
    return run_program(job, "deepep layer", run_copies_layer<deepep::ChunkedWays>);
}

}  // namespace moehub::systems
