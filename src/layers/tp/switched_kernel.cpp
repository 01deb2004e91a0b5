#include "layers/tp/switched_kernel.hpp"

#include "layers/exchange.hpp"
#include "layers/tp/tp_pieces.hpp"

#include <numeric>

namespace moehub::layers {
namespace {

sim::GroupId everybody(Gpus& gpus) {
    std::vector<GpuId> all(gpus.count());
    std::iota(all.begin(), all.end(), GpuId{0});
    return gpus.fabric.groups().add(all);
}

}  // namespace

SwitchedKernel::SwitchedKernel(TpLayer& layer, Norm norm)
    : layer_(layer),
      norm_(norm),
      all_(everybody(layer.gpus)),
      ready_(layer, "partial sums of a piece", layer.pieces.count()),
      met_(layer, "GPUs whose rows are stored", 1),
      loaded_(layer.gpus.add_counters("sums of a piece", layer.pieces.count())),
      stored_(layer.gpus.add_counters("acknowledged rows of a piece", layer.pieces.count())) {
    const int sms = lost_sms(layer);
    for (std::uint32_t i = 0; i < layer.gpus.count(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        sms_.emplace_back(layer.gpus.card(gpu), sms);
        loads_.emplace_back(layer, gpu, sms * layer.system.load_window);
    }
}

Process SwitchedKernel::run(GpuId gpu) {
    const Communicating communicating(layer_.gpus.card(gpu));
    Several pieces(layer_.gpus.endpoint(gpu));
    if (layer_.has_first()) pieces.spawn("loads of sums", load_sums(gpu));
    for (const std::uint32_t piece : own_pieces(layer_, gpu))
        pieces.spawn("piece at its home", share(gpu, piece));
    co_await pieces.all();
    co_await sms_[gpu].all();
    if (layer_.has_second()) {
        met_.raise_at_others(gpu);
        co_await met_.until(gpu, layer_.others());
    }
    sms_[gpu].release();
}

/// In the order in which GEMMs make them.
Process SwitchedKernel::load_sums(GpuId gpu) {
    for (const std::uint32_t piece : own_pieces(layer_, gpu)) {
        co_await ready_.until(gpu, layer_.gpus.count(), piece);
        sim::Transfer sums = layer_.load(piece);
        sums.group = all_;
        sums.target.region = layer_.partials;
        sums.target.into = layer_.totals;
        sums.arrived = loaded_ + piece;
        co_await loads_[gpu].load(sums);
    }
}

Process SwitchedKernel::share(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const Bytes bytes = layer_.piece_bytes(piece);
    if (layer_.has_first()) co_await endpoint.until(loaded_ + piece, loads_[gpu].parts(bytes));
    const Traffic norm = layer_.norm_traffic(layer_.pieces.rows(piece), 0);
    if (norm_ == Norm::own_sms) co_await sms_[gpu].pass(norm);
    if (norm_ == Norm::between_tiles)
        co_await run_stream_blocks(layer_.gpus.card(gpu), norm, KernelName::norm,
                                   sim::Priority::high);
    layer_.share(gpu, piece, layer_.has_first() ? TpLayer::Sum::all_in_totals : TpLayer::Sum::given,
                 true);
    if (!layer_.has_second()) co_return;
    co_await sms_[gpu].begin(static_cast<double>(bytes),
                             layer_.input.machine.gpu.kernels.row_store);
    sim::Transfer rows = layer_.store(gpu, piece);
    rows.group = all_;
    rows.from_sm = true;
    rows.answered = stored_ + piece;
    endpoint.post(rows);
    co_await endpoint.until(stored_ + piece, 1);
}

}  // namespace moehub::layers
