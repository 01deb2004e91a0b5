/// What simulated layers are answered with: systems beside one another, their traffic, their time
/// line and what their units counted. Whole models and placements show the same sections.
#pragma once
#include "answers/layer_request.hpp"
#include "report/answer.hpp"
#include "report/chart.hpp"

#include <moehub/compare.hpp>

#include <string>
#include <vector>

namespace moehub {

/// A comparison and what it is of: a sub-layer's name; empty: the only layer.
struct NamedComparison {
    std::string name;
    Comparison comparison;
};

/// What was simulated in one line; a second one says what differs from the usual.
std::vector<std::string> lead_of(const LayerCase& layer);
/// What was asked, for programs.
Json facts_of(const LayerCase& layer);

/// A row per system. Several comparisons of the same systems have a column each, and one of their
/// sum, which is `whole`.
Table results_table(const std::string& key, const Comparison& whole,
                    const std::vector<NamedComparison>& parts);
/// The rows of several sub-layers one by one, which the first column names, for programs.
Table sub_layers_table(const std::string& key, const std::vector<NamedComparison>& parts);
/// Where the time goes, speed-ups, the table.
Section systems_section(const std::string& heading, Table table, const Comparison& comparison);
/// Bytes by direction, and from GPU to GPU where that was recorded. Its heading starts with the
/// name.
Section traffic_section(const NamedComparison& one);
/// Every GPU over time.
Section timeline_section(const NamedComparison& one);
/// Statistics × systems; `rows` says what a row is. Programs get them by `key`.
Section units_section(const std::string& key, const std::vector<NamedComparison>& parts,
                      const std::string& rows, Reader reader);

/// What the words of the software column mean.
std::string software_words(const Comparison& comparison);
/// Systems that were not simulated, and why: a table for programs, sentences for people.
Table left_out_table(const std::vector<LeftOut>& systems);
std::vector<std::string> left_out_sentences(const std::vector<LeftOut>& systems);
/// What every run checked.
std::vector<std::string> checks_of(const LayerCase& layer, const Comparison& comparison);

/// The machine, the model and the systems as TOML.
Configuration configuration_of(const Machine& machine, const Model& model,
                               const std::vector<SystemSpec>& systems);

/// Systems whose links were recorded, over time; without systems where none were. `notes` gets what
/// was joined or left out so that the page stays small, and how to move about.
TimelineChart timeline_chart(const Comparison& comparison, std::vector<std::string>& notes);

}  // namespace moehub
