#include "report/placement_report.hpp"
#include "report/table.hpp"

#include <fmt/format.h>

namespace moehub {

std::string effect_text(const PlacementReport& report, bool bold) {
    if (!report.effect) return "";
    const PlacementEffect& effect = *report.effect;
    const auto time = [](Ps ps) { return tenths(to_us(ps)); };
    Table table({{"system", Table::Align::left},
                 {"layout", Table::Align::left},
                 {"layer µs"},
                 {"all-to-all µs"},
                 {"95 %"},
                 {"experts µs"},
                 {"95 %"},
                 {"model ms"},
                 {"speed-up"}});
    for (const LayoutEffect& one : effect.layouts)
        table.add({one.system, one.layout, time(one.layer.mean), time(one.all_to_all.mean),
                   time(one.all_to_all.p95), time(one.processing.mean), time(one.processing.p95),
                   one.model > 0 ? significant(to_us(one.model) / 1000) : "–",
                   fmt::format("{:.3f}×", one.speedup)});
    return fmt::format(
               "Simulated: {} step{} of {} token{} through all MoE layers; model: forward, end to "
               "end\n",
               effect.steps, effect.steps == 1 ? "" : "s", grouped(effect.step_tokens),
               effect.step_tokens == 1 ? "" : "s") +
           table.text(bold);
}

}  // namespace moehub
