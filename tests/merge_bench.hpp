/// GPUs of one node that load from each other, and add to each other's sums, through merge units.
#pragma once
#include "sim/fabric.hpp"
#include "sim/hub/hub.hpp"
#include "traffic.hpp"

#include <deque>
#include <numeric>
#include <random>
#include <vector>

namespace moehub::testing {

/// Every GPU has `rows` rows of its own that others load, and as many sums that others add to. A
/// GPU's part of row r of home h has the identity contribution(gpu, h, r), and the number of its
/// line l is that of its GPU, plus l.
struct MergeBench {
    static constexpr Bytes kLine = 128;

    struct Shape {
        std::uint32_t rows = 4;
        Bytes row_bytes = 512;
    };

    MergeBench(const Machine& machine, const sim::FabricOptions& options, Shape given)
        : fabric(machine, options), shape(given), gpus(static_cast<std::uint32_t>(machine.gpus())) {
        const auto lines = static_cast<std::size_t>(shape.row_bytes / kLine);
        for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
            sim::Hub& hub =
                hubs.emplace_back(fabric.gpu(gpu), machine, sim::Hub::Options{0, lines, kLine});
            const std::int64_t rows = shape.rows;
            own = hub.add_sums({0, rows}, shape.row_bytes);
            sums = hub.add_sums({0, rows}, shape.row_bytes);
            for (std::uint32_t home = 0; home < gpus; ++home) {
                parts = hub.add_sums({0, rows}, shape.row_bytes);   // what is added at home
                copies = hub.add_sums({0, rows}, shape.row_bytes);  // what is loaded from home
                for (std::uint32_t row = 0; row < shape.rows; ++row)
                    add(hub, parts, gpu, home, row);
            }
            for (std::uint32_t row = 0; row < shape.rows; ++row) add(hub, own, gpu, gpu, row);
            whole = fabric.gpu(gpu).add_counters("whole", shape.rows);
            done = fabric.gpu(gpu).add_counter("done");
        }
    }

    static std::uint64_t contribution(std::uint32_t gpu, std::uint32_t home, std::uint32_t row) {
        return sim::identity_of(1 + gpu + 100 * home + 10000 * std::uint64_t{row});
    }

    sim::Transfer request(sim::EventKind kind, std::uint32_t home, std::uint32_t row) const {
        sim::Transfer transfer;
        transfer.kind = kind;
        transfer.dst = static_cast<sim::GpuId>(home);
        transfer.bytes = shape.row_bytes;
        transfer.address = (std::uint64_t{home} << 32) +
                           std::uint64_t{row} * static_cast<std::uint64_t>(shape.row_bytes);
        transfer.answered = done;
        const sim::RegionId first = 2 + 2 * home;  // parts, then copies
        transfer.target.region = kind == sim::EventKind::load ? own : first;
        transfer.target.into = kind == sim::EventKind::load ? first + 1 : sums;
        transfer.target.row = row;
        transfer.target.merge = static_cast<std::uint16_t>(gpus - 1);
        return transfer;
    }

    void watch_rows() {
        for (sim::Hub& hub : hubs) hub.watch_sums(sums, {shape.row_bytes, gpus - 1, whole});
    }

    /// Whether every other GPU's part is in the home's sum, once.
    bool summed(std::uint32_t home, std::uint32_t row) {
        std::uint64_t all = 0;
        double numbers = 0;
        for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
            if (gpu == home) continue;
            all += contribution(gpu, home, row);
            numbers += gpu;
        }
        const sim::RowSums& there = hubs[home].sums(sums);
        bool right = there.complete(row, gpus - 1) && there.identity(row) == there.whole() * all;
        for (std::size_t l = 0; l < there.lines(); ++l) {
            right &= there.numbers(row)[l] == numbers + static_cast<double>(l * (gpus - 1));
        }
        return right;
    }

    /// Whether the GPU has the home's row, once.
    bool loaded(std::uint32_t gpu, std::uint32_t home, std::uint32_t row) {
        const sim::RowSums& there = hubs[gpu].sums(2 + 2 * home + 1);
        bool right = there.complete(row, 1) &&
                     there.identity(row) == there.whole() * contribution(home, home, row);
        for (std::size_t l = 0; l < there.lines(); ++l) {
            right &= there.numbers(row)[l] == home + static_cast<double>(l);
        }
        return right;
    }

    void add(sim::Hub& hub, sim::RegionId region, std::uint32_t gpu, std::uint32_t home,
             std::uint32_t row) const {
        std::vector<double> numbers(static_cast<std::size_t>(shape.row_bytes / kLine));
        std::iota(numbers.begin(), numbers.end(), static_cast<double>(gpu));
        hub.sums(region).add_row(row, contribution(gpu, home, row), numbers.data());
    }

    sim::Fabric fabric;
    Shape shape;
    std::uint32_t gpus;
    std::deque<sim::Hub> hubs;
    sim::RegionId own = 0;
    sim::RegionId sums = 0;
    sim::RegionId parts = 0;
    sim::RegionId copies = 0;
    sim::CounterId whole = 0;  ///< the first of as many as there are rows
    sim::CounterId done = 0;
};

/// A request and when its GPU makes it.
struct Timed {
    Ps time = 0;
    sim::Transfer transfer;
};

inline sim::Process ask(sim::Endpoint& gpu, sim::CounterId done, std::vector<Timed> requests) {
    std::stable_sort(requests.begin(), requests.end(),
                     [](const Timed& a, const Timed& b) { return a.time < b.time; });
    for (const Timed& one : requests) {
        co_await gpu.delay(one.time - gpu.now());
        gpu.post(one.transfer);
    }
    co_await gpu.until(done, static_cast<std::int64_t>(requests.size()));
}

}  // namespace moehub::testing
