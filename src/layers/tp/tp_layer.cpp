#include "layers/tp/tp_layer.hpp"

#include "sim/gpu/tile.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

constexpr double kLargestRounding = 1e-9;  ///< sums are added in another order than the reference's
constexpr Bytes kTrain =
    16384;  ///< row grain: finer than a collective's, since switches merge them

GpusOptions options_of(const TpJob& job) {
    const Bytes line = job.input.machine.link.payload;
    GpusOptions made;
    made.grain = job.options.grain;
    made.scheme = job.scheme;
    made.fault = job.fault;
    made.record = job.options.timeline.record;
    made.train = kTrain;
    made.separate_loads = job.system.separate_channels;
    made.hub.numbers =
        job.options.verify
            ? static_cast<std::size_t>((2 * Bytes{job.input.model.hidden} + line - 1) / line)
            : 0;
    return made;
}

}  // namespace

TpLayer::TpLayer(const TpJob& job, Homes homes)
    : input(job.input),
      system(job.system),
      options(job.options),
      shape(tp_shape(job.input.model, job.input.part)),
      gpus(job.input.machine, options_of(job)),
      pieces(job.input.tokens, gpus.count(), homes),
      numbers(gpus.count(), job.input.tokens, options_of(job).hub.numbers),
      read_(gpus.count(), std::vector<bool>(rows())) {
    for (const GpuId gpu : gpus.all()) add_regions(gpu);
    if (sim::Recorder* recorder = gpus.recorder()) follow_rows(recorder->rows);
}

TpLayer::~TpLayer() = default;

void TpLayer::add_regions(GpuId gpu) {
    sim::Hub& hub = gpus.hub(gpu);
    for (sim::RegionId* region : {&partials, &totals, &passed, &shared, &gathered})
        *region = hub.add_sums({0, input.tokens}, row_bytes());
    outputs = hub.add_region(
        {.name = "outputs", .rows = input.tokens, .data_bytes = row_bytes(), .allocated = false});
}

// Kernels.

GemmPlan TpLayer::plan_first(GpuId gpu, int sms) const {
    const auto of = [&](std::uint32_t share) {
        return GemmShape{input.tokens, share_of(shape.before, share, gpus.count()), shape.hidden,
                         true};
    };
    return plan_on(gpu, sms, of(0), of(gpu));
}

GemmPlan TpLayer::plan_second(GpuId gpu, int sms) const {
    const auto of = [&](std::uint32_t share) {
        const std::int64_t columns =
            shape.after_whole ? shape.after : share_of(shape.after, share, gpus.count());
        return GemmShape{input.tokens, shape.hidden, columns, true};
    };
    return plan_on(gpu, sms, of(0), of(gpu));
}

/// All GPUs run the same kernel, whatever their clocks and shares: that of the first.
GemmPlan TpLayer::plan_on(GpuId gpu, int sms, const GemmShape& firsts, const GemmShape& own) const {
    const GemmPlan like = plan_gemm(with_sms(input.machine.gpu, sms), firsts);
    return plan_gemm_like(with_sms(gpus.card(gpu).gpu, sms), own, like);
}

/// Forward the residual is read beside the sum, and written; backward its gradient is read beside
/// the sum and the norm's input.
Traffic TpLayer::norm_traffic(std::int64_t count, int addends) const {
    Traffic traffic = moehub::norm_traffic(input.machine.gpu, count, shape.hidden, Norm::rms);
    const double bytes = static_cast<double>(count) * static_cast<double>(row_bytes());
    const int residuals = options.residual ? 1 : 0;
    traffic.read += (addends + residuals + (shape.backward ? 1 : 0)) * bytes;
    if (!shape.backward) traffic.written += residuals * bytes;
    return traffic;
}

Process TpLayer::run_first(GpuId gpu) {
    if (!has_first()) co_return;
    const GemmPlan plan = plan_first(gpu, gpus.card(gpu).gpu.sms);
    co_await run_gemm(gpus.card(gpu), plan, KernelName::first_gemm);
    gpus.first_gemm_ended(gpu);
    for (std::uint32_t piece = 0; piece < pieces.count(); ++piece) made_partials(gpu, piece);
}

Process TpLayer::run_second(GpuId gpu) {
    if (!has_second()) co_return;
    for (std::uint32_t piece = 0; piece < pieces.count(); ++piece) read(gpu, piece);
    const GemmPlan plan = plan_second(gpu, gpus.card(gpu).gpu.sms);
    co_await run_gemm(gpus.card(gpu), plan, KernelName::second_gemm);
}

// Transfers.

std::vector<TpLayer::Stretch> TpLayer::parts_of(std::uint32_t piece, Bytes part) const {
    const Stretch all = whole(piece);
    std::vector<Stretch> parts;
    for (Bytes offset = 0; offset < all.bytes; offset += part)
        parts.push_back({all.begin + offset, std::min(part, all.bytes - offset), all.home});
    return parts;
}

sim::Transfer TpLayer::reduction(GpuId to, const Stretch& of, sim::RegionId into) const {
    return {.kind = sim::EventKind::reduce,
            .dst = to,
            .bytes = of.bytes,
            .address = static_cast<std::uint64_t>(of.begin),
            .target = {.region = partials,
                       .row = static_cast<std::uint32_t>(of.begin / row_bytes()),
                       .offset = static_cast<std::uint32_t>(of.begin % row_bytes()),
                       .into = into}};
}

sim::Transfer TpLayer::load(const Stretch& of) const {
    sim::Transfer transfer = reduction(of.home, of, gathered);
    transfer.kind = sim::EventKind::load;
    transfer.target.region = shared;
    return transfer;
}

sim::Transfer TpLayer::store(GpuId to, std::uint32_t piece) {
    sim::Transfer transfer = reduction(to, piece, sim::kNoRegion);
    transfer.kind = sim::EventKind::store;
    transfer.target.region = outputs;
    transfer.target.numbers =
        gpus.hub(pieces.home(piece)).sums(shared).numbers(pieces.begin(piece));
    return transfer;
}

LayerResult TpLayer::result() {
    LayerResult made = gpus.measured();
    made.system = system.name;
    made.rows = input.tokens;
    made.verified = options.verify;
    if (!numbers.any()) return made;
    made.largest_error = numbers.largest_error();
    if (!(made.largest_error <= kLargestRounding))
        throw std::logic_error(
            fmt::format("outputs differ from the reference by {:.3g}", made.largest_error));
    return made;
}

}  // namespace moehub::layers
