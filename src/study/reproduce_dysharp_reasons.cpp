#include "study/reproduce_dysharp.hpp"

namespace moehub {
namespace {

constexpr std::string_view kDeepEpLong =
    "DeepEP's few sending SMs copy less than a link carries, as its authors measured, and rows are "
    "copied to experts and added up by passes of their own. With links filled and without those "
    "passes its lead would be near the published one.";
constexpr std::string_view kTutelLong =
    "Tutel pads every expert to the largest and cuts its rows into two pieces. Here more pieces "
    "would be faster; the paper does not say how many it takes.";
constexpr std::string_view kCometShort =
    "Comet sends one copy of a token to a GPU and keeps the wire busy nearly all the time. In the "
    "largest configurations its layer is little longer than the experts' GEMMs alone, which no "
    "system can be faster than: the published lead needs experts that compute faster against the "
    "wire than tensor cores at their FP8 rate do here.";

/// No entry, no excuse: a number that leaves the paper's by another side must be looked into.
constexpr Reason kReasons[] = {
    {"layer", "over deepep", Side::above, kDeepEpLong},
    {"layer", "over deepep, largest", Side::above, kDeepEpLong},
    {"layer", "over tutel", Side::above, kTutelLong},
    {"layer", "over tutel, largest", Side::above, kTutelLong},
    {"layer", "over comet", Side::below, kCometShort},
    {"training", "over deepep", Side::above, kDeepEpLong},
    {"training", "over tutel", Side::above, kTutelLong},
    {"training", "over comet", Side::below, kCometShort},
    {"wire", "communication in deepep's layer", Side::below,
     "Rows on the wire and experts at their FP8 rate take about as long as each other here, and "
     "passes over rows come on top. The published share would need experts beyond the tensor "
     "cores' peak, or a dispatch that fills less than half of a link."},
};

}  // namespace

std::string dysharp_reason(std::string_view figure, std::string_view what, Side side) {
    return reason_among(kReasons, figure, what, side);
}

}  // namespace moehub
