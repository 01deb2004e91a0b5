#include "report/comparison.hpp"

#include "base/utf8.hpp"
#include "report/bar.hpp"
#include "report/table.hpp"
#include "study/collective_names.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 72;
constexpr double kMega = 1e6;

std::string shared_experts(const Model& model) {
    return model.shared_experts == 0 ? "" : fmt::format(" + {} shared", model.shared_experts);
}

std::string routing_words(const LayerCase& layer) {
    if (layer.trace_layer)
        return fmt::format("{}, layer {}", layer.routing_name, *layer.trace_layer);
    return fmt::format("{} routing, seed {}", layer.routing_name, layer.seed.value_or(0));
}

/// Options and settings that are not as usual, in words.
std::vector<std::string> changes(const LayerCase& layer) {
    const LayerOptions& options = layer.options;
    std::vector<std::string> list = layer.settings;
    const Software& software = layer.software;
    if (software.host)
        list.push_back(
            fmt::format("host {}", *software.host == HostMode::eager ? "eager" : "graph"));
    if (software.fused_activation.value_or(false)) list.push_back("fused activation");
    if (software.fp8.value_or(false)) list.push_back("FP8 experts and rows");
    if (options.pass == Pass::backward) list.push_back("backward pass");
    if (options.tensor_parallel > 1)
        list.push_back(fmt::format("tensor parallel {}", options.tensor_parallel));
    if (layer.layout)
        list.push_back(fmt::format("layout {}, MoE layer {}{} (layer {} of the model)",
                                   layer.layout->file, layer.layout->layer,
                                   layer.layout->mean ? ", nearest to the mean of all" : "",
                                   layer.layout->number));
    if (layer.replicas > 0)
        list.push_back(fmt::format(
            "{} redundant experts, {}", grouped(layer.replicas),
            options.replicas == ReplicaPolicy::round_robin ? "round-robin" : "least-loaded"));
    if (options.region_rows > 0)
        list.push_back(fmt::format("regions of {} rows", grouped(options.region_rows)));
    if (options.page_rows > 0)
        list.push_back(fmt::format("pages of {} rows", grouped(options.page_rows)));
    if (options.page_pool > 0)
        list.push_back(
            fmt::format("page pool of {}", byte_size(static_cast<double>(options.page_pool))));
    return list;
}

Ps slowest(const Comparison& comparison) {
    Ps time = 0;
    for (const ComparisonRow& row : comparison.rows) time = std::max(time, row.result.time);
    return time;
}

}  // namespace

std::string head_text(const LayerCase& layer) {
    const Model& model = layer.model;
    std::string out = printable(fmt::format(
        "{} on {}: {} GPU{}, {} tokens, top-{} of {} experts{} ({}), {}, {} grain",
        layer.model_name, layer.machine_name, layer.machine.gpus(),
        layer.machine.gpus() == 1 ? "" : "s", grouped(layer.routing.tokens), model.top_k,
        model.experts, shared_experts(model), model.gated ? "gated" : "not gated",
        routing_words(layer), name_of(layer.options.grain)));
    const std::vector<std::string> list = changes(layer);
    if (!list.empty())
        out += fmt::format("\n{}", printable(fmt::format("with {}", fmt::join(list, ", "))));
    return out + "\n";
}

std::string table_text(const Comparison& comparison, const TextStyle& style) {
    const bool several = comparison.rows.size() > 1;
    const bool ideal = several && comparison.rows.front().share_of_ideal.has_value();
    std::vector<Table::Column> columns{
        {"system", Table::Align::left}, {"software", Table::Align::left, 6}, {"time µs"}};
    if (several) columns.push_back({fmt::format("vs {}", comparison.baseline)});
    if (ideal) columns.push_back({"of ideal"});
    columns.insert(columns.end(), {{"exposed µs", Table::Align::right, 1},
                                   {"host µs", Table::Align::right, 2},
                                   {"up MB", Table::Align::right, 4},
                                   {"down MB", Table::Align::right, 4},
                                   {"SM busy", Table::Align::right, 5}});
    Table table(columns);
    for (const auto& [system, result, speedup, share_of_ideal] : comparison.rows) {
        const std::string software = software_words(system) + (result.host_waits ? ", waits" : "");
        std::vector<std::string> cells{result.system, software, tenths(to_us(result.time))};
        if (several) cells.push_back(fmt::format("{:.2f}×", speedup));
        if (ideal) cells.push_back(percent(*share_of_ideal));
        cells.insert(
            cells.end(),
            {tenths(to_us(result.breakdown.communication)), tenths(to_us(result.breakdown.host)),
             tenths(static_cast<double>(result.bytes_up) / kMega),
             tenths(static_cast<double>(result.bytes_down) / kMega), percent(result.sm_busy)});
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::string bars_text(const Comparison& comparison, const TextStyle& style) {
    std::size_t name_width = 0;
    for (const ComparisonRow& row : comparison.rows)
        name_width = std::max(name_width, row.result.system.size());
    const int width = style.bar_width(kBarWidth, name_width + 2);
    std::string out = fmt::format(
        "{:{}}  █ compute  ▒ exposed communication  · host (launches, synchronisation)\n", "time",
        name_width);
    for (const ComparisonRow& row : comparison.rows) {
        const Breakdown& parts = row.result.breakdown;
        const BarPart bar[] = {{static_cast<double>(parts.compute), "█"},
                               {static_cast<double>(parts.communication), "▒"},
                               {static_cast<double>(parts.host), "·"}};
        out += fmt::format("{:{}}  {}\n", row.result.system, name_width,
                           stacked_bar(bar, static_cast<double>(slowest(comparison)), width));
    }
    return out;
}

std::string software_text(const Comparison& comparison) {
    const auto any = [&](auto property) {
        return std::any_of(comparison.rows.begin(), comparison.rows.end(), property);
    };
    std::string out =
        "Software: a host issues operators one by one (eager) or kernels follow one another by\n"
        "themselves (graph)";
    if (any([](const ComparisonRow& row) { return row.system.fused_activation; }))
        out += "; fused: no kernel for the activation";
    if (any([](const ComparisonRow& row) { return row.result.host_waits; }))
        out += ";\nwaits: the host must know counts of rows before it goes on";
    if (any([](const ComparisonRow& row) {
            return row.system.dispatch_element <= 1 && !row.system.narrow_experts();
        }))
        out += "; FP8 rows: sent in FP8, computed in BF16";
    out += ".\n";
    if (comparison.other_ideal)
        out += fmt::format("Systems in FP8 stand beside an ideal in FP8: {} µs.\n",
                           tenths(to_us(*comparison.other_ideal)));
    return out;
}

std::string left_out_text(const std::vector<LeftOut>& systems) {
    std::vector<std::pair<std::string, std::string>> lines;  // reason, systems
    for (const LeftOut& one : systems) {
        const auto same = std::find_if(lines.begin(), lines.end(),
                                       [&](const auto& line) { return line.first == one.reason; });
        if (same == lines.end())
            lines.emplace_back(one.reason, one.system);
        else
            same->second += ", " + one.system;
    }
    std::string out = lines.empty() ? "" : "Left out:\n";
    for (const auto& [reason, names] : lines)
        out += printable(fmt::format("- {}: {}", names, reason)) + "\n";
    return out;
}

std::string checks_text(const Comparison& comparison) {
    const LayerResult& first = comparison.rows.front().result;
    std::string out = fmt::format(
        "Checked{}: each of {} rows reached its expert once and its result came back "
        "once;\nregions of hubs have no holes.\n",
        comparison.rows.size() > 1 ? " in every system" : "", grouped(first.rows));
    if (!first.verified) return out;
    double error = 0;
    for (const ComparisonRow& row : comparison.rows)
        error = std::max(error, row.result.largest_error);
    return out + fmt::format(
                     "Verified: outputs equal the reference layer's, largest relative error "
                     "{:.2g}.\n",
                     error);
}

}  // namespace moehub
