// Units' statistics: who counted, what, how much, what it means.
#include "base/utf8.hpp"
#include "report/comparison.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Units whose names do not speak for themselves.
constexpr struct {
    std::string_view unit;
    std::string_view title;
} kTitles[] = {
    {"rpm", "Runtime Packet Manager, producer's hub: shapes stores into packets"},
    {"aau", "Address Allocation Unit, consumer's hub: gives each row its row number"},
    {"dam", "Data Availability Manager, consumer's hub: releases thread blocks"},
    {"al", "AL table and TLB, consumer's hub: where each token's row lies"},
    {"ts", "TS table, consumer's hub: tiles of rows that have come"},
    {"or", "OR table, at home: tokens whose experts are through"},
    {"merge", "merge unit, switch's port: one request for all GPUs that ask for the same"},
    {"memory", "regions that receive rows"},
};

std::string heading(const std::string& unit, const TextStyle& style) {
    const auto* const known = std::find_if(std::begin(kTitles), std::end(kTitles),
                                           [&](const auto& one) { return one.unit == unit; });
    const std::string name = style.colour ? fmt::format("\x1b[1m{}\x1b[0m", unit) : unit;
    return known == std::end(kTitles) ? name : fmt::format("{}: {}", name, known->title);
}

/// What every system counts.
std::vector<Statistic> of_layer(const LayerResult& result, const std::string& rows) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {
        {"layer", "GEMM-1_end_us", to_us(result.first_gemm),
         "from the start until the last GPU is through"},
        {"layer", "compute_us", to_us(result.breakdown.compute),
         "of the GPU that computes longest"},
        {"layer", "rows", number(result.rows), rows},
        {"layer", "payload_bytes", number(result.payload), "that crossed between GPUs"},
        {"layer", "packets", number(result.packets), "that reached a GPU, acknowledgements aside"},
        {"layer", "events", number(result.events), "that the simulator handled"},
    };
}

}  // namespace

StatisticWords in_words(const Statistic& one) {
    std::string name = one.name;
    std::string value = one.value == std::round(one.value) && std::abs(one.value) < 1e15
                            ? grouped(static_cast<std::int64_t>(one.value))
                            : significant(one.value);
    const auto without_ending = [&name](std::string_view ending) {
        if (!name.ends_with(ending)) return false;
        name.resize(name.size() - ending.size());
        return true;
    };
    if (without_ending("_bytes")) value = byte_size(one.value);
    if (without_ending("_us")) value = duration(one.value * 1e-6);
    std::replace(name.begin(), name.end(), '_', ' ');
    return {name, value};
}

std::string statistics_text(const LayerResult& result, const TextStyle& style,
                            const std::string& rows) {
    std::vector<Statistic> list = of_layer(result, rows);
    list.insert(list.end(), result.statistics.begin(), result.statistics.end());
    std::size_t name_width = 0;
    std::size_t value_width = 0;
    for (const Statistic& one : list) {
        const StatisticWords words = in_words(one);
        name_width = std::max(name_width, display_width(words.name));
        value_width = std::max(value_width, display_width(words.value));
    }
    std::string out;
    std::string unit;
    for (const Statistic& one : list) {
        if (one.unit != unit)
            out += fmt::format("{}{}\n", unit.empty() ? "" : "\n", heading(one.unit, style));
        unit = one.unit;
        const auto [name, value] = in_words(one);
        const std::string blanks(value_width - display_width(value), ' ');
        out += fmt::format("  {:{}}  {}{}  {}\n", name, name_width, blanks, value, one.doc);
    }
    return out;
}

}  // namespace moehub
