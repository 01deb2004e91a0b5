#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "report/placement_report.hpp"
#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kLineWidth = 96;
constexpr const char* kUnknown = "–";

std::string hundredths(double value, bool known = true) {
    return known ? fmt::format("{:.2f}", value) : kUnknown;
}
std::string thousandths(double value, bool known = true) {
    return known ? fmt::format("{:.3f}", value) : kUnknown;
}

/// At blanks; every line but the first begins with two of them.
std::string wrapped(const std::string& text) {
    std::string out = "-";
    std::size_t width = 1;
    for (std::size_t start = 0; start < text.size();) {
        std::size_t end = std::min(text.find(' ', start), text.size());
        if (text.compare(end, 2, " %") == 0) end = std::min(text.find(' ', end + 1), text.size());
        const std::string word = text.substr(start, end - start);
        const bool fits = width + 1 + display_width(word) <= kLineWidth;
        out += fits ? " " : "\n  ";
        width = (fits ? width + 1 : 2) + display_width(word);
        out += word;
        start = end + 1;
    }
    return out + "\n";
}

std::string machine_text(const PlacementReport& report) {
    std::string out = fmt::format("{} GPU{}", report.gpus, report.gpus == 1 ? "" : "s");
    if (report.nodes > 1) out += fmt::format(" in {} nodes", report.nodes);
    return out + fmt::format(" of {}", report.machine);
}

std::string slots_text(const PlacementReport& report) {
    if (report.slots_per_gpu == 0) return "slots that differ";
    std::string out =
        fmt::format("{} slot{} a GPU", report.slots_per_gpu, report.slots_per_gpu == 1 ? "" : "s");
    if (report.replicas > 0) out += fmt::format(", {} of a layer for copies", report.replicas);
    return out;
}

/// Of the profile that has the most.
int most_blocks(const PlacementReport& report) {
    int most = 1;
    for (const PlacementTable& table : report.training)
        most = std::max(most, table.blocks(report.load_blocks));
    return most;
}

/// A line for each profile with fewer blocks than asked for.
std::string few_blocks_text(const PlacementReport& report) {
    std::string out;
    for (const PlacementTable& table : report.training) {
        const int blocks = table.blocks(report.load_blocks);
        if (!report.searches() || blocks == report.load_blocks) continue;
        const std::string name = report.training.size() > 1 ? " " + table.profile : "";
        out += printable(fmt::format("the profile{} has only {} block{}, {} asked for", name,
                                     blocks, blocks == 1 ? "" : "s", report.load_blocks)) +
               "\n";
    }
    return out;
}

std::string head(const PlacementReport& report) {
    std::string what = fmt::format("{} layer{} of {} experts", report.layers,
                                   report.layers == 1 ? "" : "s", report.experts);
    if (report.top_k > 0) what += fmt::format(", top-{}", report.top_k);
    if (report.model) what = fmt::format("{}: {}", *report.model, what);
    const std::string how = method_text(report);
    return printable(fmt::format("{}, on {}, {}", what, machine_text(report), slots_text(report))) +
           "\n" + printable(fmt::format("{}, seed {}", how, report.seed)) + "\n" +
           few_blocks_text(report);
}

std::string profile_line(const PlacementTable& table, bool held_out) {
    std::string out = table.profile;
    out += table.tokens > 0
               ? fmt::format(", {} token{}", grouped(table.tokens), table.tokens == 1 ? "" : "s")
               : ", counts";
    if (table.weight != 1) out += fmt::format(", weight {}", print_number(table.weight));
    return printable(out + (held_out ? ", held out" : ", placed by")) + "\n";
}

/// A baseline that is the method asked for stands once.
bool shown(const PlacementTable& table, std::size_t row) {
    return row + 1 == table.rows.size() || table.rows[row].layout != table.rows.back().layout;
}

std::string rows_text(const PlacementReport& report, const PlacementTable& table,
                      const TextStyle& style) {
    const bool nodes = report.nodes > 1;
    std::vector<Table::Column> columns{
        {"layout", Table::Align::left}, {"load"}, {"worst layer"}, {"GPUs/token"}};
    if (nodes) columns.push_back({"nodes/token"});
    columns.push_back({"off-GPU"});
    if (nodes) columns.push_back({"off-node"});
    columns.push_back({"heaviest pair"});
    columns.push_back({"activated"});
    if (table.known.moved) columns.push_back({"moved"});
    Table out(columns);
    const KnownParts& known = table.known;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        if (!shown(table, i)) continue;
        const auto& [layout, one] = table.rows[i];
        std::vector<std::string> cells{layout, thousandths(one.load_max_over_mean),
                                       thousandths(one.load_worst_layer),
                                       thousandths(one.gpus_per_token, known.tokens)};
        if (nodes) cells.push_back(thousandths(one.nodes_per_token, known.tokens));
        cells.push_back(known.transitions ? percent(one.off_gpu_transitions) : kUnknown);
        if (nodes)
            cells.push_back(known.transitions ? percent(one.off_node_transitions) : kUnknown);
        cells.push_back(hundredths(one.heaviest_pair, known.transitions));
        cells.push_back(hundredths(one.activated_max_over_mean, known.tokens));
        if (known.moved) cells.push_back(grouped(one.moved_experts));
        out.add(std::move(cells));
    }
    return out.text(style);
}

std::string legend(const PlacementReport& report) {
    std::string out =
        "load: busiest GPU over the mean, mean over layers; off-GPU: transitions from a layer to "
        "the next\nthat change GPU; heaviest pair: over an even spread; activated: experts a batch "
        "wakes, busiest\nover mean\n";
    if (report.training.front().known.moved)
        out += "moved: experts to copy from the current layout\n";
    return out;
}

/// The front as a table with the options that give each; empty without one.
std::string pareto_text(const PlacementReport& report, const TextStyle& style) {
    if (!report.pareto) return "";
    const bool nodes = report.nodes > 1;
    const bool transitions = report.judged().front().known.transitions;
    std::vector<Table::Column> columns{{"load"}, {"GPUs/token"}};
    if (nodes) columns.push_back({"nodes/token"});
    columns.push_back({"off-GPU"});
    columns.push_back({"heaviest pair"});
    columns.push_back({"options", Table::Align::text});
    Table table(columns);
    for (const ParetoPoint& point : *report.pareto) {
        const Evaluation& one = point.evaluation;
        std::vector<std::string> cells{thousandths(one.load_max_over_mean),
                                       thousandths(one.gpus_per_token)};
        if (nodes) cells.push_back(thousandths(one.nodes_per_token));
        cells.push_back(transitions ? percent(one.off_gpu_transitions) : kUnknown);
        cells.push_back(hundredths(one.heaviest_pair, transitions));
        cells.push_back(flags_of(point));
        table.add(std::move(cells));
    }
    return fmt::format("Layouts of which none is better in everything, {}\n",
                       report.held_out.empty() ? "on the profiles" : "on the held-out tokens") +
           table.text(style);
}

/// What to type next; empty where nothing was written.
std::string use_text(const PlacementReport& report) {
    const PlacementFile& file = report.file;
    if (file.path.empty()) return "";
    std::string out;
    const auto lines = server_command(report.result.layout, file.format, file.path, report.nodes);
    if (!lines.empty()) out += "\nThe server's command line:\n";
    for (const std::string& line : lines) out += "    " + printable(line) + "\n";
    out += "\nWhat it does to a layer, or to the model:\n";
    const std::string& profile = report.judged().front().profile;
    const bool one_file = profile.find(' ') == profile.npos;
    for (const std::string& line :
         {fmt::format("    moehub compare --machine {} --gpus {} --model {} \\", report.machine,
                      report.gpus, report.model.value_or("MODEL")),
          fmt::format("        --routing {} \\", one_file ? profile : "FOLDER_OF_DUMPS"),
          fmt::format("        --layout {}", file.path)})
        out += printable(line) + "\n";
    return out;
}

}  // namespace

std::string method_text(const PlacementReport& report) {
    const std::string objective = to_string(report.result.objective);
    if (!report.searches())
        return fmt::format("{}, which has its own aim; judged by {}", report.method, objective);
    std::string out = fmt::format("{}, minimising {}", report.method, objective);
    if (report.worst_profile) out += " of the worst profile";
    if (report.load_cap > 0) out += fmt::format(", load at most {}", print_number(report.load_cap));
    if (const int blocks = most_blocks(report); blocks > 1)
        out += fmt::format(" in each of {} blocks", blocks);
    return out;
}

std::string placement_text(const PlacementReport& report, const TextStyle& style) {
    std::string out = head(report) + "\n";
    for (const PlacementTable& table : report.training)
        out += profile_line(table, false) + rows_text(report, table, style) + "\n";
    for (const PlacementTable& table : report.held_out)
        out += profile_line(table, true) + rows_text(report, table, style) + "\n";
    out += legend(report) + "\n";
    for (const std::string& part : {pareto_text(report, style), effect_text(report, style)})
        if (!part.empty()) out += part + "\n";
    for (const std::string& sentence : placement_sentences(report))
        out += wrapped(printable(sentence));
    return out + use_text(report);
}

}  // namespace moehub
