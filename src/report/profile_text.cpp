#include "base/utf8.hpp"
#include "report/profile_heat.hpp"
#include "report/profile_report.hpp"
#include "report/profile_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMostColumns = 96;  ///< of a map
constexpr int kMostRows = 64;
constexpr std::size_t kManyLayers = 32;  ///< from here on extremes alone
constexpr int kBusiest = 12;
constexpr int kBarWidth = 40;
constexpr std::size_t kLineWidth = 96;

std::string table_text(const ReportTable& table, const TextStyle& style) {
    Table text(table.columns);
    for (const auto& row : table.rows) text.add(row);
    return text.text(style);
}

/// Where a word ends; a number and its % stay together.
std::size_t word_end(const std::string& text, std::size_t start) {
    std::size_t end = text.find(' ', start);
    while (end != std::string::npos && text.compare(end, 2, " %") == 0)
        end = text.find(' ', end + 1);
    return std::min(end, text.size());
}

/// At blanks, with two of them in front of every line but the first.
std::string wrapped(const std::string& text) {
    std::string out = "- ";
    std::size_t width = 2;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = word_end(text, start);
        const std::string word = text.substr(start, end - start);
        if (width + display_width(word) > kLineWidth && width > 2) {
            out.back() = '\n';
            out += "  ";
            width = 2;
        }
        out += word + " ";
        width += display_width(word) + 1;
        start = end + 1;
    }
    out.back() = '\n';
    return out;
}

/// What of a whole one row or column stands for.
std::string step_note(std::string_view what, int step) {
    return step == 1 ? "" : fmt::format("; the busiest of {} {} each", step, what);
}

std::string load_map(const ProfileSummary& summary, const TextStyle& style) {
    const HeatMap map =
        heat_map(relative_load(summary), summary.experts, {kMostRows, kMostColumns});
    std::vector<std::string> labels;
    for (int row = 0; row < map.rows; ++row)
        labels.push_back(
            fmt::format("{}", summary.layers[static_cast<std::size_t>(row * map.row_step)].number));
    return fmt::format("Load, layers × experts{}{}\n{}{} times the layer's mean\n",
                       step_note("experts", map.column_step), step_note("layers", map.row_step),
                       heat_text(map, labels, style.colour), heat_legend(style.colour));
}

std::string load_lines(const ProfileSummary& summary, const LoadSummary& load) {
    const std::string of_tokens =
        load.tokens > 0 ? fmt::format(" of {} tokens", grouped(load.tokens)) : "";
    return fmt::format(
        "{} rows{}, {} an expert\n"
        "variation {:.2f}, Gini {:.2f}, {:.1f} effective experts of {}, {} never chosen\n"
        "{} GPUs in order: the busiest has {:.2f} times the mean; at best {:.2f}\n",
        significant(load.rows), of_tokens, significant(load.mean), load.variation, load.gini,
        load.effective_experts, summary.experts, load.never_chosen, summary.gpus,
        load.gpu_contiguous, load.gpu_bound);
}

std::string structure_lines(const LayerSummary& layer) {
    std::string out;
    if (layer.next)
        out += fmt::format(
            "To the next layer: the heaviest tenth of the pairs has {}, by chance {}\n"
            "  mutual information {:.2f} bits, by chance {:.2f}; {} change GPU, experts in order\n",
            percent(layer.next->concentration.heaviest_tenth),
            percent(layer.next->concentration.by_chance), layer.next->information,
            layer.next->information_by_chance, percent(layer.next->off_gpu));
    if (layer.halves)
        out +=
            fmt::format("From the first half to the second: {} of the load moves, by chance {}\n",
                        percent(layer.halves->total_variation), percent(layer.halves->by_chance));
    return out;
}

std::string layer_text(const ProfileReport& report, std::size_t profile, const TextStyle& style) {
    const ProfileSummary& summary = report.profiles[profile];
    const LayerSummary& layer = summary.layers[static_cast<std::size_t>(*report.layer)];
    std::string out = fmt::format("Layer {}\n", layer.number) + load_lines(summary, layer.load) +
                      structure_lines(layer) + "\n" +
                      table_text(busiest_table(summary, *report.layer, kBusiest, kBarWidth), style);
    if (const ReportTable pairs = pairs_table(layer); !pairs.rows.empty())
        out +=
            fmt::format("\nChosen together, farthest above chance: {} of all pairs, by chance {}\n",
                        percent(layer.coactivation->top_share),
                        percent(layer.coactivation->top_share_by_chance)) +
            table_text(pairs, style);
    return out;
}

std::string one_text(const ProfileReport& report, std::size_t profile, const TextStyle& style) {
    const ProfileSummary& summary = report.profiles[profile];
    std::string out =
        fmt::format("{}\n{}\n\n", printable(name_text(report, profile)), size_text(summary));
    if (report.layer) return out + layer_text(report, profile, style) + "\n";
    out += table_text(overview_table(summary), style) + "\n";
    if (report.profiles.size() == 1 && summary.layers.size() > 1 &&
        summary.layers.size() <= kManyLayers) {
        out += table_text(layers_table(summary), style);
        for (const std::string& line : layers_legend(summary)) out += line + "\n";
        out += "\n";
    }
    return out + load_map(summary, style) + "\n";
}

}  // namespace

std::string profile_text(const ProfileReport& report, const TextStyle& style) {
    std::string out;
    for (std::size_t i = 0; i < report.profiles.size(); ++i) out += one_text(report, i, style);
    if (!report.differences.empty())
        out += "Load that differs, % of the rows, mean over layers (in brackets: by chance)\n" +
               table_text(differences_table(report), style) + "\n";
    out += "What it means for placing\n";
    for (const std::string& sentence : profile_sentences(report)) out += wrapped(sentence);
    return out;
}

}  // namespace moehub
