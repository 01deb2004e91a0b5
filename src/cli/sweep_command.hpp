/// Sweeps, by whichever command they are asked for.
#pragma once
#include "request/sweep_arguments.hpp"

namespace moehub {

/// Checks, runs, saves, prints. Throws InputError.
void run_sweep_command(const SweepArguments& arguments);

}  // namespace moehub
