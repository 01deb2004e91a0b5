#include "layers/tp_layer.hpp"

#include "sim/gpu/gemm.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub::layers {

TpLayer::TpLayer(const TpJob& job) : gpus(job.machine, job.options), job_(job) {
    if (job.options.numbers) throw std::logic_error("a TpLayer's rows carry no numbers yet");
    if (job.model.dense_ffn < 1 || job.model.dense_ffn % job.machine.gpus() != 0) {
        throw InputError(fmt::format("{}: dense_ffn: found {}, allowed multiples of the {} GPUs",
                                     job.model.name, job.model.dense_ffn, job.machine.gpus()));
    }
    if (job.tokens < job.machine.gpus()) {
        throw InputError(fmt::format("tokens: found {}, allowed {} or more: one for each GPU",
                                     job.tokens, job.machine.gpus()));
    }
    for (std::uint32_t gpu = 0; gpu < gpus.count(); ++gpu) {
        sim::Hub& hub = gpus.hub(static_cast<GpuId>(gpu));
        partials = hub.add_sums({0, job.tokens}, row_bytes());
        totals = hub.add_sums({0, job.tokens}, row_bytes());
        sim::RowSpace space;
        space.name = "outputs";
        space.rows = job.tokens;
        space.data_bytes = row_bytes();
        space.allocated = false;
        outputs = hub.add_region(space);
    }
}

std::uint32_t TpLayer::first_token(GpuId gpu) const {
    return static_cast<std::uint32_t>(job_.tokens * gpu / job_.machine.gpus());
}

std::uint64_t TpLayer::identity(GpuId gpu, std::uint32_t token) const {
    return sim::identity_of((std::uint64_t{token} << 16) + gpu + 1);
}

Process TpLayer::run_ffn(GpuId gpu) {
    const std::int64_t inner = job_.model.dense_ffn / job_.machine.gpus();
    const std::int64_t matrices = job_.model.gated ? 2 : 1;
    sim::Card& card = gpus.card(gpu);
    const GemmPlan up =
        plan_gemm(card.gpu, {job_.tokens, job_.model.hidden, matrices * inner, true});
    const GemmPlan down = plan_gemm(card.gpu, {job_.tokens, inner, job_.model.hidden, true});
    co_await run_gemm(card, up);
    gpus.first_gemm_ended(gpu);
    co_await run_stream(card, activation_traffic(static_cast<double>(job_.tokens * inner)));
    co_await run_gemm(card, down);
    sim::RowSums& sums = gpus.hub(gpu).sums(partials);
    for (std::uint32_t token = 0; token < job_.tokens; ++token) {
        sums.add_row(token, identity(gpu, token), nullptr);
    }
}

void TpLayer::check_sums(GpuId gpu) {
    const sim::RowSums& sums = gpus.hub(gpu).sums(totals);
    for (std::uint32_t i = 0; i < tokens(gpu); ++i) {
        const std::uint32_t token = first_token(gpu) + i;
        std::uint64_t all = 0;
        for (std::uint32_t other = 0; other < gpus.count(); ++other) {
            all += identity(static_cast<GpuId>(other), token);
        }
        if (!sums.complete(token, gpus.count()) || sums.identity(token) != sums.lines() * all) {
            throw std::logic_error(
                fmt::format("the sum of token {} is not of all GPUs, each once", token));
        }
    }
}

void TpLayer::finish(GpuId gpu) {
    gpus.ended(gpu);
    const sim::RowMemory& rows = gpus.hub(gpu).memory(outputs);
    for (std::uint32_t token = 0; token < job_.tokens; ++token) {
        if (token < rows.rows() && rows.complete(token)) continue;
        throw std::logic_error(fmt::format("gpu {} has no output of token {}", gpu, token));
    }
}

LayerResult TpLayer::result() {
    LayerResult made = gpus.measured();
    made.rows = job_.tokens;
    return made;
}

}  // namespace moehub::layers
