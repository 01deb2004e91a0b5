/// The simulations behind a paper's figures: each distinct one runs once.
#pragma once
#include "base/parallel.hpp"

#include <moehub/layer.hpp>
#include <moehub/reproduce.hpp>
#include <moehub/system.hpp>

#include <functional>
#include <string>
#include <vector>

namespace moehub {

/// What all simulations of a paper have in common.
struct PaperSetup {
    std::string machine;               ///< a preset
    std::vector<std::string> changes;  ///< as --set takes them; as model.KEY of every model
    std::vector<Reading> readings;     ///< at least one
    Software software = {};            ///< around every system; what is not set is its own
    bool eager = true;                 ///< whole models: outside the MoE layers a host issues
                                       ///< operators one by one; false: graphs
    bool bound_scales = false;         ///< its ideal adds up results on GPUs
    bool residual = true;              ///< of sub-layers: the norm's kernel adds it, too
};

/// How figures get their simulations.
using Lookup = std::function<const ReproducedCell&(const CellKey&)>;

/// The cells that `ask` looks up, each once, in order of their keys; a layer that is also asked for
/// in training comes with that. What it looks up must not depend on what it is told: it gets empty
/// cells.
std::vector<CellKey> cells_asked(const std::function<void(const Lookup&)>& ask);

/// A layer of the paper's machine as it is read, and what the key asks for around it. A system that
/// cannot run it, or that there is not, leaves a refusal.
ReproducedCell simulate_cell(const PaperSetup& setup, const CellKey& key);

/// All of them, in the order given.
std::vector<ReproducedCell> simulate_cells(const PaperSetup& setup,
                                           const std::vector<CellKey>& keys,
                                           const ParallelOptions& options);

/// Among these, found by key and reading, a layer also in training; one that is not there is a
/// defect (std::logic_error). Refers to the cells.
Lookup lookup_in(const std::vector<ReproducedCell>& cells, const std::string& reading);

/// How long the wires of one GPU were at work, the busiest's: at any time those of the direction
/// that carried more count. No execution of the same steps, one after the other, takes less.
Ps busier_way(const std::vector<LinkUse>& links);

}  // namespace moehub
