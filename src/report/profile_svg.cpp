#include "base/utf8.hpp"
#include "report/profile_colour.hpp"
#include "report/profile_drawing.hpp"
#include "report/profile_tables.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

using Anchor = Picture::Anchor;

constexpr HeatSize kMostCells{256, 512};
constexpr double kLeft = 62;
constexpr double kTop = 20;
constexpr double kHead = 74;  ///< of a profile, above its map
constexpr double kFoot = 76;  ///< below it: axis and colours
constexpr double kApart = 20;
constexpr double kRight = 30;
constexpr double kLeastWidth = 860;
constexpr double kLeastMap = 300;  ///< room for the colours below it

/// A label at most every so many pixels, at whole steps people like.
int tick_step(double size_of_one, double apart) {
    for (const int step : {1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256})
        if (step * size_of_one >= apart) return step;
    return 512;
}

std::string shortened(const std::string& name) {
    constexpr std::size_t kLongest = 80;
    const std::string text = printable(name);
    if (display_width(text) <= kLongest) return text;
    std::size_t from = text.size() - kLongest;
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
    return "…" + text.substr(from);
}

struct Panel {
    const ProfileSummary& summary;
    HeatMap map;
    Box box;
};

void draw_axes(Picture& picture, const Panel& panel) {
    const auto& [summary, map, box] = panel;
    const double high = box.height / map.rows, wide = box.width / map.columns;
    for (int row = 0; row < map.rows; row += tick_step(high, 12))
        picture.text(
            box.x - 6, box.y + (row + 0.5) * high + 3.5,
            fmt::format("{}", summary.layers[static_cast<std::size_t>(row * map.row_step)].number),
            {.anchor = Anchor::end, .size = 10});
    for (int column = 0; column < map.columns; column += tick_step(wide, 30))
        picture.text(box.x + (column + 0.5) * wide, box.y + box.height + 13,
                     fmt::format("{}", column * map.column_step),
                     {.anchor = Anchor::middle, .size = 10});
    picture.text(box.x - 38, box.y + box.height / 2, "layer",
                 {.anchor = Anchor::middle, .upwards = true});
    picture.text(box.x + box.width / 2, box.y + box.height + 27, "expert",
                 {.anchor = Anchor::middle});
    picture.text(box.x, box.y - 9, "load over the layer's mean", {.bold = true});
}

struct Size {
    double width;
    double height;
};

HeatMap map_of(const ProfileSummary& summary) {
    return heat_map(relative_load(summary), summary.experts, kMostCells);
}

/// One scale for all profiles.
double common_cap(const ProfileReport& report) {
    double cap = 2;
    for (const ProfileSummary& summary : report.profiles)
        cap = std::max(cap, colour_cap(map_of(summary).values, cap));
    return cap;
}

struct DrawnProfile {
    std::size_t profile;
    double top;
    double cap;
};

/// The map of one profile with all around it.
Size draw_profile(Picture& picture, const ProfileReport& report, const DrawnProfile& drawn) {
    const ProfileSummary& summary = report.profiles[drawn.profile];
    Panel panel{summary, map_of(summary), {}};
    const double cell_width = std::clamp(std::floor(1280.0 / panel.map.columns) / 2, 1.0, 26.0);
    const double cell_height = std::clamp(std::floor(840.0 / panel.map.rows) / 2, 2.0, 15.0);
    panel.box = {kLeft, drawn.top + kHead, panel.map.columns * cell_width,
                 panel.map.rows * cell_height};
    const Box& box = panel.box;
    picture.text(kLeft, drawn.top + 14, shortened(name_text(report, drawn.profile)),
                 {.size = 15, .bold = true, .colour = "#111"});
    picture.text(kLeft, drawn.top + 32, size_text(summary), {.size = 12});
    picture.cells(panel.map, box, drawn.cap);
    draw_axes(picture, panel);
    const double most = *std::max_element(panel.map.values.begin(), panel.map.values.end());
    picture.colour_bar({kLeft, box.y + box.height + 40, 180, 9}, drawn.cap, most > drawn.cap,
                       "times the mean");
    const Box strips{box.x + std::max(box.width, kLeastMap) + 34, box.y, 0, box.height};
    const double width = draw_strips(picture, report, {drawn.profile, strips, panel.map.row_step});
    return {strips.x + width, kHead + box.height + kFoot};
}

}  // namespace

std::string profile_svg(const ProfileReport& report) {
    Picture picture;
    const double cap = common_cap(report);
    double y = kTop, width = kLeastWidth;
    for (std::size_t i = 0; i < report.profiles.size(); ++i) {
        const Size size = draw_profile(picture, report, {i, y, cap});
        width = std::max(width, size.width + kRight);
        y += size.height + kApart;
    }
    y += draw_pairs(picture, report, {kLeft, y - kApart});
    return picture.svg(width, y, "Load of experts, and pairs of them, in recorded routing");
}

}  // namespace moehub
