// Tables of training steps, in at most 100 columns.
#include "report/bar.hpp"
#include "report/plan_report.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 70;
constexpr std::size_t kBesideBar = 12;  ///< its number, its seconds
constexpr int kShareWidth = 32;
constexpr std::size_t kLayoutWidth = 43;  ///< what the other columns leave of 100
constexpr double kNothing = 1e-6;         ///< a share that rounding leaves

std::string gigabytes(double bytes) {
    return fmt::format("{:.1f}", bytes / 1e9);
}

/// Its last word says no more than the column's title.
std::string limit_words(std::string limit) {
    constexpr std::string_view kEnd = " communication";
    if (limit.ends_with(kEnd)) limit.resize(limit.size() - kEnd.size());
    return limit;
}

}  // namespace

std::vector<std::string> layout_lines(const ParallelLayout& layout, std::size_t width) {
    const std::string text = to_text(layout);
    std::vector<std::string> lines{""};
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size() - 1) + 1;
        const std::string part = text.substr(begin, end - begin);
        if (!lines.back().empty() && lines.back().size() + part.size() > width)
            lines.emplace_back();
        lines.back() += part;
        begin = end;
    }
    return lines;
}

std::string layouts_table(const std::vector<TrainingStep>& steps, const TextStyle& style) {
    Table table({{""},
                 {"parallel layout", Table::Align::text},
                 {"MFU"},
                 {"tok/s/GPU"},
                 {"step s"},
                 {"GB"},
                 {"limited by", Table::Align::left, 1}});
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TrainingStep& step = steps[i];
        const std::vector<std::string> lines = layout_lines(step.layout, kLayoutWidth);
        table.add({fmt::format("{}", i + 1), lines.front(), percent(step.mfu),
                   grouped(std::llround(step.tokens_per_second)), significant(step.seconds),
                   gigabytes(step.memory.sum()), limit_words(step.limit)});
        for (std::size_t line = 1; line < lines.size(); ++line) table.add({"", lines[line]});
    }
    return table.text(style);
}

std::string breakdown_text(const std::vector<TrainingStep>& steps, const TextStyle& style) {
    std::vector<Table::Column> columns{{"share of the step", Table::Align::left}};
    std::vector<std::vector<NamedPart>> parts;
    for (const TrainingStep& step : steps) {
        columns.push_back({fmt::format("{}", columns.size())});
        parts.push_back(parts_of(step.parts));
    }
    Table table(columns);
    for (std::size_t row = 0; row < parts.front().size(); ++row) {
        std::vector<std::string> cells{std::string(parts.front()[row].name)};
        bool any = false;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const double share = parts[i][row].value / steps[i].seconds;
            cells.push_back(share < kNothing ? "–" : percent(share));
            any = any || share >= kNothing;
        }
        if (any) table.add(std::move(cells));
    }
    std::string out = table.text(style) + "\n";
    double slowest = 0;
    for (const TrainingStep& step : steps) slowest = std::max(slowest, step.seconds);
    const int width = style.bar_width(kBarWidth, kBesideBar);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        std::vector<BarPart> marks;
        for (const NamedPart& part : parts[i]) marks.push_back({part.value, part.mark});
        out += fmt::format("{:>2} {} {} s\n", i + 1, stacked_bar(marks, slowest, width),
                           significant(steps[i].seconds));
    }
    return out +
           "   █ compute  ▓ recomputed  ▒ communication  ░ bubble, imbalance  · other\n"
           "   shares are of the stage that is busy longest\n";
}

std::string memory_text(const TrainingStep& step, const TextStyle& style) {
    Table table({{"memory a GPU", Table::Align::left}, {"GB"}, {"share"}, {"", Table::Align::bar}});
    const auto add = [&](std::string_view name, double bytes, bool with_bar) {
        table.add({std::string(name), gigabytes(bytes), percent(bytes / step.capacity),
                   with_bar ? bar(bytes / step.capacity, kShareWidth) : ""});
    };
    for (const NamedPart& part : parts_of(step.memory))
        if (part.value != 0) add(part.name, part.value, true);
    add("in all", step.memory.sum(), true);
    add("it has", step.capacity, false);
    if (step.memory.host == 0) return table.text(style);
    return table.text(style) +
           fmt::format("and {} of the host's memory\n", byte_size(step.memory.host));
}

std::string stages_text(const TrainingStep& step, const TextStyle& style) {
    constexpr std::size_t kMostRows = 24;
    std::vector<StageTime> stages(static_cast<std::size_t>(step.layout.pp));
    double longest = 0;
    for (const StageTime& one : step.stages) {
        StageTime& stage = stages[static_cast<std::size_t>(one.stage)];
        stage.stage = one.stage;
        stage.forward += one.forward;
        stage.backward += one.backward;
        longest = std::max(longest, stage.forward + stage.backward);
    }
    Table table({{"stage"}, {"forward ms"}, {"backward ms"}, {"", Table::Align::bar}});
    const bool cut = stages.size() > kMostRows;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const bool end = i < kMostRows / 2 || i + kMostRows / 2 >= stages.size();
        if (cut && i == kMostRows / 2) table.add({"…"});
        if (cut && !end) continue;  // what lies between is alike
        const StageTime& one = stages[i];
        table.add({fmt::format("{}", one.stage), fmt::format("{:.2f}", 1e3 * one.forward),
                   fmt::format("{:.2f}", 1e3 * one.backward),
                   bar((one.forward + one.backward) / longest, kShareWidth)});
    }
    return table.text(style);
}

}  // namespace moehub
