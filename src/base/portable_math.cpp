// log: x = m · 2^e with m in [√½, √2), log x = e · log 2 + 2 · atanh(s), s = (m - 1) / (m + 1).
// exp: x = n · log 2 + r with |r| <= ½ log 2, exp x = 2^n · (1 + r + r²/2! + …).
// Series are summed to where terms fall below half a unit in the last place. The build must not
// fuse multiplications and additions (-ffp-contract=off).
#include "base/portable_math.hpp"

#include <cmath>
#include <limits>

namespace moehub {
namespace {

// log 2 in two parts; the high one ends in zeros, so that whole multiples of it are exact.
constexpr double kLog2High = 0x1.62e42feep-1;
constexpr double kLog2Low = 0x1.a39ef35793c76p-33;

}  // namespace

double portable_log(double x) {
    if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
    if (x == 0) return -std::numeric_limits<double>::infinity();
    if (std::isinf(x)) return x;
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);
    if (mantissa < 0x1.6a09e667f3bcdp-1) {  // √½
        mantissa *= 2;
        --exponent;
    }
    const double difference = mantissa - 1;  // exact
    const double s = difference / (2 + difference);
    const double square = s * s;
    double series = 0;
    for (int odd = 23; odd >= 3; odd -= 2) series = (series + 1.0 / odd) * square;
    // 2s = difference - s · difference: the large part of the result stays exact.
    const double small = s * (2 * series - difference);
    return exponent * kLog2High + (difference + (small + exponent * kLog2Low));
}

double portable_exp(double x) {
    if (std::isnan(x)) return x;
    if (x > 709.8) return std::numeric_limits<double>::infinity();
    if (x < -745.2) return 0;
    const double n = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
    const double r = (x - n * kLog2High) - n * kLog2Low;
    double series = 0;
    for (int i = 14; i >= 2; --i) series = (series + 1) * r / i;
    return std::ldexp(1 + (r + r * series), static_cast<int>(n));
}

}  // namespace moehub
