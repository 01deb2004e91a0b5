/// A comparison of systems for people and for programs.
#pragma once
#include "study/layer_case.hpp"

#include <moehub/compare.hpp>

#include <string>

namespace moehub {

/// What was simulated, in one line; a second one says what differs from the usual.
std::string head_text(const LayerCase& layer);

/// A row per system. Speed-up and share of ideal need more than one.
std::string table_text(const Comparison& comparison, bool bold);

/// Each system's time as a bar divided into compute, exposed communication and host.
std::string bars_text(const Comparison& comparison);

/// What the words of the software column mean.
std::string software_text(const Comparison& comparison);
/// What every run checked.
std::string checks_text(const Comparison& comparison);

/// What the system's units counted, by unit, each with what it means; `rows` is what a row is.
std::string statistics_text(const LayerResult& result, bool bold,
                            const std::string& rows = "(token, expert) pairs");

/// The layer and "results", one per system; times in µs, sizes in bytes.
std::string to_json(const LayerCase& layer, const Comparison& comparison);

}  // namespace moehub
