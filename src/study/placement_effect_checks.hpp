/// What placement_effect() cannot do.
#pragma once
#include "study/placement_effect_steps.hpp"

#include <moehub/placement_effect.hpp>

namespace moehub {

/// Throws InputError unless the sizes of everything fit together.
void check_sizes(const EffectInput& input, const EffectOptions& options);

/// Throws InputError where a system cannot run a layer of a layout, naming both.
void check_layers(const EffectInput& input, const EffectOptions& options,
                  const ProfileSteps& steps);

}  // namespace moehub
