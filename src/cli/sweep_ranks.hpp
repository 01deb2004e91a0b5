/// A sweep that mpirun started on several processes.
#pragma once
#include "study/sweep/transport.hpp"

#include <memory>

namespace moehub {

/// No launcher of MPI started this process with others.
bool is_alone();

/// What the processes speak by; null: this one is alone. Throws InputError when there are several,
/// and the module that speaks MPI is not there.
std::unique_ptr<Transport> load_transport();

}  // namespace moehub
