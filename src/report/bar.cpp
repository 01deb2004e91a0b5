#include "report/bar.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {

std::string stacked_bar(std::span<const BarPart> parts, double full, int width) {
    std::string out;
    if (!(full > 0) || !std::isfinite(full)) return out;
    double sum = 0;
    long column = 0;
    for (const BarPart& part : parts) {
        if (part.value > 0) sum += part.value;
        const double share = std::min(sum / full, 1.0);
        for (const long end = std::lround(share * std::max(width, 0)); column < end; ++column)
            out += part.mark;
    }
    return out;
}

}  // namespace moehub
