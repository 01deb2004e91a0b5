/// A comparison of systems for people and for programs.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"
#include "study/layer_case.hpp"

#include <moehub/compare.hpp>

#include <string>
#include <vector>

namespace moehub {

/// What was simulated, in one line; a second one says what differs from the usual.
std::string head_text(const LayerCase& layer);

/// A row per system. Speed-up and share of ideal need more than one.
std::string table_text(const Comparison& comparison, const TextStyle& style);

/// Each system's time as a bar divided into compute, exposed communication and host.
std::string bars_text(const Comparison& comparison, const TextStyle& style);

/// What the words of the software column mean.
std::string software_text(const Comparison& comparison);
/// Systems that were not simulated, a line for each reason; empty where there are none.
std::string left_out_text(const std::vector<LeftOut>& systems);
/// What every run checked.
std::string checks_text(const Comparison& comparison);

/// A statistic's name in words and its value with its unit, which the name's ending says.
struct StatisticWords {
    std::string name;
    std::string value;
};
StatisticWords in_words(const Statistic& one);

/// What the system's units counted, by unit, each with what it means; `rows` is what a row is.
std::string statistics_text(const LayerResult& result, const TextStyle& style,
                            const std::string& rows = "(token, expert) pairs");

/// The layer, "results", one per system, and "left_out"; times in µs, sizes in bytes.
Json comparison_json(const LayerCase& layer, const Comparison& comparison);

}  // namespace moehub
