#include "report/model_page.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

std::string title_of(const ServedCase& what) {
    return fmt::format("{} {} on {}", what.serving.what.model.name,
                       what.serving.prefill ? "reading prompts" : "decoding", what.machine_name);
}

std::vector<std::pair<std::string, std::string>> configuration_of(const ServingCase& what) {
    return {{fmt::format("Machine: {}", what.machine.name), to_toml(what.machine)},
            {fmt::format("Model: {}", what.model.name), to_toml(what.model)},
            {fmt::format("Engine: {}", what.engine.name), to_toml(what.engine)}};
}

BarChart parts_chart(const std::vector<ServedStep>& steps) {
    BarChart chart{"Where a step's time goes", "ms", {}, {}, true};
    for (const ServedStep& step : steps) chart.categories.push_back(step.system);
    for (const std::string_view name : served_part_names()) {
        ChartSeries series{std::string(name), {}};
        double most = 0;
        for (const ServedStep& step : steps) {
            series.values.emplace_back(1e3 * part_seconds(step, name));
            most = std::max(most, *series.values.back());
        }
        if (most > 0) chart.series.push_back(std::move(series));
    }
    return chart;
}

PageTable steps_table(const ServedCase& what) {
    const bool prefill = what.serving.prefill;
    PageTable table{"Systems side by side",
                    {{"system", Align::left},
                     {"tokens/s a GPU"},
                     {"step ms"},
                     {"hidden by overlap ms"},
                     {"busiest link", Align::left},
                     {"busy"}},
                    {}};
    if (!prefill) table.columns.insert(table.columns.begin() + 2, {"ms a token"});
    for (const ServedStep& step : what.steps) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {step.system,
                 tenths(step.tokens_per_second),
                 fmt::format("{:.3f}", 1e3 * step.seconds),
                 fmt::format("{:.3f}", 1e3 * step.hidden),
                 step.busiest_link.empty() ? "–" : step.busiest_link,
                 step.busiest_link.empty() ? "–" : percent(step.network_busy)};
        if (!prefill) cells.insert(cells.begin() + 2, fmt::format("{:.3f}", 1e3 * step.tpot));
    }
    return table;
}

PageTable operators_table(const ServedCase& what) {
    PageTable table{"Operators of a step",
                    {{"system", Align::left},
                     {"operator", Align::left},
                     {"kind", Align::left},
                     {"count"},
                     {"ms"}},
                    {}};
    for (const ServedStep& step : what.steps)
        for (const StepOperator& one : step.operators)
            table.rows.push_back({step.system, one.name, std::string(name_of(one.kind)),
                                  fmt::format("{}", one.count),
                                  fmt::format("{:.3f}", 1e3 * one.seconds)});
    return table;
}

/// Tokens a GPU over time a token, a line for each number of GPUs.
LineChart sizes_chart(const SizesCase& sizes) {
    const bool prefill = sizes.what.serving.prefill;
    LineChart chart{"Throughput against latency",
                    {prefill ? "step, ms" : "time a token, ms", false, false},
                    {"tokens/s a GPU"},
                    {}};
    for (const ServedPoint& point : sizes.points) {
        if (!point.step) continue;
        const std::string name = fmt::format("{} GPUs", point.gpus);
        auto found = std::find_if(chart.series.begin(), chart.series.end(),
                                  [&](const LineSeries& one) { return one.name == name; });
        if (found == chart.series.end()) found = chart.series.insert(found, {name, {}});
        const double time = prefill ? point.step->seconds : point.step->tpot;
        found->points.push_back(
            {1e3 * time, point.step->tokens_per_second,
             fmt::format("{}, {} {} a GPU{}", name, grouped(point.batch_per_gpu),
                         prefill ? "prompts" : "requests", point.best ? ", best" : ""),
             grouped(point.batch_per_gpu)});
    }
    return chart;
}

PageTable sizes_table(const SizesCase& sizes) {
    const bool prefill = sizes.what.serving.prefill;
    PageTable table{fmt::format("Sizes under {}", sizes.system),
                    {{"GPUs"},
                     {prefill ? "prompts a GPU" : "requests a GPU"},
                     {prefill ? "step ms" : "ms a token"},
                     {"tokens/s a GPU"},
                     {"", Align::left}},
                    {}};
    for (const ServedPoint& point : sizes.points) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {fmt::format("{}", point.gpus), grouped(point.batch_per_gpu), "–", "–",
                 point.why_not};
        if (!point.step) continue;
        const double time = prefill ? point.step->seconds : point.step->tpot;
        cells[2] = fmt::format("{:.3f}", 1e3 * time);
        cells[3] = tenths(point.step->tokens_per_second);
        cells[4] = point.best ? "best" : "";
    }
    return table;
}

}  // namespace

Page served_page(const ServedCase& what) {
    BarChart speed{"Tokens per second and GPU", "tokens/s", {}, {{"tokens/s", {}}}, false, true};
    for (const ServedStep& step : what.steps) {
        speed.categories.push_back(step.system);
        speed.series.front().values.emplace_back(step.tokens_per_second);
    }
    Page page{title_of(what),
              lines_of(head_text(what)),
              {{"A step",
                {},
                {parts_chart(what.steps), std::move(speed), steps_table(what)},
                {"Parts that overlap are shown in full: their sum may exceed the step."}},
               {"Operators", {}, {operators_table(what)}, {}}}};
    for (const auto& [system, reason] : what.left_out)
        page.sections.front().notes.push_back("Left out: " + system + ": " + reason);
    page.configuration = configuration_of(what.serving.what);
    return page;
}

Page served_page(const SizesCase& sizes) {
    Page page{title_of(sizes.what),
              lines_of(head_text(sizes)),
              {{"Sizes",
                {},
                {sizes_table(sizes)},
                {"Best: no other gives as many tokens/s a GPU in as little time.",
                 fmt::format("Beside each point: {} of a GPU.",
                             sizes.what.serving.prefill ? "prompts" : "requests")}}}};
    if (LineChart chart = sizes_chart(sizes); !chart.series.empty())
        page.sections.front().blocks.insert(page.sections.front().blocks.begin(), std::move(chart));
    page.configuration = configuration_of(sizes.what.serving.what);
    if (sizes.spec)
        page.configuration.emplace_back("System: " + sizes.spec->name, to_toml(*sizes.spec));
    return page;
}

}  // namespace moehub
