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
    rows_.layer.card(gpu).blocks.hold(sms(), KernelName::combine);
    for (int sm = 0; sm < sms(); ++sm) {
        rows_.layer.endpoint(gpu).spawn_unit("SM that loads sums", run_sm(gpu));
    }
}

Process CombiningKernel::run_sm(GpuId gpu) {
    sim::Endpoint& endpoint = rows_.layer.endpoint(gpu);
    Queue& queue = queues_[gpu];
    const Kernels& kernels = rows_.layer.input.machine.gpu.kernels;
    const sim::CounterId arrived = endpoint.add_counter("sums for an SM");
    std::int64_t posted = 0;  // loads
    for (;;) {
        const auto ticket = static_cast<std::int64_t>(queue.next++);
        while (endpoint.value(ready_) <= ticket && endpoint.value(arrived) < posted) {
            co_await endpoint.until(arrived, endpoint.value(arrived) + 1);
            take_collected(gpu);
        }
        co_await endpoint.until(ready_, ticket + 1);
        const Item item = queue.items[static_cast<std::size_t>(ticket)];
        const NodeToken& token = rows_.token_on(gpu, item.token);
        const auto bytes = static_cast<double>(item.part.bytes);
        const RowCopy copy{bytes * rows_.own_rows(token), 0, bytes};
        co_await endpoint.delay(std::llround(1e12 * row_copy_seconds(kernels, copy)));
        const std::int64_t most =
            std::max<Bytes>(1, rows_.layer.system.load_window / item.part.bytes);
        const std::int64_t loads = rows_.loads_of(token);
        co_await endpoint.until(arrived, posted + loads - std::max(most, loads));
        posted += rows_.load(gpu, token, item.part, arrived);
        if (item.last) queue.underway.push_back(item.token);
        take_collected(gpu);
    }
}

void CombiningKernel::take_collected(GpuId gpu) {
    std::erase_if(queues_[gpu].underway, [&](std::uint32_t token) {
        if (!rows_.collected(gpu, rows_.token_on(gpu, token))) return false;
        rows_.note_step(gpu, token,
                        rows_.layer.home_of(token) == gpu ? "returned" : "collected in its node");
        collected_(gpu, token);
        return true;
    });
}

}  // namespace moehub::layers
