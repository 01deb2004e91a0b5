#include "report/profile_picture.hpp"

#include "base/utf8.hpp"
#include "report/profile_colour.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Hundredths of a pixel, without zeros at the end.
std::string px(double value) {
    std::string text = fmt::format("{:.2f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

std::string box_attributes(const Box& box) {
    return fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", px(box.x), px(box.y),
                       px(box.width), px(box.height));
}

/// As many as give round numbers; `cap` is one of colour_cap().
int ticks_for(double cap) {
    for (const int ticks : {5, 4, 3}) {
        const double halves = cap / ticks * 2;
        if (halves == std::floor(halves)) return ticks;
    }
    return 4;
}

}  // namespace

void Picture::rectangle(const Box& box, std::string_view fill, const std::string& title) {
    body_ += fmt::format(R"(<rect {} fill="{}")", box_attributes(box), fill);
    body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(title));
}

void Picture::text(double x, double y, std::string_view words, const Style& style) {
    constexpr std::array<std::string_view, 3> kAnchors{"start", "middle", "end"};
    body_ += fmt::format(
        R"(<text x="{}" y="{}" text-anchor="{}" font-size="{}" fill="{}"{}{}>{}</text>)", px(x),
        px(y), kAnchors[static_cast<std::size_t>(style.anchor)], style.size, style.colour,
        style.bold ? R"( font-weight="600")" : "",
        style.upwards ? fmt::format(" transform=\"rotate(-90 {} {})\"", px(x), px(y)) : "",
        escaped(words));
    body_ += "\n";
}

void Picture::cells(const HeatMap& map, const Box& box, double cap) {
    // Cells of one colour together: the file stays small.
    std::vector<std::string> of_level(kColourLevels);
    const double wide = box.width / map.columns, high = box.height / map.rows;
    for (int row = 0; row < map.rows; ++row)
        for (int column = 0; column < map.columns; ++column) {
            std::string& out =
                of_level[static_cast<std::size_t>(colour_level(map.at(row, column), cap))];
            const Box cell{box.x + column * wide, box.y + row * high, wide, high};
            out += fmt::format("M{} {}h{}v{}h-{}z", px(cell.x), px(cell.y), px(wide), px(high),
                               px(wide));
        }
    body_ += "<g shape-rendering=\"crispEdges\">\n";
    for (int level = 0; level < kColourLevels; ++level) {
        const std::string& found = of_level[static_cast<std::size_t>(level)];
        if (found.empty()) continue;
        body_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", colour_of(level), found);
    }
    body_ += "</g>\n";
    frame(box);
}

void Picture::colour_bar(const Box& box, double cap, bool beyond, std::string_view words) {
    const double wide = box.width / kColourLevels;
    body_ += "<g shape-rendering=\"crispEdges\">\n";
    for (int level = 0; level < kColourLevels; ++level)
        rectangle({box.x + level * wide, box.y, wide, box.height}, colour_of(level));
    body_ += "</g>\n";
    frame(box);
    const int ticks = ticks_for(cap);
    for (int tick = 0; tick <= ticks; ++tick)
        text(box.x + box.width * tick / ticks, box.y + box.height + 12,
             fmt::format("{}{:.4g}", tick == ticks && beyond ? "≥ " : "", cap * tick / ticks),
             {.anchor = Anchor::middle, .size = 10});
    text(box.x + box.width + 18, box.y + box.height, words, {});
}

void Picture::frame(const Box& box) {
    body_ += fmt::format(R"(<rect {} fill="none" stroke="#999" stroke-width="0.6"/>)",
                         box_attributes(box));
    body_ += "\n";
}

std::string Picture::svg(double width, double height, std::string_view title) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
        "role=\"img\">\n<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#fff\"/>\n{3}</svg>\n",
        px(width), px(height), escaped(title), body_);
}

}  // namespace moehub
