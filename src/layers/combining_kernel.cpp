#include "layers/combining_kernel.hpp"

#include "sim/gpu/row_copy.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::layers {

CombiningKernel::CombiningKernel(MultimemLayer& rows, Collected collected)
    : rows_(rows),
      collected_(std::move(collected)),
      ready_(rows.layer.gpus.add_counter("tokens whose results are there")),
      queues_(rows.layer.gpus.count()) {}

void CombiningKernel::add(GpuId gpu, const Item& item) {
    queues_[gpu].items.push_back(item);
    rows_.layer.endpoint(gpu).increase(ready_);
}

void CombiningKernel::start(GpuId gpu) {
    rows_.layer.card(gpu).blocks.hold(sms());
    for (int sm = 0; sm < sms(); ++sm) {
        rows_.layer.endpoint(gpu).spawn_unit("SM that loads sums", run_sm(gpu));
    }
}

Process CombiningKernel::run_sm(GpuId gpu) {
    sim::Endpoint& endpoint = rows_.layer.endpoint(gpu);
    Queue& queue = queues_[gpu];
    const Kernels& kernels = rows_.layer.input.machine.gpu.kernels;
    const sim::CounterId arrived = endpoint.add_counter("sums for an SM");
    std::int64_t posted = 0;              // loads
    std::vector<std::uint32_t> underway;  // tokens
    for (;;) {
        const auto ticket = static_cast<std::int64_t>(queue.next++);
        while (endpoint.value(ready_) <= ticket && !underway.empty()) {
            co_await endpoint.until(arrived, endpoint.value(arrived) + 1);
            take_collected(gpu, underway);
        }
        co_await endpoint.until(ready_, ticket + 1);
        const Item item = queue.items[static_cast<std::size_t>(ticket)];
        const RowCopy copy{0, 0, static_cast<double>(item.part.bytes)};
        co_await endpoint.delay(std::llround(1e12 * row_copy_seconds(kernels, copy)));
        const std::int64_t most =
            std::max<Bytes>(1, rows_.layer.system.load_window / item.part.bytes);
        co_await endpoint.until(arrived, posted - most + 1);
        posted += rows_.load(gpu, rows_.token_on(gpu, item.token), item.part, arrived);
        if (item.last) underway.push_back(item.token);
        take_collected(gpu, underway);
    }
}

void CombiningKernel::take_collected(GpuId gpu, std::vector<std::uint32_t>& underway) {
    std::erase_if(underway, [&](std::uint32_t token) {
        if (!rows_.collected(gpu, rows_.token_on(gpu, token))) return false;
        collected_(gpu, token);
        return true;
    });
}

}  // namespace moehub::layers
