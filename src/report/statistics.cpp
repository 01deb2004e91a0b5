// Units' statistics as a table: who counted, what, how much, what it means.
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
    {"aau", "Address Allocation Unit, consumer's hub: gives each row its place"},
    {"dam", "Data Arrival Monitor, consumer's hub: releases thread blocks"},
    {"memory", "regions that receive rows"},
};

std::string title_of(const std::string& unit) {
    const auto* const known = std::find_if(std::begin(kTitles), std::end(kTitles),
                                           [&](const auto& one) { return one.unit == unit; });
    return known == std::end(kTitles) ? "" : fmt::format("  {}", known->title);
}

/// The name in words and the value with its unit; the name's ending says which unit.
std::pair<std::string, std::string> in_words(const Statistic& one) {
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

/// What every system counts.
std::vector<Statistic> of_layer(const LayerResult& result) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {
        {"layer", "first_gemm_us", to_us(result.first_gemm), "from the start to the last GEMM-1's end"},
        {"layer", "compute_us", to_us(result.breakdown.compute), "of the GPU that ends last"},
        {"layer", "rows", number(result.rows), "(token, expert) pairs"},
        {"layer", "payload_bytes", number(result.payload), "that crossed between GPUs"},
        {"layer", "packets", number(result.packets), "that reached a GPU, acknowledgements aside"},
        {"layer", "events", number(result.events), "that the simulator handled"},
    };
}

}  // namespace

std::string statistics_text(const LayerResult& result, bool bold) {
    std::vector<Statistic> list = of_layer(result);
    list.insert(list.end(), result.statistics.begin(), result.statistics.end());
    std::vector<std::string> units;
    for (const Statistic& one : list)
        if (std::find(units.begin(), units.end(), one.unit) == units.end())
            units.push_back(one.unit);
    Table table({{"counted, all GPUs", Table::Align::left}, {""}, {"", Table::Align::left}});
    for (const std::string& unit : units) {
        if (unit != units.front()) table.add({});
        table.add({unit + title_of(unit)});
        for (const Statistic& one : list) {
            if (one.unit != unit) continue;
            auto [name, value] = in_words(one);
            table.add({"  " + name, value, one.doc});
        }
    }
    return table.text(bold);
}

}  // namespace moehub
