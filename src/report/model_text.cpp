#include "report/bar.hpp"
#include "report/model_report.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kShareWidth = 32;
constexpr int kBarWidth = 72;

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

std::string milliseconds(Ps time) {
    const std::int64_t hundredths = std::llround(to_us(time) / 10);
    return fmt::format("{}.{:02}", grouped(hundredths / 100), hundredths % 100);
}

const ModelTime* find(const std::vector<ModelTime>& times, std::string_view system) {
    const auto found = std::find_if(times.begin(), times.end(),
                                    [&](const auto& one) { return one.system == system; });
    return found == times.end() ? nullptr : &*found;
}

/// Waiting for the host is no layer: it has no count.
std::vector<std::string> cells_of(const LayerTypeTime& part, const ModelTime& time, bool training) {
    const bool counted = part.name != "host";
    std::vector<std::string> cells{part.name, counted ? grouped(part.count) : ""};
    cells.push_back(counted ? tenths(to_us(part.forward + part.beside)) : "");
    const std::string backward = part.beside > 0 ? "beside it" : tenths(to_us(part.backward));
    if (training) cells.push_back(counted ? backward : "");
    const double share = ratio(part.total(), time.total);
    cells.insert(cells.end(),
                 {milliseconds(part.total()), percent(share), bar(share, kShareWidth)});
    return cells;
}

/// What lies under the period of a system that overlaps passes.
std::string overlap_text(const ModelTime& time) {
    if (!time.overlapped) return "";
    const OverlappedTime& pair = *time.overlapped;
    return fmt::format(
        "A layer forward beside one backward: {} µs of kernels on all SMs{}, {} µs of rows "
        "underway.\n",
        tenths(to_us(pair.compute)),
        pair.host > 0 ? fmt::format(" and {} µs of waiting for the host", tenths(to_us(pair.host)))
                      : "",
        tenths(to_us(pair.communication)));
}

std::string parts_of_one(const ModelTime& time, bool training, const TextStyle& style) {
    std::vector<Table::Column> columns{{time.system, Table::Align::left}, {"count"}};
    if (training) {
        columns.push_back({"forward µs"});
        columns.push_back({"backward µs"});
    } else {
        columns.push_back({"µs each"});
    }
    columns.insert(columns.end(), {{"ms in all"}, {"share"}, {"", Table::Align::bar}});
    Table table(columns);
    for (const LayerTypeTime& part : time.parts) table.add(cells_of(part, time, training));
    std::vector<std::string> sum{"whole model", "", ""};
    if (training) sum.emplace_back();
    sum.push_back(milliseconds(time.total));
    sum.push_back(percent(1));
    table.add(std::move(sum));
    return table.text(style) + overlap_text(time);
}

/// Where the time of the whole model went.
Breakdown breakdown_of(const ModelTime& time) {
    Breakdown sum;
    for (const LayerTypeTime& part : time.parts) {
        if (part.name == "host") {
            sum.host += part.total();
        } else if (part.beside > 0) {
            const OverlappedTime& pair = *time.overlapped;
            sum.compute += part.count * pair.busy;
            sum.host += part.count * pair.host;
            sum.communication += part.count * (pair.period - pair.busy - pair.host);
        } else {
            const Breakdown& one = part.simulated;
            sum.communication += part.count * one.communication;
            sum.host += part.count * one.host;
            sum.compute += part.total() - part.count * (one.communication + one.host);
        }
    }
    return sum;
}

}  // namespace

std::string parts_text(const std::vector<ModelTime>& times, bool training, const TextStyle& style) {
    std::string out;
    for (const ModelTime& time : times) {
        if (!out.empty()) out += '\n';
        out += parts_of_one(time, training, style);
    }
    return out;
}

std::string table_text(const std::vector<ModelTime>& times, std::string_view named,
                       const TextStyle& style) {
    const bool several = times.size() > 1;
    const ModelTime& baseline = baseline_of(times, named);
    const ModelTime* const ideal = several ? find(times, "ideal") : nullptr;
    std::vector<Table::Column> columns{{"system", Table::Align::left}, {"time ms"}};
    if (several) columns.push_back({fmt::format("vs {}", baseline.system)});
    if (ideal != nullptr) columns.push_back({"of ideal"});
    columns.push_back({"tokens/s"});
    columns.push_back({"MFU"});
    Table table(columns);
    for (const ModelTime& time : times) {
        std::vector<std::string> cells{time.system, milliseconds(time.total)};
        if (several) cells.push_back(fmt::format("{:.2f}×", ratio(baseline.total, time.total)));
        if (ideal != nullptr) cells.push_back(percent(ratio(ideal->total, time.total)));
        cells.push_back(grouped(std::llround(time.tokens_per_second)));
        cells.push_back(percent(time.mfu));
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::string bars_text(const std::vector<ModelTime>& times, const TextStyle& style) {
    std::size_t name_width = 0;
    Ps slowest = 0;
    for (const ModelTime& time : times) {
        name_width = std::max(name_width, time.system.size());
        slowest = std::max(slowest, time.total);
    }
    const int width = style.bar_width(kBarWidth, name_width + 2);
    std::string out = fmt::format(
        "{:{}}  █ compute  ▒ exposed communication  · host (launches, synchronisation)\n", "time",
        name_width);
    for (const ModelTime& time : times) {
        const Breakdown parts = breakdown_of(time);
        const BarPart bar[] = {{static_cast<double>(parts.compute), "█"},
                               {static_cast<double>(parts.communication), "▒"},
                               {static_cast<double>(parts.host), "·"}};
        out += fmt::format("{:{}}  {}\n", time.system, name_width,
                           stacked_bar(bar, static_cast<double>(slowest), width));
    }
    return out;
}

}  // namespace moehub
