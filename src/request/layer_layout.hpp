/// `--layout FILE`: experts of a simulated layer stand where a server's layout has them.
#pragma once
#include "request/nouns.hpp"

#include <moehub/expert_layout.hpp>
#include <moehub/model.hpp>
#include <moehub/routing.hpp>

#include <string>

namespace moehub {

/// Any format that `moehub place` writes or reads, of this model on so many expert-parallel ranks.
/// Throws InputError, one line that names the file and what of it is another's.
ExpertLayout load_layout(const std::string& file, const Model& model, int ranks);

/// The same of one that is given, of one layer or more.
ExpertLayout fitting_layout(const Loaded<ExpertLayout>& layout, const Model& model, int ranks);

/// The MoE layer, from 0, that is nearest to the mean of all in the rows of its busiest rank and in
/// the rows that are sent once per rank, and so stands for them: a whole model simulates one layer.
/// Rows are those of the same layer of the routing, or of its only one.
int mean_layer(const ExpertLayout& layout, const Routing& routing);

}  // namespace moehub
