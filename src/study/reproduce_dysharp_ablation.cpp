// DySHARP taken apart: its in-switch primitives with kernels one after the other, its fusion
// without the primitives, and its primitives under Comet's schedule.
#include "study/reproduce_dysharp_leads.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kGiga = 1e9;
/// Below this a gain is none, as numbers within 10 % are the same.
constexpr double kNoGain = 1.1;

struct Part {
    std::string_view system;
    const char* what;
};
constexpr Part kParts[] = {
    {kDysharp, "primitives and fusion"},
    {kPrimitivesAlone, "primitives, one kernel after the other"},
    {kFusionAlone, "fusion, a copy for each GPU"},
    {kNeither, "one kernel after the other, a copy for each GPU"},
    {kPrimitivesUnderComet, "primitives under Comet's schedule"},
    {kComet, "as published"},
    {kDeepEp, "as published"},
};

double bytes_of(const ReproducedCell& cell) {
    return static_cast<double>(cell.bytes_up + cell.bytes_down);
}

std::string times_as_fast(std::string_view system, std::string_view other, double ratio) {
    return fmt::format("{} {:.2f}× as fast as {}", system, ratio, other);
}

}  // namespace

FigureResult dysharp_ablation_figure(const DysharpScope& scope, const Lookup& cell) {
    const DysharpPoint point = usual_point(scope.large);
    const auto under = [&](std::string_view system) -> const ReproducedCell& {
        return cell(point.under(system, CellWork::layer));
    };
    const ReproducedCell& deepep = under(kDeepEp);
    FigureTable table{"ablation",
                      fmt::format("{}: one MoE layer", scope.large.name),
                      {"system", "what it has"},
                      {{"µs", NumberKind::time},
                       {"GB on all links", NumberKind::size},
                       {"over deepep", NumberKind::ratio},
                       {"over comet", NumberKind::ratio}},
                      {},
                      {}};
    bool fastest = under(kDysharp).time > 0;
    for (const Part& part : kParts) {
        const ReproducedCell& one = under(part.system);
        const std::vector<std::string> labels{std::string(part.system), part.what};
        note_refusal(labels, one, table);
        table.rows.push_back({labels,
                              {to_us(one.time), bytes_of(one) / kGiga,
                               faster(deepep.time, one.time), faster(under(kComet).time, one.time)},
                              false});
        if (part.system != kDysharp) fastest = fastest && one.time > under(kDysharp).time;
    }
    const ReproducedCell& primitives = under(kPrimitivesAlone);
    const double share = deepep.time > 0 ? bytes_of(primitives) / bytes_of(deepep) : 0;
    const double alone = faster(under(kNeither).time, primitives.time).value_or(0);
    const double fusion = faster(under(kComet).time, under(kFusionAlone).time).value_or(0);
    FigureResult result;
    result.claims = {
        {"ablation", "primitives without fusion cut traffic", share > 0 && share < 0.7,
         fmt::format("to {:.0f} % of deepep's", 100 * share), ""},
        {"ablation", "primitives without fusion gain no time", alone > 0 && alone < kNoGain,
         times_as_fast(kPrimitivesAlone, kNeither, alone) +
             fmt::format(", {:.2f}× as deepep", faster(deepep.time, primitives.time).value_or(0)),
         ""},
        {"ablation", "fusion without primitives does not beat comet",
         fusion > 0 && fusion < kNoGain, times_as_fast(kFusionAlone, kComet, fusion), ""},
        {"ablation", "both together are faster than any of the others", fastest,
         fmt::format("over deepep {:.2f}×, over comet {:.2f}×",
                     table.rows.front().values[2].value_or(0),
                     table.rows.front().values[3].value_or(0)),
         ""}};
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
