/// Units of every quantity in moehub: time is int64 picoseconds, sizes are int64 bytes,
/// rates are double per second.
#pragma once
#include <cstdint>

namespace moehub {

using Ps = std::int64_t;
using Bytes = std::int64_t;

inline constexpr Ps kNs = 1'000;
inline constexpr Ps kUs = 1'000'000;
inline constexpr Ps kMs = 1'000'000'000;
inline constexpr Ps kSecond = 1'000'000'000'000;

constexpr double to_us(Ps t) {
    return static_cast<double>(t) / 1e6;  // rounded once: printed as short as it is
}
constexpr double to_seconds(Ps t) {
    return static_cast<double>(t) * 1e-12;
}

}  // namespace moehub
