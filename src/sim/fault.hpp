/// A fault for tests: what one transfer carries is lost, comes twice, or comes late, while all
/// counts and acknowledgements say that it has arrived. Whatever the system, its check must notice.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>

namespace moehub::sim {

struct Fault {
    enum class What { none, drop, duplicate, delay };
    What what = What::none;
    std::int64_t transfer = 0;     ///< the n-th of those that carry rows
    Ps late = 0;                   ///< for a delay
    std::int64_t* seen = nullptr;  ///< counts those that carry rows, where set
};

}  // namespace moehub::sim
