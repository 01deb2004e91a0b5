#include "report/bar.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace moehub {

std::string bar(double fraction, int width) {
    constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
    const auto eighths = static_cast<std::size_t>(std::lround(share * 8 * std::max(width, 0)));
    std::string out;
    for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
    return out.append(kEighths[eighths % 8]);
}

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

std::string shortened_bar(std::string_view bar, std::size_t width, std::size_t full) {
    constexpr std::string_view kMark = "│";
    std::vector<std::string_view> marks;
    for (std::size_t begin = 0; begin < bar.size();) {
        std::size_t end = begin + 1;
        while (end < bar.size() && (static_cast<unsigned char>(bar[end]) & 0xc0) == 0x80) ++end;
        marks.push_back(bar.substr(begin, end - begin));
        begin = end;
    }
    std::string out;
    for (std::size_t column = 0; column * full < marks.size() * width; ++column) {
        const std::size_t begin = column * full / width;
        const std::size_t end =
            std::min(marks.size(), std::max(begin + 1, (column + 1) * full / width));
        std::string_view mark = marks[(begin + end - 1) / 2];
        for (std::size_t i = begin; i < end; ++i)
            if (marks[i] == kMark) mark = kMark;
        out += mark;
    }
    return out;
}

}  // namespace moehub
