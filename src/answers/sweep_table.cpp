// A finished sweep: every point for programs, means and charts for people.
#include "answers/sweep_request.hpp"
#include "report/number.hpp"
#include "study/sweep/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kMostRead = 60;     ///< rows of a table that is still read in a terminal
constexpr std::size_t kMostRows = 2000;   ///< rows of a page's table; the page stays small
constexpr std::size_t kMostPlaces = 12;   ///< values that each have a tick
constexpr double kWide = 8;               ///< a ratio from which equal ratios are equal distances
constexpr std::size_t kMostReasons = 10;  ///< reasons of refusals that are named

/// A swept key: its values as numbers in one unit where they are such, else as texts.
struct KeyColumn {
    Column column;
    std::vector<std::pair<std::string, Json>> values;

    Json value(const std::string& text) const {
        for (const auto& [known, number] : values)
            if (known == text) return number;
        return text;
    }
};

/// "_us" of "µs", "_bytes" of "B", "_GB_per_s" of "GB/s": what the name of a column of numbers ends
/// in.
std::string ending_of(std::string unit) {
    if (unit == "B") return "_bytes";
    for (const auto& [sign, letters] : {std::pair("µ", "u"), std::pair("/", "_per_")})
        if (const auto at = unit.find(sign); at != std::string::npos)
            unit.replace(at, std::string_view(sign).size(), letters);
    return unit.empty() ? "" : "_" + unit;
}

/// "page_pool_bytes" of page_pool; "bytes" says its unit already.
std::string with_ending(const std::string& key, const std::string& ending) {
    return ("_" + key).ends_with(ending) ? key : key + ending;
}

std::vector<KeyColumn> key_columns(const Study& study) {
    std::vector<KeyColumn> columns;
    for (const SweepAxis& axis : study.axes)
        for (std::size_t key = 0; key < axis.keys.size(); ++key) {
            std::vector<std::string> texts;
            for (const auto& row : axis.rows) texts.push_back(row[key]);
            const auto numbers = numbers_of(texts);
            const std::string unit = numbers ? numbers->unit : "";
            KeyColumn& made = columns.emplace_back();
            made.column = {axis.keys[key], with_ending(axis.keys[key], ending_of(unit))};
            made.column.plain_key = true;
            for (std::size_t i = 0; numbers && i < texts.size(); ++i) {
                const double number = numbers->values[i];
                made.values.emplace_back(texts[i],
                                         number == std::round(number) && std::abs(number) < 1e15
                                             ? Json(std::llround(number))
                                             : Json(number));
            }
        }
    return columns;
}

bool has_systems(const Study& study) {
    return !study.systems.front().empty();
}

/// One row a point that has run.
Table points_table(const Study& study, const std::vector<SweepRow>& rows) {
    Table table{"results", "", {}, {}};
    const std::vector<KeyColumn> keys = key_columns(study);
    for (const KeyColumn& key : keys) table.columns.push_back(key.column);
    for (const char* one : {"system", "seed", "refused", "speedup", "share_of_ideal"})
        table.columns.push_back({one, one});
    for (const SweepMeasure& measure : study.measures)
        table.columns.push_back({measure.name, measure.name});
    for (Column& column : table.columns) column.plain_key = true;
    for (const SweepRow& row : rows) {
        if (row.outcome == nullptr) continue;
        std::vector<Json>& cells = table.rows.emplace_back();
        for (std::size_t i = 0; i < keys.size(); ++i)
            cells.push_back(keys[i].value(row.point.values[i]));
        const bool ran = row.outcome->ran();
        cells.push_back(or_null(row.point.system));
        cells.push_back(row.point.seed.empty() ? Json(nullptr) : Json(std::stoll(row.point.seed)));
        cells.push_back(value_if(!ran, row.outcome->refused));
        cells.push_back(has_systems(study) ? or_null(row.speedup) : Json(nullptr));
        cells.push_back(or_null(row.share_of_ideal));
        for (std::size_t i = 0; i < study.measures.size(); ++i)
            cells.push_back(!ran                      ? Json(nullptr)
                            : study.measures[i].whole ? Json(std::llround(row.outcome->values[i]))
                                                      : Json(row.outcome->values[i]));
    }
    return table;
}

/// "time µs" of "time_us".
std::string measure_words(const Study& study) {
    std::string name = study.measures.front().name;
    for (const auto& [ending, unit] :
         {std::pair("_us", " µs"), std::pair("_seconds", " s"), std::pair("_bytes", " B")})
        if (name.ends_with(ending))
            name.replace(name.size() - std::string(ending).size(), std::string::npos, unit);
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

/// A row for each setting and system.
Table means_table(const Study& study, const std::vector<SweepMean>& means, std::size_t most) {
    const bool spread = std::any_of(means.begin(), means.end(),
                                    [](const SweepMean& mean) { return mean.deviation > 0; });
    const bool ideal = std::any_of(means.begin(), means.end(),
                                   [](const SweepMean& mean) { return mean.share_of_ideal; });
    Table table{"", study.seeds.size() > 1 ? "Means over seeds" : "", {}, {}};
    for (const std::string& key : keys_of(study)) table.columns.push_back({key, "", kOnce});
    table.columns.push_back({"system", "", has_systems(study) ? kText : kHidden});
    table.columns.push_back({measure_words(study), "", kTenths});
    if (study.measures.front().name.ends_with("_seconds")) table.columns.back().show = kSignificant;
    table.columns.push_back({"±", "", spread ? kTenths : kHidden});
    table.columns.push_back({"speed-up", "", study.systems.size() > 1 ? kTimes : kHidden});
    table.columns.push_back({"of ideal", "", ideal ? kPercent : kHidden});
    for (const SweepMean& mean : means) {
        if (table.rows.size() == most) break;
        auto& cells = table.rows.emplace_back(mean.values.begin(), mean.values.end());
        cells.emplace_back(mean.system);
        if (mean.runs == 0) {
            cells.emplace_back(mean.refused.empty() ? "not run" : "refused");
            cells.resize(table.columns.size());
            continue;
        }
        cells.emplace_back(mean.time_us);
        cells.emplace_back(mean.deviation);
        cells.push_back(or_null(mean.speedup));
        cells.push_back(or_null(mean.share_of_ideal));
    }
    return table;
}

std::string title_of(const SweepAxis& axis) {
    return fmt::format("{}", fmt::join(axis.keys, " / "));
}

std::string all_else(const AxisSummary& summary) {
    if (summary.shared == summary.settings) return "all else";
    return fmt::format("{} of {} other settings, those that all can run", summary.shared,
                       summary.settings);
}

/// How much faster each system is at each value of an axis.
Table axis_table(const Study& study, const SweepAxis& axis, const AxisSummary& summary) {
    const std::string baseline = baseline_of(study);
    Table table{"",
                fmt::format("Speed-up over {} by {}, geometric mean over {}:", baseline,
                            title_of(axis), all_else(summary)),
                {{title_of(axis), "", kSignificant}},
                {}};
    for (const std::string& system : study.systems)
        if (system != baseline) table.columns.push_back({system, "", kTimes});
    for (const AxisValue& value : summary.values) {
        std::vector<Json>& cells = table.rows.emplace_back();
        cells.emplace_back(value.value);
        for (std::size_t i = 0; i < study.systems.size(); ++i)
            if (study.systems[i] != baseline) cells.push_back(or_null(value.speedups[i]));
    }
    return table;
}

/// One number of each system at each value of the axis.
using Numbers = std::vector<std::optional<double>> AxisValue::*;

std::string series_name(const Study& study, std::size_t system) {
    return has_systems(study) ? study.systems[system] : measure_words(study);
}

Block axis_chart(const Study& study, const std::vector<AxisValue>& values, const SweepAxis& axis,
                 Numbers numbers, ChartAxis y) {
    const std::string title = fmt::format("{} by {}", y.title, title_of(axis));
    std::vector<std::string> texts;
    for (const auto& row : axis.rows) texts.push_back(row.front());
    const auto places = numbers_of(texts);
    if (!places) {  // names stand side by side
        BarChart bars{title, y.title, {}, {}};
        for (const AxisValue& value : values) bars.categories.push_back(value.value);
        for (std::size_t system = 0; system < study.systems.size(); ++system) {
            bars.series.push_back({series_name(study, system), {}});
            for (const AxisValue& value : values)
                bars.series.back().values.push_back((value.*numbers)[system]);
        }
        return bars;
    }
    const auto [least, most] = std::minmax_element(places->values.begin(), places->values.end());
    ChartAxis x{title_of(axis), *least > 0 && *most / *least >= kWide, *least == 0};
    if (!places->unit.empty()) x.title += ", " + places->unit;
    const bool each = values.size() <= kMostPlaces;
    if (each)
        for (const AxisValue& value : values) x.labels.push_back(value.value);
    LineChart chart{title, std::move(x), std::move(y), {}};
    for (std::size_t system = 0; system < study.systems.size(); ++system) {
        LineSeries& series = chart.series.emplace_back();
        series.name = series_name(study, system);
        for (std::size_t i = 0; i < values.size(); ++i)
            if (const auto number = (values[i].*numbers)[system])
                series.points.push_back(
                    {each ? static_cast<double>(i) : places->values[i], *number, values[i].value});
    }
    return chart;
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

Section axis_section(const Study& study, const std::vector<SweepMean>& means, std::size_t number) {
    const SweepAxis& axis = study.axes[number];
    const AxisSummary summary = axis_summary(study, means, number);
    Section section{title_of(axis)};
    section.blocks.push_back(
        axis_chart(study, summary.values, axis, &AxisValue::times_us, {measure_words(study)}));
    if (study.systems.size() > 1) {
        section.blocks.push_back(axis_chart(study, summary.values, axis, &AxisValue::speedups,
                                            {"speed-up over " + baseline_of(study)}));
        const bool said = study.axes.size() > 1 || means.size() > kMostRead;
        if (said) section.blocks.push_back({axis_table(study, axis, summary), Reader::terminal});
    }
    const bool others = std::any_of(study.axes.begin(), study.axes.end(), [&](const auto& one) {
        return &one != &axis && one.rows.size() > 1;
    });
    if (others || study.seeds.size() > 1)
        section.notes.push_back(
            {fmt::format("Each point is the geometric mean over {} of the means over seeds.",
                         all_else(summary)),
             Reader::page});
    return section;
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", grouped(static_cast<std::int64_t>(count)), one,
                       count == 1 ? "" : "s");
}

std::vector<std::string> refusals_of(const Study& study, const SweepOutcomes& outcomes) {
    std::map<std::string, std::vector<std::size_t>> by_reason;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (outcomes[i] && !outcomes[i]->ran()) by_reason[outcomes[i]->refused].push_back(i);
    std::vector<std::string> sentences;
    for (const auto& [reason, points] : by_reason) {
        if (sentences.size() == kMostReasons) {
            sentences.push_back(fmt::format("… and {} further reasons: --csv has all.",
                                            by_reason.size() - kMostReasons));
            break;
        }
        sentences.push_back(fmt::format("Refused, {}, first {}: {}",
                                        counted(points.size(), "point"),
                                        words_of(study, point_of(study, points.front())), reason));
    }
    return sentences;
}

std::string lead_of(const Study& study) {
    std::vector<std::string> parts;
    for (const SweepAxis& axis : study.axes)
        parts.push_back(fmt::format("{} ({})", fmt::join(axis.keys, " with "), axis.rows.size()));
    if (has_systems(study)) parts.push_back(counted(study.systems.size(), "system"));
    if (!study.seeds.empty()) parts.push_back(counted(study.seeds.size(), "seed"));
    return fmt::format("{}: {}: {}", study.name, counted(points_in(study), "point"),
                       fmt::join(parts, " × "));
}

Json facts_of(const Study& study, const std::string& database) {
    Json json;
    json["study"] = study.name;
    json["title"] = study.title;
    json["kind"] = study.kind;
    json["systems"] = has_systems(study) ? Json(study.systems) : Json::array();
    json["baseline"] = has_systems(study) ? Json(baseline_of(study)) : Json(nullptr);
    json["set"] = Json::array();
    for (const StudySetting& setting : study.fixed)
        json["set"].push_back(fmt::format("{}={}", setting.key, setting.value));
    json["axes"] = Json::array();
    for (const SweepAxis& axis : study.axes) {
        Json& one = json["axes"].emplace_back();
        one["keys"] = axis.keys;
        one["values"] = Json::array();
        for (const auto& row : axis.rows) one["values"].push_back(Json(row));
    }
    json["points"] = points_in(study);
    json["database"] = or_null(database);
    return json;
}

/// What was swept, and under what.
std::string usual_title(const Study& study) {
    constexpr std::size_t kMostNamed = 4;
    const std::string what = !has_systems(study) ? study.kind
                             : study.systems.size() > kMostNamed
                                 ? fmt::format("{} systems", study.systems.size())
                                 : fmt::format("{}", fmt::join(study.systems, ", "));
    return fmt::format("{} by {}", what, fmt::join(keys_of(study), ", "));
}

}  // namespace

Answer sweep_table(const Study& study, const SweepOutcomes& outcomes, const std::string& database) {
    const std::vector<SweepRow> rows = sweep_rows(study, outcomes);
    const std::vector<SweepMean> means = sweep_means(study, rows);
    Answer answer{.title = study.title.empty() ? usual_title(study) : study.title};
    answer.lead = {lead_of(study)};
    if (!study.title.empty()) answer.lead.push_back(study.title);
    answer.facts = facts_of(study, database);
    Section all{"All settings"};
    all.blocks.push_back({points_table(study, rows), Reader::program});
    const bool read = means.size() <= kMostRead;
    all.blocks.push_back({means_table(study, means, kMostRows), read ? Reader::all : Reader::page});
    if (means.size() > kMostRows)
        all.notes.push_back(
            {fmt::format("The first {} of {} rows; --csv has all.", grouped(kMostRows),
                         grouped(static_cast<std::int64_t>(means.size()))),
             Reader::page});
    answer.sections.push_back(std::move(all));
    for (std::size_t axis = 0; axis < study.axes.size(); ++axis)
        if (study.axes[axis].rows.size() > 1)
            answer.sections.push_back(axis_section(study, means, axis));
    if (auto map = speedup_map(study, means))
        answer.sections.push_back({"Both axes", {}, {std::move(*map)}});
    Section end{"Refused"};
    for (std::string& one : refusals_of(study, outcomes)) end.notes.push_back(std::move(one));
    const auto done = static_cast<std::size_t>(
        std::count_if(outcomes.begin(), outcomes.end(), [](const auto& one) { return one; }));
    if (!database.empty())
        end.notes.push_back({done == outcomes.size() ? fmt::format("Results: {}", database)
                                                     : fmt::format("Results: {}: {} of {} points",
                                                                   database, done, outcomes.size()),
                             Reader::terminal});
    answer.sections.push_back(std::move(end));
    answer.configuration.emplace_back("Study", definition_of(study));
    return answer;
}

}  // namespace moehub
