// NCCL's in-switch all-reduce against hardware, as the paper checks its simulator.
#include "study/figure_table.hpp"
#include "study/reproduce_cais.hpp"

#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

/// As in validation/published_collectives.csv.
struct Measured {
    const char* machine;
    std::int64_t bytes;
    double bus;  ///< GB/s, as nccl-tests counts it
};
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr Measured kMeasured[] = {
    {"dgx-h100", 8 * kGiB, 476}, {"dgx-h200", 8 * kGiB, 475}, {"dgx-h800", 8 * kGiB, 215}};
constexpr double kWithin = 0.04;  ///< the paper's mean error is 3.87 %

double bus_of(const ReproducedCell& cell, std::int64_t bytes) {
    if (cell.time <= 0) return 0;
    const double moved = 2.0 * (kCaisGpus - 1) / kCaisGpus * static_cast<double>(bytes);
    return moved / (static_cast<double>(cell.time) * 1e-12) / 1e9;
}

const ReproducedCell& all_reduce(const char* machine, std::int64_t bytes, const Lookup& cell) {
    CellKey key{"", kCaisGpus, bytes, "", "nvls"};
    key.work = CellWork::all_reduce;
    key.machine = machine;
    return cell(key);
}

}  // namespace

FigureResult cais_nvls_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{"nvls",
                      "NVLS all-reduce of 8 GPUs: bus bandwidth, GB/s",
                      {"machine", "MiB"},
                      {{"here", NumberKind::size}, {"measured", NumberKind::size}},
                      {},
                      {}};
    const auto add = [&](const char* machine, std::int64_t bytes, std::optional<double> measured) {
        const double here = bus_of(all_reduce(machine, bytes, cell), bytes);
        table.rows.push_back({{machine, fmt::format("{}", bytes >> 20)}, {here, measured}, false});
        return here;
    };
    double error = 0;
    double rows = 0;
    for (const std::int64_t bytes : scope.all_reduce)
        if (bytes != kMeasured[0].bytes) add(kMeasured[0].machine, bytes, std::nullopt);
    for (const Measured& one : kMeasured) {
        if (one.bytes > scope.all_reduce.back()) continue;
        error += std::abs(add(one.machine, one.bytes, one.bus) / one.bus - 1);
        ++rows;
    }
    FigureResult result;
    if (rows > 0)
        result.claims.push_back(
            {"nvls", "within 3.87 % of hardware on average", error / rows <= kWithin,
             fmt::format("{:.2f} % over {} measurements", 100 * error / rows, rows), ""});
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
