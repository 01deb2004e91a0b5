#include "study/reproduce_dysharp.hpp"

#include <span>

namespace moehub {
namespace {

/// No entry, no excuse: a number that leaves the paper's by another side must be looked into.
constexpr std::span<const Reason> kReasons;

}  // namespace

std::string dysharp_reason(std::string_view figure, std::string_view what, Side side) {
    return reason_among(kReasons, figure, what, side);
}

}  // namespace moehub
