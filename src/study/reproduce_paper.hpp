/// How a paper is reproduced, whatever its figures are made of: each is a function that computes
/// what the paper publishes (presets/papers) and shows the cells behind it. Figures of simulated
/// layers look cells up; what they need is simulated once, by every reading.
#pragma once
#include "study/reproduce_cells.hpp"
#include "study/reproduce_published.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct FigureResult {
    std::vector<PublishedNumber> numbers = {};
    std::vector<PublishedClaim> claims = {};
    std::vector<FigureTable> tables = {};
};

/// What is known before anything runs. Throws InputError for an unknown figure.
Reproduction begun(const Publication& paper, const ReproduceOptions& options);
bool is_wanted(const Reproduction& all, const std::string& figure);
void add(FigureResult figure, Reproduction& all);
/// A quick run gives no reasons: its cells are not the paper's.
Reproduction ended(Reproduction all);

// The papers, one after the other; reproduce_paper.cpp has their table.
Reproduction reproduce_moe_hub(const ReproduceOptions& options);
Reproduction reproduce_dysharp(const ReproduceOptions& options);
Reproduction reproduce_cais(const ReproduceOptions& options);
Reproduction reproduce_moetuner(const ReproduceOptions& options);
Reproduction reproduce_pangu(const ReproduceOptions& options);

struct PaperFigure {
    std::string name;
    std::function<FigureResult(const Lookup&)> make;
    bool every_reading = true;  ///< false: only the first is asked
};

/// Over a paper's cells, or a few of them.
template <class Scope>
PaperFigure figure_of(std::string name, FigureResult (*make)(const Scope&, const Lookup&),
                      const Scope& scope, bool every_reading = true) {
    return {std::move(name), [make, scope](const Lookup& cell) { return make(scope, cell); },
            every_reading};
}

/// The machine, its changes and how the paper is read.
PaperSetup setup_of(const Publication& paper);

/// Of layers that are simulated. `all` was begun.
Reproduction reproduce_cells(Reproduction all, const PaperSetup& setup,
                             const std::vector<PaperFigure>& figures,
                             const ReproduceOptions& options);

}  // namespace moehub
