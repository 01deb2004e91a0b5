/// Logarithm and exponential that are the same bytes everywhere; the ones of libm may differ in the
/// last bit from one version to the next. Within 2 units in the last place of the true value.
#pragma once

namespace moehub {

/// Natural logarithm. -infinity at 0, NaN below.
double portable_log(double x);

/// Infinity where the result is no double, 0 where it is too small.
double portable_exp(double x);

}  // namespace moehub
