// Anchors have OKLCh lightness 0.985 − 0.745 t, hue 100° − 150° t, t = 0, 0.1, … 1, and a chroma
// that is highest in the middle (B. Ottosson's OKLab, 2020); between them sRGB is mixed.
#include "report/profile_colour.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Rgb {
    int red, green, blue;
};
constexpr std::array<Rgb, 11> kAnchors{{{0xfc, 0xfa, 0xf1},
                                        {0xfa, 0xde, 0xa5},
                                        {0xfb, 0xbb, 0x6f},
                                        {0xf8, 0x96, 0x4b},
                                        {0xed, 0x71, 0x43},
                                        {0xd7, 0x51, 0x4d},
                                        {0xb8, 0x39, 0x58},
                                        {0x92, 0x2d, 0x5d},
                                        {0x6a, 0x28, 0x57},
                                        {0x43, 0x24, 0x45},
                                        {0x2b, 0x11, 0x3b}}};

constexpr int kLast = kColourLevels - 1;

/// Of two channels, `part` of `parts` from the first to the second; whole numbers only.
int mixed(int first, int second, int part, int parts) {
    return (first * (parts - part) + second * part + parts / 2) / parts;
}

}  // namespace

int colour_level(double value, double cap) {
    if (!(value > 0) || !(cap > 0)) return 0;
    return static_cast<int>(std::lround(std::min(value / cap, 1.0) * kLast));
}

std::string colour_of(int level) {
    const int steps = static_cast<int>(kAnchors.size()) - 1;
    const int at = std::clamp(level, 0, kLast) * steps;
    const int anchor = std::min(at / kLast, steps - 1), part = at - anchor * kLast;
    const Rgb& a = kAnchors[static_cast<std::size_t>(anchor)];
    const Rgb& b = kAnchors[static_cast<std::size_t>(anchor) + 1];
    return fmt::format("#{:02x}{:02x}{:02x}", mixed(a.red, b.red, part, kLast),
                       mixed(a.green, b.green, part, kLast), mixed(a.blue, b.blue, part, kLast));
}

double colour_cap(std::vector<double> values, double least) {
    if (values.empty()) return least;
    const std::size_t rank = values.size() - 1 - values.size() / 200;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), at, values.end());
    constexpr std::array<double, 12> kRound{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20};
    const double wanted = std::max(*at, least);
    for (const double round : kRound)
        if (wanted <= round) return round;
    return std::ceil(wanted / 10) * 10;
}

}  // namespace moehub
