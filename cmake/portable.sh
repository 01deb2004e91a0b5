#!/usr/bin/env bash
# The same bytes on every CPU: glibc picks its variant of exp, log, pow, sin … by the CPU at run
# time, and they differ in the last bit; <random>'s distributions differ between libraries. Fails
# with each use of one: base/portable_math.hpp has what the project needs of them. What is rounded
# exactly (sqrt, floor, fmod, ldexp …) may be used.
set -euo pipefail
cd "$(dirname "$0")/.."
roots='exp|exp2|expm1|exp10|log|log2|log10|log1p|pow|powr|sin|cos|tan|sincos|asin|acos|atan|atan2'
roots+='|sinh|cosh|tanh|asinh|acosh|atanh|hypot|cbrt|erf|erfc|tgamma|lgamma|lerp'
special='beta|expint|riemann_zeta|legendre|laguerre|hermite|comp_ellint_[123]|ellint_[123]'
headers='random|complex|valarray|experimental/simd'
code=$(grep -rnE --include='*.[ch]pp' '' src include | sed -E 's@//.*@@; s/^[^:]+:[0-9]+:/& /')
called="[^A-Za-z0-9_.>:](::|__builtin_)?($roots)[fl]?[[:space:]]*\("
named="std::(($roots)[fl]?|$special)([^A-Za-z0-9_]|\$)"
found=$(grep -E "$called|$named|#include <($headers)>" <<< "$code" |
  grep -v '^src/base/portable_math\.cpp:' || true)
[ -z "$found" ] && exit 0
sed 's/$/  <- differs by CPU: see base\/portable_math.hpp/' <<< "$found" >&2
exit 1
