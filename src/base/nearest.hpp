/// "Did you mean": the known name that is fewest edits away.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace moehub {

/// The first known name that starts with `name`, else the nearest; empty when none is near (more
/// than a third of its letters differ).
std::string nearest(std::string_view name, std::span<const std::string> known);

/// `; did you mean "X"?`, or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace moehub
