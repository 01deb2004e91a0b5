#include "layers/multimem_dispatch.hpp"

#include "layers/sending_kernel.hpp"

namespace moehub::layers {

std::int64_t add_tokens(MultimemLayer& rows, GpuId gpu) {
    std::int64_t stores = 0;
    const std::uint32_t first = rows.layer.first_token(gpu);
    const std::uint32_t node = rows.layer.gpus.fabric.topology().node(gpu);
    for (std::uint32_t token = first; token < first + rows.layer.tokens(gpu); ++token) {
        stores += rows.stores_of(rows.add_token(gpu, token, rows.rows_by_node(token)[node]));
    }
    return stores;
}

Process send_tokens(MultimemLayer& rows, GpuId gpu, sim::CounterId answered, Crossings crossings) {
    MoeLayer& layer = rows.layer;
    const std::uint32_t first = layer.first_token(gpu);
    std::int64_t stores = crossings.stores;
    for (std::uint32_t i = 0; i < layer.tokens(gpu); ++i) {
        stores += rows.stores_of(rows.token_on(gpu, first + i));
    }
    Sending sending;
    sending.sms = layer.system.sending_sms;
    sending.rows = layer.tokens(gpu);
    sending.read = static_cast<double>(layer.dispatch_bytes());
    sending.stored = sending.read * static_cast<double>(stores) / static_cast<double>(sending.rows);
    sending.table = sending.read * static_cast<double>(sending.rows);
    std::function<int(std::int64_t)> store = [&](std::int64_t i) {
        const auto token = first + static_cast<std::uint32_t>(i);
        const int here = rows.store(gpu, rows.token_on(gpu, token), {answered, true});
        return here + (crossings.store ? crossings.store(token) : 0);
    };
    co_await run_sending(layer, gpu, sending, store);
}

void write_all_results(MultimemLayer& rows, GpuId gpu) {
    for (const MultimemExpert& expert : rows.experts(gpu)) {
        rows.write_results(gpu, expert, 0, rows.rows_in(gpu, expert));
    }
}

}  // namespace moehub::layers
