/// A paper's figures, each from cells that it looks up: what they need is simulated once, by every
/// reading.
#pragma once
#include "study/figure_result.hpp"
#include "study/reproduce_cells.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct PaperFigure {
    std::string name;
    std::string title;
    std::function<FigureResult(const Lookup&)> make;
    bool every_reading = true;  ///< false: only the first is asked
};

std::vector<NamedFigure> names_of(const std::vector<PaperFigure>& figures);

/// Fills in what is measured: `all` has the paper's name and setup already. Throws InputError for
/// an unknown figure.
Reproduction reproduce_paper(Reproduction all, const PaperSetup& setup,
                             const std::vector<PaperFigure>& figures, const ReasonOf& reason,
                             const ReproduceOptions& options);

}  // namespace moehub
