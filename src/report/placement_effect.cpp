#include "report/placement_report.hpp"
#include "report/table.hpp"

#include <fmt/format.h>

namespace moehub {
const LayoutEffect* eplb_of(const PlacementEffect& effect, const std::string& system) {
    for (const LayoutEffect& one : effect.layouts)
        if (one.layout == "eplb" && one.system == system) return &one;
    return nullptr;
}

std::string over_eplb(const PlacementEffect& effect, const LayoutEffect& one) {
    const LayoutEffect* const eplb = eplb_of(effect, one.system);
    return eplb == nullptr ? "–" : fmt::format("{:.3f}×", faster(one, *eplb));
}

std::string effect_text(const PlacementReport& report, const TextStyle& style) {
    if (!report.effect) return "";
    const PlacementEffect& effect = *report.effect;
    const auto time = [](Ps ps) { return tenths(to_us(ps)); };
    Table table({{"system", Table::Align::left},
                 {"layout", Table::Align::left},
                 {"layer µs"},
                 {"all-to-all"},
                 {"95 %"},
                 {"experts"},
                 {"95 %"},
                 {"model ms"},
                 {"vs order"},
                 {"vs eplb"}});
    for (const LayoutEffect& one : effect.layouts)
        table.add({one.system, one.layout, time(one.layer.mean), time(one.all_to_all.mean),
                   time(one.all_to_all.p95), time(one.processing.mean), time(one.processing.p95),
                   one.model > 0 ? significant(to_us(one.model) / 1000) : "–",
                   fmt::format("{:.3f}×", one.speedup), over_eplb(effect, one)});
    return fmt::format(
               "Simulated: {} step{} of {} token{} through the MoE layers, times in µs; model: "
               "forward, "
               "end to\nend; vs order, vs eplb: how many times as fast as with experts in order, "
               "with EPLB's layout\n",
               effect.steps, effect.steps == 1 ? "" : "s", grouped(effect.step_tokens),
               effect.step_tokens == 1 ? "" : "s") +
           table.text(style);
}

}  // namespace moehub
