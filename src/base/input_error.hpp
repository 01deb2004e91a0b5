/// Errors of bad input whose one line is formatted.
#pragma once
#include <moehub/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace moehub {

/// An InputError with a formatted line, to be thrown.
template <class... Values>
InputError input_error(fmt::format_string<Values...> line, Values&&... values) {
    return InputError(fmt::format(line, std::forward<Values>(values)...));
}

}  // namespace moehub
