// Tables of training steps, in at most 100 columns.
#include "base/utf8.hpp"
#include "report/bar.hpp"
#include "report/plan_report.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kWidth = 100;
constexpr int kBarWidth = 70;
constexpr int kShareWidth = 32;

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
    std::istringstream stream(text);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

std::string joined(const Words& words) {
    return fmt::format("{}", fmt::join(words, " "));
}

/// Words that every line has, in the first one's order.
Words common_words(const std::vector<Words>& lines) {
    Words common = lines.front();
    for (const Words& line : lines)
        std::erase_if(common, [&](const std::string& word) {
            return std::find(line.begin(), line.end(), word) == line.end();
        });
    return common;
}

Words without(Words words, const Words& those) {
    std::erase_if(words, [&](const std::string& word) {
        return std::find(those.begin(), those.end(), word) != those.end();
    });
    return words;
}

std::string gigabytes(double bytes) {
    return fmt::format("{:.1f}", bytes / 1e9);
}

Table table_of(const std::vector<TrainingStep>& steps, const std::vector<Words>& layouts) {
    Table table({{""},
                 {"parallel layout", Table::Align::left},
                 {"MFU"},
                 {"tokens/s/GPU"},
                 {"step s"},
                 {fmt::format("of {} GB", significant(steps.front().capacity / 1e9))},
                 {"limited by", Table::Align::left}});
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TrainingStep& step = steps[i];
        table.add({fmt::format("{}", i + 1), joined(layouts[i]), percent(step.mfu),
                   tenths(step.tokens_per_second), significant(step.seconds),
                   gigabytes(step.memory.sum()), step.limit});
    }
    return table;
}

std::size_t width_of(const std::string& text) {
    std::istringstream lines(text);
    std::size_t width = 0;
    for (std::string line; std::getline(lines, line);) width = std::max(width, display_width(line));
    return width;
}

}  // namespace

std::string layouts_table(const std::vector<TrainingStep>& steps, bool bold) {
    std::vector<Words> layouts;
    for (const TrainingStep& step : steps) layouts.push_back(words_of(to_text(step.layout)));
    const std::string whole = table_of(steps, layouts).text();
    if (width_of(whole) <= kWidth || steps.size() < 2) return table_of(steps, layouts).text(bold);
    const Words common = common_words(layouts);
    for (Words& words : layouts) words = without(words, common);
    return table_of(steps, layouts).text(bold) +
           (common.empty() ? "" : fmt::format("all of them: {}\n", joined(common)));
}

std::string breakdown_text(const std::vector<TrainingStep>& steps, bool bold) {
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
            cells.push_back(share == 0 ? "–" : percent(share));
            any = any || share != 0;
        }
        if (any) table.add(std::move(cells));
    }
    std::string out = table.text(bold) + "\n";
    double slowest = 0;
    for (const TrainingStep& step : steps) slowest = std::max(slowest, step.seconds);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        std::vector<BarPart> marks;
        for (const NamedPart& part : parts[i]) marks.push_back({part.value, part.mark});
        out += fmt::format("{:>2} {} {} s\n", i + 1, stacked_bar(marks, slowest, kBarWidth),
                           significant(steps[i].seconds));
    }
    return out + "   █ compute  ▓ recomputed  ▒ communication  ░ bubble, imbalance  · other\n";
}

std::string memory_text(const TrainingStep& step, bool bold) {
    Table table(
        {{"memory a GPU", Table::Align::left}, {"GB"}, {"share"}, {"", Table::Align::left}});
    const auto add = [&](std::string_view name, double bytes, bool with_bar) {
        table.add({std::string(name), gigabytes(bytes), percent(bytes / step.capacity),
                   with_bar ? bar(bytes / step.capacity, kShareWidth) : ""});
    };
    for (const NamedPart& part : parts_of(step.memory))
        if (part.value != 0) add(part.name, part.value, true);
    add("in all", step.memory.sum(), true);
    add("it has", step.capacity, false);
    return table.text(bold);
}

std::string stages_text(const TrainingStep& step, bool bold) {
    constexpr std::size_t kMostRows = 24;
    Table table({{"stage"}, {"piece"}, {"forward ms"}, {"backward ms"}, {"", Table::Align::left}});
    double longest = 0;
    for (const StageTime& one : step.stages)
        longest = std::max(longest, one.forward + one.backward);
    std::vector<StageTime> shown = step.stages;
    const bool cut = shown.size() > kMostRows;
    if (cut) {  // both ends: what lies between is alike
        shown.erase(shown.begin() + kMostRows / 2, shown.end() - kMostRows / 2);
    }
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const StageTime& one = shown[i];
        if (cut && i == kMostRows / 2) table.add({"…"});
        table.add({fmt::format("{}", one.stage), fmt::format("{}", one.piece),
                   fmt::format("{:.2f}", 1e3 * one.forward),
                   fmt::format("{:.2f}", 1e3 * one.backward),
                   bar((one.forward + one.backward) / longest, kShareWidth)});
    }
    return table.text(bold);
}

}  // namespace moehub
