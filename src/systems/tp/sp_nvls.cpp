// GEMMs, then a reduce-scatter and an all-gather through the switch, one after the other: each GPU
// adds up its share of the tokens by in-switch loads and multicasts the sums.
#include "sim/collective/communicator.hpp"
#include "systems/tp/tp.hpp"

namespace moehub::systems {
namespace {

using layers::GpuId;
using layers::TpLayer;

sim::Slice own_tokens(const TpLayer& layer, GpuId gpu) {
    sim::Slice slice;
    slice.begin = layer.first_token(gpu) * layer.row_bytes();
    slice.bytes = layer.tokens(gpu) * layer.row_bytes();
    slice.target.row = layer.first_token(gpu);
    return slice;
}

Process run_layer(TpLayer& layer, sim::Communicator& all, GpuId gpu) {
    co_await layer.run_ffn(gpu);
    sim::Slice slice = own_tokens(layer, gpu);
    slice.target.region = layer.partials;
    slice.target.into = layer.totals;
    layer.gpus.combine_began(gpu);
    co_await reduce_slice(all, gpu, slice);
    layer.check_sums(gpu);
    slice.target.region = layer.outputs;
    co_await multicast_slice(all, gpu, slice);
    layer.gpus.combine_ended(gpu);
    layer.finish(gpu);
}

}  // namespace

LayerResult run_sp_nvls(const layers::TpJob& job) {
    TpLayer layer(job);
    sim::Communicator all(layer.gpus.fabric, "an in-switch collective");
    layer.gpus.run("sp-nvls layer", [&](GpuId gpu) { return run_layer(layer, all, gpu); });
    LayerResult result = layer.result();
    result.system = "sp-nvls";
    return result;
}

}  // namespace moehub::systems
