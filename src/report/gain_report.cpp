#include "report/gain_report.hpp"

#include "report/bar.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 72;

/// Without one of today's systems, the baseline with equal software is the best.
const GainStep& best_of(const Gain& gain) {
    return gain.steps[gain.steps.size() - 2];
}

/// What a step gains over the one before, µs; below 0 where it loses.
double gained(const Gain& gain, std::string_view name) {
    for (std::size_t i = 1; i < gain.steps.size(); ++i)
        if (gain.steps[i].name == name)
            return to_us(gain.steps[i - 1].time) - to_us(gain.steps[i].time);
    return 0;
}

std::string times(Ps slower, Ps faster) {
    return fmt::format("{:.2f}×", static_cast<double>(slower) / static_cast<double>(faster));
}

}  // namespace

std::string gain_text(const std::vector<GainCase>& cases, const TextStyle& style) {
    const Gain& first = cases.front().gain;
    Table table({{"model", Table::Align::left},
                 {first.steps.front().system + " µs"},
                 {"host"},
                 {"activation"},
                 {"overlap"},
                 {"hub"},
                 {first.steps.back().system + " µs"},
                 {"left to ideal", Table::Align::right, 2},
                 {"published", Table::Align::right, 1},
                 {"equal"},
                 {"over the best"},
                 {"which is", Table::Align::left, 1}});
    for (const GainCase& one : cases) {
        const Gain& gain = one.gain;
        const Ps own = gain.steps.back().time;
        const GainStep& best = best_of(gain);
        table.add({one.layer.model_name, tenths(to_us(gain.steps.front().time)),
                   tenths(gained(gain, "host")), tenths(gained(gain, "activation")),
                   tenths(gained(gain, "overlap")), tenths(gained(gain, "hub")), tenths(to_us(own)),
                   tenths(to_us(own - gain.ideal)), times(gain.steps.front().time, own),
                   times(gain.steps[2].time, own), times(best.time, own), best.system});
    }
    return table.text(style);
}

std::string gain_bars(const std::vector<GainCase>& cases, const TextStyle& style) {
    std::size_t width = 0;
    for (const GainCase& one : cases) width = std::max(width, one.layer.model_name.size());
    const int columns = style.bar_width(kBarWidth, width + 2);
    std::string out = fmt::format(
        "{:{}}  █ ideal  ▓ left  ▒ hub  ░ overlap  + activation  · host\n", "share", width);
    for (const GainCase& one : cases) {
        const Gain& gain = one.gain;
        const BarPart bar[] = {
            {to_us(gain.ideal), "█"},          {to_us(gain.steps.back().time - gain.ideal), "▓"},
            {gained(gain, "hub"), "▒"},        {gained(gain, "overlap"), "░"},
            {gained(gain, "activation"), "+"}, {gained(gain, "host"), "·"}};
        out += fmt::format("{:{}}  {}\n", one.layer.model_name, width,
                           stacked_bar(bar, to_us(gain.steps.front().time), columns));
    }
    return out;
}

Json gain_json(const std::vector<GainCase>& cases) {
    Json list = Json::array();
    for (const GainCase& one : cases) {
        Json json;
        json["machine"] = one.layer.machine_name;
        json["model"] = one.layer.model_name;
        json["gpus"] = one.layer.machine.gpus();
        json["tokens"] = one.layer.routing.tokens;
        json["ideal_us"] = to_us(one.gain.ideal);
        json["steps"] = Json::array();
        for (const GainStep& step : one.gain.steps)
            json["steps"].push_back({{"name", step.name},
                                     {"system", step.system},
                                     {"software", software_words(step.spec)},
                                     {"time_us", to_us(step.time)}});
        list.push_back(std::move(json));
    }
    return {{"cases", std::move(list)}};
}

}  // namespace moehub
