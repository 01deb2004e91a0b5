#include "layers/hub_layer.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <algorithm>
#include <map>

namespace moehub::layers {
namespace {

constexpr Bytes kTotal = 8;  ///< bytes of how many tokens crossed

}  // namespace

HubRelay::HubRelay(MoeLayer& layer, PassOn pass_on)
    : layer_(layer),
      pass_on_row_(std::move(pass_on)),
      active_(layer.system.once_per_node && layer.input.machine.nodes > 1),
      targets_(layer),
      out_(layer.gpus, "tokens of other nodes", 2),
      back_(layer.gpus, "results of tokens of other nodes", 1),
      home_(layer.gpus, "sums of other nodes", 1),
      tokens_(layer.gpus.add_counter("tokens of other nodes passed on")),
      passed_on_(layer.gpus.add_counter("all tokens of other nodes passed on")),
      sums_(layer.gpus.add_counter("sums sent to other nodes")),
      busy_(layer.gpus.count()),
      stores_(layer.gpus.count()),
      rows_of_(layer.gpus.count()) {}

bool HubRelay::crosses(GpuId home, const Row& row) const {
    return active_ && !layer_.gpus.fabric.topology().same_node(home, layer_.gpu_of(row.rank, 0));
}

std::vector<HubRelay::Crossing> HubRelay::crossings(GpuId home) const {
    const sim::Topology& topology = layer_.gpus.fabric.topology();
    std::map<std::pair<std::uint32_t, GpuId>, Rows> by_token;
    for (const Row& row : layer_.rows_of(home)) {
        if (!crosses(home, row)) continue;
        const std::uint32_t node = topology.node(layer_.gpu_of(row.rank, 0));
        const auto to = static_cast<GpuId>(node * topology.gpus_per_node + topology.rail(home));
        by_token[{row.token, to}].push_back(carried(layer_, row));
    }
    std::vector<Crossing> made;
    for (auto& [key, rows] : by_token) made.push_back({key.second, std::move(rows)});
    return made;
}

void HubRelay::cross(GpuId home, const Crossing& crossing) {
    const Bytes list = kTokenBytes + kExpertBytes * static_cast<Bytes>(crossing.rows.size());
    out_.store_told(home, crossing.to, 0, crossing.rows, layer_.dispatch_bytes() + list);
}

void HubRelay::tell_all(GpuId home, const std::vector<Crossing>& crossings) {
    const sim::Topology& topology = layer_.gpus.fabric.topology();
    std::map<GpuId, std::int64_t> totals;
    for (const Crossing& one : crossings) ++totals[one.to];
    for (std::uint32_t node = 0; node < topology.nodes; ++node) {
        const auto to = static_cast<GpuId>(node * topology.gpus_per_node + topology.rail(home));
        if (to != home) out_.tell(home, to, 1, {totals[to]}, kTotal);
    }
}

Process HubRelay::sums_back(GpuId home) {
    if (!active_) co_return;
    const auto sums = static_cast<std::int64_t>(crossings(home).size());
    co_await home_.arrived(home, 0, sums);
    for (const CarriedRow& row : home_.take(home, 0)) {
        layer_.books.returned(row.token, row.choice, 0, row.numbers);
        layer_.note_returned(row.token, row.choice);
    }
}

Process HubRelay::work(GpuId gpu, double read, double stored) {
    const Kernels& kernels = layer_.input.machine.gpu.kernels;
    const double seconds =
        row_copy_seconds(kernels, {read, 0, stored}) / layer_.system.communication_sms;
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    busy_[gpu] = std::max(busy_[gpu], endpoint.now()) + to_ps(seconds);
    co_await endpoint.delay(busy_[gpu] - endpoint.now());
}

Process HubRelay::run(GpuId gpu) {
    const sim::Topology& topology = layer_.gpus.fabric.topology();
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const int sms = layer_.system.communication_sms;
    layer_.card(gpu).blocks.hold(sms, KernelName::relay);
    endpoint.spawn_unit("rows passed on", pass_on_rows(gpu));
    endpoint.spawn_unit("results added up", add_up_results(gpu));
    co_await out_.arrived(gpu, 1, topology.nodes - 1);
    std::int64_t crossed = 0;
    for (const sim::Received& total : out_.take_messages(gpu, 1))
        crossed += total.message.counts.front();
    co_await endpoint.until(tokens_, crossed);
    endpoint.increase(passed_on_);
    co_await endpoint.until(sums_, crossed);
    layer_.card(gpu).blocks.release(sms, KernelName::relay);
}

/// A token is read once and stored for each of its experts in the node.
Process HubRelay::pass_on_rows(GpuId gpu) {
    const auto bytes = static_cast<double>(layer_.dispatch_bytes());
    for (std::int64_t seen = 0;;) {
        co_await out_.arrived(gpu, 0, seen + 1);
        for (const sim::Received& token : out_.take_messages(gpu, 0)) {
            ++seen;
            const Rows& rows = token.message.rows;
            const auto stored = bytes * static_cast<double>(rows.size());
            co_await work(gpu, bytes, stored);
            for (const CarriedRow& row : rows) stores_[gpu] += pass_on_row_(gpu, row);
            rows_of_[gpu].emplace(rows.front().token, rows.size());
            layer_.endpoint(gpu).increase(tokens_);
        }
    }
}

void HubRelay::bring(GpuId from, GpuId to, std::uint32_t place, const double* numbers) {
    const std::uint32_t number = place & ~kPassedOn;
    CarriedRow row;
    row.token = number / layer_.top_k();
    row.choice = static_cast<std::uint16_t>(number % layer_.top_k());
    row.numbers = numbers;
    back_.store(from, to, 0, {row}, layer_.combine_bytes());
}

/// What is there is seen by polling.
Process HubRelay::add_up_results(GpuId gpu) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    std::unordered_map<std::uint32_t, Rows> waiting;
    for (std::int64_t seen = 0;;) {
        co_await back_.arrived(gpu, 0, seen + 1);
        co_await endpoint.delay(layer_.input.machine.gpu.overheads.flag_round_trip / 2);
        for (const sim::Received& result : back_.take_messages(gpu, 0)) {
            ++seen;
            const CarriedRow row = result.message.rows.front();
            Rows& rows = waiting[row.token];
            rows.push_back(row);
            if (rows.size() < rows_of_[gpu].at(row.token)) continue;
            co_await send_sum(gpu, std::move(rows));
            waiting.erase(row.token);
        }
    }
}

Process HubRelay::send_sum(GpuId gpu, Rows rows) {
    const auto width = static_cast<double>(layer_.combine_bytes());
    const double read = width * static_cast<double>(rows.size());
    layer_.card(gpu).hbm.take(read);
    co_await work(gpu, read, width);
    const GpuId home = layer_.home_of(rows.front().token);
    home_.store(gpu, home, 0, std::move(rows), layer_.combine_bytes() + kTokenBytes);
    layer_.endpoint(gpu).increase(sums_);
}

}  // namespace moehub::layers
