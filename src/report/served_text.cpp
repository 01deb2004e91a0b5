#include "report/comparison.hpp"
#include "report/served_report.hpp"
#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::string ms(double seconds) {
    return fmt::format("{:.3f}", 1e3 * seconds);
}

std::string_view what_is_served(const Serving& serving) {
    return serving.prefill ? "prompts" : "requests";
}

/// The largest part, and the busiest link where rows bound the layer.
std::string limit_of(const ServedStep& step) {
    const std::vector<ServedPart> parts = parts_of(step);
    const auto most = std::max_element(
        parts.begin(), parts.end(),
        [](const ServedPart& a, const ServedPart& b) { return a.seconds < b.seconds; });
    std::string text = fmt::format("{} {:.0f} %", most->name, 100 * most->seconds / step.seconds);
    constexpr double kBusy = 0.5;
    if (step.network_busy > kBusy)
        text += fmt::format(" ({} busy {:.0f} %)", step.busiest_link, 100 * step.network_busy);
    return text;
}

/// A card may lack the format that was asked for.
std::string weights_text(const ServedCase& what) {
    const NumberFormat experts = what.serving.what.formats.experts;
    const bool falls_back = experts == NumberFormat::w4a16 && what.weights == "nvfp4";
    return falls_back ? "nvfp4, as w4a16: the card multiplies no nvfp4" : what.weights;
}

std::string layout_text(const Serving& serving) {
    const ServingLayout& layout = serving.what.layout;
    std::string text = layout.gpus() == 1 ? std::string("all on one GPU")
                       : layout.attention_dp == 1
                           ? fmt::format("attention on all {} GPUs", layout.attention_tp)
                       : layout.attention_tp == 1
                           ? std::string("attention data parallel")
                           : fmt::format("attention in groups of {} GPUs", layout.attention_tp);
    if (serving.what.model.moe_layers() == 0) return text;
    std::size_t slots = 0;
    for (const std::vector<int>& hosts : serving.placement.hosts) slots += hosts.size();
    text += fmt::format("; experts over {} GPUs", layout.moe_ep);
    if (layout.moe_tp > 1) text += fmt::format(", {} share each", layout.moe_tp);
    const auto copies = static_cast<std::int64_t>(slots) - serving.what.model.experts;
    if (copies > 0) text += fmt::format(", {} slots with {} copies", slots, copies);
    if (serving.overlap != BatchOverlap::none)
        text += fmt::format("; {} overlap", name_of(serving.overlap));
    return text;
}

}  // namespace

std::string head_text(const ServedCase& what) {
    const Serving& serving = what.serving;
    const Machine& machine = serving.what.machine;
    std::string text =
        fmt::format("{} {} on {}: {} GPU{}{}, by {}, weights {}\n", what.serving.what.model.name,
                    serving.prefill ? "reading prompts" : "decoding", what.machine_name,
                    serving.gpus(), serving.gpus() > 1 ? "s" : "",
                    machine.nodes > 1 ? fmt::format(" in {} nodes", machine.nodes) : "",
                    serving.what.engine.name, weights_text(what));
    if (serving.batch_per_gpu > 0)
        text += fmt::format("{} {} a GPU of {} tokens\n", grouped(serving.batch_per_gpu),
                            what_is_served(serving), grouped(serving.context));
    text += layout_text(serving) + "\n";
    if (serving.what.model.moe_layers() > 0)
        text += fmt::format("{} routing{}\n", what.routing,
                            what.layout.empty() ? "" : ", experts as in " + what.layout);
    const ServingMemory memory = memory_of(serving);
    text += fmt::format("memory a GPU: weights {}, {} for the cache, {} a token: room for {} {}\n",
                        byte_size(memory.weights), byte_size(memory.cache),
                        byte_size(memory.cache_per_token), grouped(most_batch_per_gpu(serving)),
                        what_is_served(serving));
    if (!what.settings.empty()) text += fmt::format("with {}\n", fmt::join(what.settings, ", "));
    return text;
}

std::string operators_text(const ServedCase& what, const TextStyle& style) {
    std::vector<Table::Column> columns{{"ms of a step", Table::Align::left}};
    for (const ServedStep& step : what.steps) columns.push_back({step.system});
    Table table(columns);
    for (const std::string_view name : served_part_names()) {
        std::vector<std::string> cells{std::string(name)};
        bool any = false;
        for (const ServedStep& step : what.steps) {
            const double seconds = part_seconds(step, name);
            cells.push_back(seconds == 0 ? "–" : ms(seconds));
            any = any || seconds > 0;
        }
        if (any) table.add(cells);
    }
    const bool hides = std::any_of(what.steps.begin(), what.steps.end(),
                                   [](const ServedStep& step) { return step.hidden > 0; });
    std::vector<std::string> hidden{"hidden by overlap"};
    std::vector<std::string> whole{"step"};
    for (const ServedStep& step : what.steps) {
        hidden.push_back(step.hidden > 0 ? "−" + ms(step.hidden) : "–");
        whole.push_back(ms(step.seconds));
    }
    if (hides) table.add(hidden);
    table.add(whole);
    return table.text(style);
}

std::string steps_text(const ServedCase& what, const TextStyle& style) {
    const Serving& serving = what.serving;
    const bool nodes = serving.what.machine.nodes > 1;
    std::vector<Table::Column> columns{{"system", Table::Align::left}, {"tokens/s a GPU"}};
    if (nodes) columns.push_back({"a node"});
    columns.push_back({serving.prefill ? "step ms" : "ms a token"});
    columns.push_back({"largest part", Table::Align::text});
    Table table(columns);
    for (const ServedStep& step : what.steps) {
        std::vector<std::string> cells{step.system, tenths(step.tokens_per_second)};
        if (nodes)
            cells.push_back(tenths(step.tokens_per_second * serving.what.machine.gpus_per_node));
        cells.push_back(fmt::format("{:.2f}", 1e3 * (serving.prefill ? step.seconds : step.tpot)));
        cells.push_back(limit_of(step));
        table.add(cells);
    }
    std::string text = table.text(style);
    return text + left_out_text(what.left_out);
}

std::string head_text(const SizesCase& sizes) {
    const Serving& serving = sizes.what.serving;
    return fmt::format("{} {} on {}, by {}, weights {}, {} tokens a {}, overlap {}\n",
                       serving.what.model.name, serving.prefill ? "reading prompts" : "decoding",
                       sizes.what.machine_name, serving.what.engine.name, weights_text(sizes.what),
                       grouped(serving.context), serving.prefill ? "prompt" : "request",
                       name_of(serving.overlap));
}

std::string sizes_text(const SizesCase& sizes, const TextStyle& style) {
    const bool prefill = sizes.what.serving.prefill;
    Table table({{"GPUs"},
                 {prefill ? "prompts a GPU" : "requests a GPU"},
                 {prefill ? "step ms" : "ms a token"},
                 {"tokens/s a GPU"},
                 {"", Table::Align::text}});
    for (const ServedPoint& point : sizes.points) {
        if (!point.step) {
            table.add({fmt::format("{}", point.gpus), grouped(point.batch_per_gpu), "–", "–",
                       point.why_not});
            continue;
        }
        const ServedStep& step = *point.step;
        table.add({fmt::format("{}", point.gpus), grouped(point.batch_per_gpu),
                   fmt::format("{:.2f}", 1e3 * (prefill ? step.seconds : step.tpot)),
                   tenths(step.tokens_per_second), point.best ? "best" : ""});
    }
    return fmt::format("{}\n{}\nbest: no other gives as many tokens/s a GPU in as little time.\n",
                       sizes.system, table.text(style));
}

}  // namespace moehub
