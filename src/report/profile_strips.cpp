#include "report/profile_drawing.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kStripWidth = 116;
constexpr double kGap = 26;

struct Strip {
    std::array<std::string, 2> heading;
    double from = 0;  ///< at the left end
    double to = 0;    ///< at the right end
    bool shares = false;
    std::string mark;                         ///< what the mark is
    std::vector<std::optional<double>> bars;  ///< by layer
    std::vector<std::optional<double>> marks;
};

/// Without a value for any layer: no strip.
template <class Part>
std::optional<Strip> concentration_strip(const ProfileSummary& summary,
                                         std::optional<Part> LayerSummary::*part,
                                         std::string heading) {
    Strip strip{{std::move(heading), "in the heaviest 10 %"}, 0, 0, true, "by chance", {}, {}};
    bool any = false;
    for (const LayerSummary& layer : summary.layers) {
        const auto& one = layer.*part;
        any = any || one;
        strip.bars.push_back(one ? std::optional(one->concentration.heaviest_tenth) : std::nullopt);
        strip.marks.push_back(one ? std::optional(one->concentration.by_chance) : std::nullopt);
    }
    return any ? std::optional(strip) : std::nullopt;
}

std::vector<Strip> strips_of(const ProfileSummary& summary) {
    Strip gpus{{fmt::format("busiest of {} GPUs", summary.gpus), "over the mean, in order"},
               1,
               0,
               false,
               "at best",
               {},
               {}};
    for (const LayerSummary& layer : summary.layers) {
        gpus.bars.push_back(layer.load.gpu_contiguous);
        gpus.marks.push_back(layer.load.gpu_bound);
    }
    std::vector<Strip> strips{gpus};
    if (auto strip =
            concentration_strip(summary, &LayerSummary::coactivation, "pairs in the layer"))
        strips.push_back(*strip);
    if (auto strip = concentration_strip(summary, &LayerSummary::next, "pairs to the next layer"))
        strips.push_back(*strip);
    return strips;
}

std::string value_text(const Strip& strip, double value) {
    return strip.shares ? percent(value) : fmt::format("{:.2f}", value);
}

double right_end(const Strip& strip) {
    double most = strip.from + 0.1;
    for (const auto* values : {&strip.bars, &strip.marks})
        for (const auto& value : *values) most = std::max(most, value.value_or(0));
    return most;
}

/// The largest of the layers in one row.
std::optional<double> gathered(const std::vector<std::optional<double>>& values, std::size_t row,
                               std::size_t step) {
    std::optional<double> most;
    for (std::size_t at = row * step; at < std::min(values.size(), (row + 1) * step); ++at)
        if (values[at] && (!most || *values[at] > *most)) most = values[at];
    return most;
}

void draw(Picture& picture, const Strip& strip, const Box& box, std::size_t step) {
    using Anchor = Picture::Anchor;
    const double scale = box.width / (strip.to - strip.from);
    const std::size_t rows = (strip.bars.size() + step - 1) / step;
    const double high = box.height / static_cast<double>(rows);
    const double gap = high > 4 ? 1 : 0;
    for (std::size_t row = 0; row < rows; ++row) {
        const auto bar = gathered(strip.bars, row, step), mark = gathered(strip.marks, row, step);
        const double y = box.y + static_cast<double>(row) * high;
        if (bar)
            picture.rectangle({box.x, y, std::max(0.0, *bar - strip.from) * scale, high - gap},
                              "#8fa9c4",
                              fmt::format("{}; {} {}", value_text(strip, *bar), strip.mark,
                                          value_text(strip, mark.value_or(0))));
        if (mark)
            picture.rectangle(
                {box.x + std::max(0.0, *mark - strip.from) * scale - 0.75, y, 1.5, high - gap},
                "#22384f");
    }
    picture.rectangle({box.x - 0.5, box.y, 0.6, box.height}, "#999");
    picture.text(box.x, box.y - 20, strip.heading[0], {.bold = true});
    picture.text(box.x, box.y - 7, strip.heading[1], {.size = 10});
    picture.text(box.x, box.y + box.height + 13,
                 strip.shares ? "0" : fmt::format("{:.0f}", strip.from), {.size = 10});
    picture.text(box.x + box.width, box.y + box.height + 13, value_text(strip, strip.to),
                 {.anchor = Anchor::end, .size = 10});
    picture.rectangle({box.x, box.y + box.height + 21, 1.5, 9}, "#22384f");
    picture.text(box.x + 6, box.y + box.height + 29, strip.mark, {.size = 10});
}

}  // namespace

double draw_strips(Picture& picture, const ProfileReport& report, const StripDrawing& where) {
    std::vector<Strip> strips = strips_of(report.profiles[where.profile]);
    for (const ProfileSummary& other : report.profiles)
        for (const Strip& one : strips_of(other))
            for (Strip& strip : strips)
                if (strip.heading == one.heading) strip.to = std::max(strip.to, right_end(one));
    double x = where.rows.x;
    for (const Strip& strip : strips) {
        draw(picture, strip, {x, where.rows.y, kStripWidth, where.rows.height},
             static_cast<std::size_t>(where.row_step));
        x += kStripWidth + kGap;
    }
    return x - kGap - where.rows.x;
}

}  // namespace moehub
