#include "report/sweep_page.hpp"

#include "report/sweep_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kMostRows = 2000;  ///< of the table; the page stays small
constexpr std::size_t kMostPlaces = 12;  ///< values that each have a tick
constexpr double kWide = 8;              ///< a ratio from which equal ratios are equal distances

/// One number of each system at each value of the axis.
using Numbers = std::vector<std::optional<double>> AxisValue::*;

std::string title_of(const SweepAxis& axis) {
    return fmt::format("{}", fmt::join(axis.keys, " / "));
}

std::vector<std::string> first_values(const SweepAxis& axis) {
    std::vector<std::string> values;
    for (const auto& row : axis.rows) values.push_back(row.front());
    return values;
}

ChartAxis chart_axis(const SweepAxis& axis, const AxisNumbers& numbers) {
    const auto [least, most] = std::minmax_element(numbers.values.begin(), numbers.values.end());
    ChartAxis made{title_of(axis), *least > 0 && *most / *least >= kWide, *least == 0};
    if (!numbers.unit.empty()) made.title += ", " + numbers.unit;
    return made;
}

PageBlock lines(const Study& study, const std::vector<AxisValue>& values, const SweepAxis& axis,
                Numbers numbers, ChartAxis y) {
    const std::string title = fmt::format("{} by {}", y.title, title_of(axis));
    const auto places = numbers_of(first_values(axis));
    if (!places) {  // names stand side by side
        BarChart bars{title, y.title, {}, {}};
        for (const AxisValue& value : values) bars.categories.push_back(value.value);
        for (std::size_t system = 0; system < study.systems.size(); ++system) {
            ChartSeries& series = bars.series.emplace_back();
            series.name = study.systems[system];
            for (const AxisValue& value : values) series.values.push_back((value.*numbers)[system]);
        }
        return bars;
    }
    LineChart chart{title, chart_axis(axis, *places), std::move(y), {}};
    const bool each = values.size() <= kMostPlaces;
    if (each)
        for (const AxisValue& value : values) chart.x.labels.push_back(value.value);
    for (std::size_t system = 0; system < study.systems.size(); ++system) {
        LineSeries& series = chart.series.emplace_back();
        series.name = study.systems[system];
        for (std::size_t i = 0; i < values.size(); ++i)
            if (const auto number = (values[i].*numbers)[system])
                series.points.push_back(
                    {each ? static_cast<double>(i) : places->values[i], *number, values[i].value});
    }
    return chart;
}

PageSection axis_section(const Study& study, const std::vector<SweepMean>& means,
                         std::size_t number) {
    const SweepAxis& axis = study.axes[number];
    const AxisSummary summary = axis_summary(study, means, number);
    const std::vector<AxisValue>& values = summary.values;
    PageSection section{title_of(axis), {}, {}, {}};
    section.blocks.push_back(lines(study, values, axis, &AxisValue::times_us, {"time, µs"}));
    if (study.systems.size() > 1)
        section.blocks.push_back(lines(study, values, axis, &AxisValue::speedups,
                                       {"speed-up over " + baseline_of(study)}));
    const bool others = std::any_of(study.axes.begin(), study.axes.end(), [&](const auto& one) {
        return &one != &axis && one.rows.size() > 1;
    });
    if (others || study.seeds.size() > 1)
        section.notes.push_back(
            fmt::format("Each point is the geometric mean over {} of the means over seeds.",
                        all_else(summary)));
    return section;
}

std::string ratio_text(const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.2f}×", *ratio) : "–";
}

/// Speed-ups over both axes where two alone have several values; a layer for each system that ran
/// everywhere.
std::optional<HeatChart> speedup_map(const Study& study, const std::vector<SweepMean>& means) {
    std::vector<const SweepAxis*> wide;
    for (const SweepAxis& axis : study.axes)
        if (axis.rows.size() > 1) wide.push_back(&axis);
    if (wide.size() != 2) return {};
    const auto names = [](const SweepAxis& axis) {
        std::vector<std::string> list;
        for (const auto& row : axis.rows) list.push_back(fmt::format("{}", fmt::join(row, " / ")));
        return list;
    };
    const std::string baseline = baseline_of(study);
    HeatChart map{"Speed-up over " + baseline,
                  "×",
                  title_of(*wide[0]),
                  title_of(*wide[1]),
                  names(*wide[0]),
                  names(*wide[1]),
                  {}};
    const std::size_t systems = study.systems.size();
    for (std::size_t system = 0; system < systems; ++system) {
        if (study.systems[system] == baseline) continue;
        HeatLayer layer{study.systems[system], {}};
        for (std::size_t i = system; i < means.size(); i += systems)
            if (means[i].speedup) layer.values.push_back(*means[i].speedup);
        if (layer.values.size() == map.rows.size() * map.columns.size())
            map.layers.push_back(std::move(layer));
    }
    if (map.layers.empty()) return {};
    return map;
}

/// What was swept, and under what.
std::string usual_title(const Study& study) {
    constexpr std::size_t kMostNamed = 4;
    return fmt::format("{} by {}",
                       study.systems.size() > kMostNamed
                           ? fmt::format("{} systems", study.systems.size())
                           : fmt::format("{}", fmt::join(study.systems, ", ")),
                       fmt::join(keys_of(study), ", "));
}

PageSection table_section(const Study& study, const std::vector<SweepMean>& means) {
    PageTable table{"Means over seeds", {}, {}};
    for (const std::string& key : keys_of(study)) table.columns.push_back({key});
    table.columns.push_back({"system", Table::Align::left});
    const bool spread = std::any_of(means.begin(), means.end(),
                                    [](const SweepMean& mean) { return mean.deviation > 0; });
    const bool ideal = std::any_of(means.begin(), means.end(),
                                   [](const SweepMean& mean) { return mean.share_of_ideal; });
    table.columns.push_back({"time µs"});
    if (spread) table.columns.push_back({"±"});
    table.columns.push_back({"speed-up"});
    if (ideal) table.columns.push_back({"of ideal"});
    for (const SweepMean& mean : means) {
        if (table.rows.size() == kMostRows) break;
        std::vector<std::string>& cells = table.rows.emplace_back(mean.values);
        cells.push_back(mean.system);
        if (mean.runs == 0) {
            cells.push_back(mean.refused.empty() ? "not run" : "refused");
            cells.resize(table.columns.size());
            continue;
        }
        cells.push_back(tenths(mean.time_us));
        if (spread) cells.push_back(tenths(mean.deviation));
        cells.push_back(ratio_text(mean.speedup));
        if (ideal) cells.push_back(mean.share_of_ideal ? percent(*mean.share_of_ideal) : "–");
    }
    PageSection section{"All settings", {}, {table}, {}};
    if (means.size() > kMostRows)
        section.notes.push_back(fmt::format("The first {} of {} rows; --csv has all.",
                                            grouped(kMostRows),
                                            grouped(static_cast<std::int64_t>(means.size()))));
    return section;
}

}  // namespace

Page sweep_page(const Study& study, const SweepOutcomes& outcomes) {
    const std::vector<SweepMean> means = sweep_means(study, sweep_rows(study, outcomes));
    Page page;
    page.title = study.title.empty() ? usual_title(study) : study.title;
    page.lead = {lines_of(head_text(study)).front()};  // without the title
    for (std::size_t axis = 0; axis < study.axes.size(); ++axis)
        if (study.axes[axis].rows.size() > 1)
            page.sections.push_back(axis_section(study, means, axis));
    if (auto map = speedup_map(study, means))
        page.sections.push_back({"Both axes", {}, {std::move(*map)}, {}});
    page.sections.push_back(table_section(study, means));
    if (const std::string refused = refused_text(study, outcomes); !refused.empty())
        page.sections.push_back({"Refused", lines_of(refused), {}, {}});
    page.configuration.emplace_back("Study", definition_of(study));
    return page;
}

}  // namespace moehub
