#include "report/sweep_report.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kMostRows = 60;     ///< of a table that is still read
constexpr std::size_t kMostReasons = 10;  ///< of refusals that are named

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", grouped(static_cast<std::int64_t>(count)), one,
                       count == 1 ? "" : "s");
}

std::string times(const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.2f}×", *ratio) : "–";
}

std::string means_text(const Study& study, const std::vector<SweepMean>& means,
                       const TextStyle& style) {
    using enum Table::Align;
    std::vector<Table::Column> columns;
    for (const std::string& key : keys_of(study)) columns.push_back({key, right});
    columns.push_back({"system", left});
    columns.push_back({"time µs"});
    const bool spread = study.seeds.size() > 1;
    if (spread) columns.push_back({"±"});
    columns.push_back({"speed-up"});
    const bool ideal = std::any_of(means.begin(), means.end(),
                                   [](const SweepMean& mean) { return mean.share_of_ideal; });
    if (ideal) columns.push_back({"of ideal"});
    Table table(columns);
    const std::vector<std::string>* before = nullptr;
    for (const SweepMean& mean : means) {
        const bool same = before != nullptr && *before == mean.values;
        std::vector<std::string> cells;
        for (const std::string& value : mean.values) cells.push_back(same ? "" : value);
        before = &mean.values;
        cells.push_back(mean.system);
        if (mean.runs == 0) {
            cells.emplace_back(mean.refused.empty() ? "not run" : "refused");
            table.add(std::move(cells));
            continue;
        }
        cells.push_back(tenths(mean.time_us));
        if (spread) cells.push_back(tenths(mean.deviation));
        cells.push_back(times(mean.speedup));
        if (ideal) cells.push_back(mean.share_of_ideal ? percent(*mean.share_of_ideal) : "–");
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::string axis_text(const Study& study, const std::vector<SweepMean>& means, std::size_t axis,
                      const TextStyle& style) {
    std::vector<Table::Column> columns{
        {fmt::format("{}", fmt::join(study.axes[axis].keys, " / ")), Table::Align::right}};
    const std::string baseline = baseline_of(study);
    for (const std::string& system : study.systems)
        if (system != baseline) columns.push_back({system});
    Table table(columns);
    const AxisSummary summary = axis_summary(study, means, axis);
    for (const AxisValue& value : summary.values) {
        std::vector<std::string> cells{value.value};
        for (std::size_t i = 0; i < study.systems.size(); ++i)
            if (study.systems[i] != baseline) cells.push_back(times(value.speedups[i]));
        table.add(std::move(cells));
    }
    return fmt::format("Speed-up over {} by {}, geometric mean over {}:\n\n{}", baseline,
                       columns.front().title, all_else(summary), table.text(style));
}

}  // namespace

std::string all_else(const AxisSummary& summary) {
    if (summary.shared == summary.settings) return "all else";
    return fmt::format("{} of {} other settings, those that all can run", summary.shared,
                       summary.settings);
}

std::string head_text(const Study& study) {
    std::vector<std::string> parts;
    for (const SweepAxis& axis : study.axes)
        parts.push_back(fmt::format("{} ({})", fmt::join(axis.keys, " with "), axis.rows.size()));
    parts.push_back(counted(study.systems.size(), "system"));
    if (!study.seeds.empty()) parts.push_back(counted(study.seeds.size(), "seed"));
    return fmt::format("{}: {}: {}\n{}", study.name, counted(points_in(study), "point"),
                       fmt::join(parts, " × "), study.title.empty() ? "" : study.title + "\n");
}

std::string sweep_text(const Study& study, const SweepOutcomes& outcomes, const TextStyle& style) {
    const std::vector<SweepRow> rows = sweep_rows(study, outcomes);
    const std::vector<SweepMean> means = sweep_means(study, rows);
    std::string text;
    if (means.size() <= kMostRows) text += means_text(study, means, style) + "\n";
    if (study.systems.size() > 1 && (study.axes.size() > 1 || means.size() > kMostRows))
        for (std::size_t axis = 0; axis < study.axes.size(); ++axis)
            if (study.axes[axis].rows.size() > 1)
                text += axis_text(study, means, axis, style) + "\n";
    return text + refused_text(study, outcomes);
}

std::string refused_text(const Study& study, const SweepOutcomes& outcomes) {
    std::map<std::string, std::vector<std::size_t>> by_reason;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (outcomes[i] && !outcomes[i]->ran()) by_reason[outcomes[i]->refused].push_back(i);
    std::string text;
    std::size_t said = 0;
    for (const auto& [reason, points] : by_reason) {
        if (said++ == kMostReasons) {
            text += fmt::format("… and {} further reasons: --csv has all.\n",
                                by_reason.size() - kMostReasons);
            break;
        }
        text += fmt::format("Refused, {}, first {}: {}\n", counted(points.size(), "point"),
                            words_of(study, point_of(study, points.front())), reason);
    }
    return text;
}

std::string points_text(const Study& study, const std::vector<std::string>& refusals) {
    const std::size_t systems = study.systems.size();
    std::string text;
    for (std::size_t i = 0; i < points_in(study); ++i) {
        const SweepPoint point = point_of(study, i);
        const std::string& reason = refusals[point.setting * systems + i % systems];
        text += words_of(study, point);
        text += reason.empty() ? "\n" : fmt::format(": will be refused: {}\n", reason);
    }
    return text;
}

}  // namespace moehub
