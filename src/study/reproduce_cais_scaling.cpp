// More GPUs with a model that grows with them, and the paper's full scale.
#include "study/figure_table.hpp"
#include "study/reproduce_cais.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kLeast = 0.95;  ///< of the throughput per GPU that is left

/// The sub-layers of a sweep, one after the other.
Ps time_of(const CaisScope& scope, std::string_view system, const Lookup& cell, int gpus,
           const std::vector<std::string>& changes) {
    Ps sum = 0;
    for (const std::string& part : scope.few_parts) {
        CellKey key = cais_cell(scope.usual, part, system);
        key.gpus = gpus;
        key.changes = changes;
        sum += cell(key).time;
    }
    return sum;
}

}  // namespace

/// With `scale` times the GPUs the model's work is scale² times as much: throughput of a GPU is
/// scale · time before / time after.
FigureResult cais_scaling_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{"scaling",
                      fmt::format("{}, as many times as wide as there are GPUs more: throughput "
                                  "of a GPU, of that with {}",
                                  scope.usual.name, scope.gpus.front()),
                      {"GPUs", "hidden"},
                      {{"cais µs", NumberKind::time},
                       {"cais", NumberKind::ratio},
                       {"tp-nvls", NumberKind::ratio}},
                      {},
                      {}};
    PublishedClaim claim{"scaling", "throughput of a GPU falls by less than 5 % up to 32 GPUs",
                         true, "", ""};
    const auto at = [&](std::string_view system, int gpus) {
        const int scale = gpus / kCaisGpus;
        return time_of(scope, system, cell, gpus,
                       cais_size({kCaisLlama.hidden * scale, kCaisLlama.ffn * scale,
                                  kCaisLlama.heads * scale}));
    };
    for (const int gpus : scope.gpus) {
        const int scale = gpus / kCaisGpus;
        const auto of_first = [&](std::string_view system) -> std::optional<double> {
            const std::optional<double> ratio =
                faster(at(system, scope.gpus.front()), at(system, gpus));
            return ratio ? std::optional(*ratio * scale) : std::nullopt;
        };
        const std::optional<double> own = of_first(kCais);
        table.rows.push_back(
            {{fmt::format("{}", gpus), fmt::format("{}", kCaisLlama.hidden * scale)},
             {to_us(at(kCais, gpus)), own, of_first(kTpNvls)},
             false});
        claim.holds = claim.holds && own.value_or(0) > kLeast;
        claim.found +=
            fmt::format("{}{} {:.3f}", claim.found.empty() ? "" : ", ", gpus, own.value_or(0));
    }
    FigureResult result;
    result.claims.push_back(std::move(claim));
    result.tables.push_back(std::move(table));
    return result;
}

/// By the first reading, whose SMs it has twice.
FigureResult cais_full_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{
        "full",
        fmt::format("{} at half and at full scale: time of tp-nvls / cais's", scope.usual.name),
        {"scale"},
        {{"cais µs", NumberKind::time}, {"over tp-nvls", NumberKind::ratio}},
        {},
        {}};
    FigureResult result;
    const auto add = [&](const char* scale, double paper, const std::vector<std::string>& changes) {
        const Ps own = time_of(scope, kCais, cell, kCaisGpus, changes);
        const std::optional<double> lead =
            faster(time_of(scope, kTpNvls, cell, kCaisGpus, changes), own);
        table.rows.push_back({{scale}, {to_us(own), lead}, false});
        result.numbers.push_back(
            published(table, fmt::format("over tp-nvls, {} scale", scale), paper, {lead}));
    };
    std::vector<std::string> full = cais_size(kCaisFullScale);
    full.insert(full.end(), {"gpu.sms=132", "gpu.bf16_flops=3957.6 TFLOP/s"});
    add("half", 1.40, {});
    add("full", 1.43, full);
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
