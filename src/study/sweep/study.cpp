#include "study/sweep/study.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/toml.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::size_t seeds_in(const Study& study) {
    return std::max<std::size_t>(1, study.seeds.size());
}

std::string toml_list(const std::vector<std::string>& texts) {
    std::vector<std::string> items;
    for (const std::string& text : texts) items.push_back(toml_string(text));
    return fmt::format("[{}]", fmt::join(items, ", "));
}

void check_axis(const SweepAxis& axis) {
    const std::string keys = fmt::format("{}", fmt::join(axis.keys, ", "));
    if (axis.rows.empty())
        throw input_error("{}: {}: found no values, allowed: one at least", axis.where, keys);
    if (axis.rows.size() > kMostAxisValues)
        throw input_error("{}: {}: found {} values, allowed: up to {}", axis.where, keys,
                          axis.rows.size(), kMostAxisValues);
    std::set<std::vector<std::string>> seen;
    for (const auto& row : axis.rows)
        if (!seen.insert(row).second)
            throw input_error("{}: {}: found {} twice, allowed: once", axis.where, keys,
                              moehub::quoted(fmt::format("{}", fmt::join(row, ", "))));
}

void check_keys(const Study& study) {
    std::set<std::string> seen;
    const auto once = [&](const std::string& key, const std::string& where) {
        if (!seen.insert(key).second)
            throw input_error("{}: {}: stands more than once", where, key);
    };
    for (const StudySetting& setting : study.fixed) once(setting.key, setting.where);
    for (const SweepAxis& axis : study.axes)
        for (const std::string& key : axis.keys) once(key, axis.where);
}

/// Whether all keys of the axis are of systems other than this one.
bool concerns_others(const SweepAxis& axis, const std::string& own_name) {
    constexpr std::string_view kSystem = "system.";
    return std::all_of(axis.keys.begin(), axis.keys.end(), [&](const std::string& key) {
        return key.starts_with(kSystem) &&
               !key.starts_with(fmt::format("{}{}.", kSystem, own_name));
    });
}

}  // namespace

void check(const Study& study) {
    check_keys(study);
    for (const SweepAxis& axis : study.axes) check_axis(axis);
    if (study.systems.empty())
        throw InputError(study.origin + ": systems: found none, allowed: one at least");
    const auto is_there = std::find(study.systems.begin(), study.systems.end(), study.baseline);
    if (!study.baseline.empty() && is_there == study.systems.end())
        throw input_error("{}: baseline: found {}, allowed: one of the systems {}", study.origin,
                          moehub::quoted(study.baseline), fmt::join(study.systems, ", "));
    std::size_t points = seeds_in(study) * study.systems.size();
    for (const SweepAxis& axis : study.axes) {
        points = points > kMostPoints ? points : points * axis.rows.size();
        if (points > kMostPoints)
            throw input_error("{}: more than {} points", study.origin, kMostPoints);
    }
}

std::vector<std::string> keys_of(const Study& study) {
    std::vector<std::string> keys;
    for (const SweepAxis& axis : study.axes)
        keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
    return keys;
}

std::optional<std::string> where_is(const Study& study, std::string_view key) {
    for (const StudySetting& setting : study.fixed)
        if (setting.key == key) return setting.where;
    for (const SweepAxis& axis : study.axes)
        if (std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end())
            return axis.where;
    return std::nullopt;
}

std::string definition_of(const Study& study) {
    std::string text =
        fmt::format("kind = {}\nsystems = {}\n", toml_string(study.kind), toml_list(study.systems));
    if (!study.seeds.empty()) text += fmt::format("seeds = {}\n", toml_list(study.seeds));
    if (!study.fixed.empty()) text += "[set]\n";
    for (const StudySetting& setting : study.fixed)
        text += fmt::format("{} = {}\n", toml_string(setting.key), toml_string(setting.value));
    for (std::size_t i = 0; i < study.axes.size(); ++i) {
        const SweepAxis& axis = study.axes[i];
        text += fmt::format("[zip.{}]\n", i + 1);  // with a single key it is a grid's axis
        for (std::size_t key = 0; key < axis.keys.size(); ++key) {
            std::vector<std::string> values;
            for (const auto& row : axis.rows) values.push_back(row[key]);
            text += fmt::format("{} = {}\n", toml_string(axis.keys[key]), toml_list(values));
        }
    }
    return text;
}

std::size_t settings_in(const Study& study) {
    std::size_t settings = 1;
    for (const SweepAxis& axis : study.axes) settings *= axis.rows.size();
    return settings;
}

std::size_t points_in(const Study& study) {
    return settings_in(study) * seeds_in(study) * study.systems.size();
}

SweepPoint point_of(const Study& study, std::size_t number) {
    SweepPoint point;
    point.number = number;
    point.system = study.systems[number % study.systems.size()];
    const std::size_t run = number / study.systems.size();
    if (!study.seeds.empty()) point.seed = study.seeds[run % study.seeds.size()];
    point.setting = run / seeds_in(study);
    std::vector<const std::vector<std::string>*> rows(study.axes.size());
    std::size_t rest = point.setting;
    for (std::size_t i = study.axes.size(); i-- > 0;) {
        rows[i] = &study.axes[i].rows[rest % study.axes[i].rows.size()];
        rest /= study.axes[i].rows.size();
    }
    for (const auto* row : rows) point.values.insert(point.values.end(), row->begin(), row->end());
    return point;
}

std::vector<std::size_t> same_points(const Study& study, std::size_t number) {
    const std::size_t system = number % study.systems.size();
    const std::string& name =
        study.own_names.empty() ? study.systems[system] : study.own_names[system];
    // A setting's number is one of digits, the last axis' the last: others' digits run through all.
    std::size_t step = seeds_in(study) * study.systems.size();
    std::vector<std::size_t> same{number};
    for (std::size_t i = study.axes.size(); i-- > 0;) {
        const std::size_t rows = study.axes[i].rows.size();
        if (concerns_others(study.axes[i], name)) {
            std::vector<std::size_t> more;
            for (const std::size_t one : same) {
                const std::size_t first = one - one / step % rows * step;
                for (std::size_t row = 0; row < rows; ++row) more.push_back(first + row * step);
            }
            same = std::move(more);
        }
        step *= rows;
    }
    std::sort(same.begin(), same.end());
    return same;
}

std::string words_of(const Study& study, const SweepPoint& point) {
    const std::vector<std::string> keys = keys_of(study);
    std::vector<std::string> words;
    for (std::size_t i = 0; i < keys.size(); ++i)
        words.push_back(fmt::format("{}={}", keys[i], point.values[i]));
    if (!point.seed.empty()) words.push_back("seed " + point.seed);
    if (!point.system.empty()) words.push_back(point.system);
    return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace moehub
