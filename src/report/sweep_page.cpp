#include "report/page.hpp"
#include "report/sweep_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

using Align = Table::Align;

constexpr std::size_t kMostRows = 5000;  ///< of the table; the database and --csv have all

std::string name_of_axis(const SweepAxis& axis) {
    return fmt::format("{}", fmt::join(axis.keys, " / "));
}

/// A line for each system over the values of an axis.
LineChart lines_over(std::string title, const SweepAxis& axis, const Study& study,
                     std::string what) {
    LineChart chart{std::move(title), {name_of_axis(axis)}, {std::move(what)}, {}};
    for (const auto& row : axis.rows)
        chart.x.labels.push_back(fmt::format("{}", fmt::join(row, " / ")));
    for (const std::string& system : study.systems) chart.series.push_back({system, {}});
    return chart;
}

LineChart speedup_chart(const Study& study, const std::vector<SweepMean>& means, std::size_t axis) {
    LineChart chart = lines_over(fmt::format("Speed-up over {} by {}, geometric mean over all else",
                                             baseline_of(study), name_of_axis(study.axes[axis])),
                                 study.axes[axis], study, "speed-up, ×");
    const std::vector<AxisValue> values = axis_summary(study, means, axis);
    for (std::size_t at = 0; at < values.size(); ++at)
        for (std::size_t i = 0; i < study.systems.size(); ++i)
            if (values[at].speedups[i])
                chart.series[i].points.push_back(
                    {static_cast<double>(at), *values[at].speedups[i],
                     fmt::format("{}, {}", study.systems[i], values[at].value)});
    return chart;
}

/// Of a study with one axis: its settings are the axis's values, in their order.
LineChart time_chart(const Study& study, const std::vector<SweepMean>& means) {
    LineChart chart = lines_over(fmt::format("Time by {}", name_of_axis(study.axes.front())),
                                 study.axes.front(), study, "time, µs");
    for (std::size_t i = 0; i < means.size(); ++i) {
        const SweepMean& mean = means[i];
        const auto system = std::find(study.systems.begin(), study.systems.end(), mean.system);
        if (mean.runs == 0 || system == study.systems.end()) continue;
        chart.series[static_cast<std::size_t>(system - study.systems.begin())].points.push_back(
            {static_cast<double>(i / study.systems.size()), mean.time_us,
             fmt::format("{}, {}", mean.system, fmt::join(mean.values, " / "))});
    }
    return chart;
}

PageTable means_table(const Study& study, const std::vector<SweepMean>& means) {
    PageTable table{"Every setting, mean over seeds", {}, {}};
    for (const std::string& key : keys_of(study)) table.columns.push_back({key});
    table.columns.push_back({"system", Align::left});
    for (const auto* title : {"runs", "time µs", "± µs", "speed-up", "of ideal"})
        table.columns.push_back({title});
    table.columns.push_back({"", Align::left});
    for (std::size_t i = 0; i < std::min(means.size(), kMostRows); ++i) {
        const SweepMean& mean = means[i];
        std::vector<std::string>& cells = table.rows.emplace_back(mean.values);
        const bool ran = mean.runs > 0;
        cells.insert(cells.end(),
                     {mean.system, fmt::format("{}", mean.runs), ran ? tenths(mean.time_us) : "–",
                      ran ? tenths(mean.deviation) : "–",
                      mean.speedup ? fmt::format("{:.2f}×", *mean.speedup) : "–",
                      mean.share_of_ideal ? percent(*mean.share_of_ideal) : "–", mean.refused});
    }
    return table;
}

}  // namespace

Page sweep_page(const Study& study, const SweepOutcomes& outcomes) {
    const std::vector<SweepMean> means = sweep_means(study, sweep_rows(study, outcomes));
    Page page{fmt::format("Sweep: {}", study.title.empty() ? study.name : study.title),
              lines_of(head_text(study)),
              {}};
    PageSection charts{"Over the axes", {}, {}, {}};
    if (study.axes.size() == 1) charts.blocks.push_back(time_chart(study, means));
    if (study.systems.size() > 1)
        for (std::size_t axis = 0; axis < study.axes.size(); ++axis)
            charts.blocks.push_back(speedup_chart(study, means, axis));
    if (!charts.blocks.empty()) page.sections.push_back(std::move(charts));
    page.sections.push_back({"Settings", {}, {means_table(study, means)}, {}});
    if (means.size() > kMostRows)
        page.sections.back().notes.push_back(
            fmt::format("The first {} of {} rows; the database has all.", kMostRows, means.size()));
    page.configuration = {{"Study", definition_of(study)}};
    return page;
}

}  // namespace moehub
