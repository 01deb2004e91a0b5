/// Tables of a profile's summary, for the terminal and for pages alike.
#pragma once
#include "report/profile_report.hpp"
#include "report/table.hpp"

#include <string>
#include <vector>

namespace moehub {

struct ReportTable {
    std::vector<Table::Column> columns;
    std::vector<std::vector<std::string>> rows;
};

/// The name; of several with its number in front, from 1.
std::string name_text(const ProfileReport& report, std::size_t profile);

/// "8,321 tokens, 26 layers of 64 experts, top-6".
std::string size_text(const ProfileSummary& summary);

/// Each figure: mean over layers, the lowest and the highest with their layers.
ReportTable overview_table(const ProfileSummary& summary);
/// A row per layer.
ReportTable layers_table(const ProfileSummary& summary);
/// What the columns of layers_table mean, a line each.
std::vector<std::string> layers_legend(const ProfileSummary& summary);
/// The experts with the most rows.
ReportTable busiest_table(const ProfileSummary& summary, int layer, int most, int bar_width);
/// Pairs farthest above chance; no rows without pairs.
ReportTable pairs_table(const LayerSummary& layer);
/// Profile × profile: share of the load that differs. Profiles are numbered from 1.
ReportTable differences_table(const ProfileReport& report);

}  // namespace moehub
