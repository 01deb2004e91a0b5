/// The pictures of a profile.
#pragma once
#include "report/profile_picture.hpp"
#include "report/profile_report.hpp"

#include <string>

namespace moehub {

/// Beside the map of a profile's layers: bars by layer of what the GPUs get and of how pairs
/// concentrate, each with a mark at what is possible or given by chance; on one scale for all
/// profiles. `rows` has the map's height; its x is where they begin. Returns their width.
struct StripDrawing {
    std::size_t profile = 0;
    Box rows;
    int row_step = 1;
};
double draw_strips(Picture& picture, const ProfileReport& report, const StripDrawing& where);

/// Pairs of one layer, and from it to the next, over chance. Returns the height; 0 without pairs.
struct PairDrawing {
    double x = 0;
    double y = 0;
};
double draw_pairs(Picture& picture, const ProfileReport& report, const PairDrawing& where);

}  // namespace moehub
