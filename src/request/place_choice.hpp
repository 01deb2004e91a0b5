/// Which layout is taken where a system is named: the search's own, or another that the system runs
/// faster.
#pragma once
#include "report/placement_report.hpp"
#include "request/place_arguments.hpp"

namespace moehub {

/// A layout and how it was found.
struct Candidate {
    std::string name;
    PlaceOptions options;
    PlaceResult result;
};

struct LayoutChoice {
    Candidate taken;
    std::optional<PlacementEffect> effect;  ///< of all systems that can run the layouts
    std::vector<std::string> notes;         ///< what was not taken, or not simulated, and why
};

/// Simulates experts in order, the current layout, EPLB's with the same slots and the one that was
/// found, on held-out tokens where there are some. Under the first system the fastest of those that
/// the options allow is taken: EPLB's, and where no objective was asked for the search's with the
/// objective load. What cannot be simulated is a note: the layout is there and good.
LayoutChoice choose_layout(const PlaceTask& task, const PlaceResult& found);

}  // namespace moehub
