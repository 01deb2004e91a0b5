/// What of a recording is simulated under each layout.
#pragma once
#include "request/place_arguments.hpp"

#include <moehub/placement_effect.hpp>

namespace moehub {

/// Held-out tokens where there are some, else the first profile's; drawn where only counts are
/// known, which is noted. Of its layers not those behind the model's, of multi-token prediction,
/// and on many GPUs some evenly chosen ones: a layer takes a second there. The layouts keep the
/// same layers.
Profile simulated_part(const PlaceTask& task, std::vector<NamedLayout>& layouts,
                       std::vector<std::string>& notes);

}  // namespace moehub
