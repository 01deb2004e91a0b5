#include "report/model_page.hpp"

#include "report/layer_page.hpp"
#include "report/model_head.hpp"
#include "report/tp_comparison.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

constexpr double kMilli = 1e3;  ///< µs

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

/// Names of parts, each once, in the order of the first system that has it.
std::vector<std::string> part_names(const std::vector<ModelTime>& times) {
    std::vector<std::string> names;
    for (const ModelTime& time : times)
        for (const LayerTypeTime& part : time.parts)
            if (std::find(names.begin(), names.end(), part.name) == names.end())
                names.push_back(part.name);
    return names;
}

BarChart parts_chart(const std::vector<ModelTime>& times) {
    BarChart chart{"The whole model by its parts", "ms", {}, {}, true};
    for (const ModelTime& time : times) chart.categories.push_back(time.system);
    for (const std::string& name : part_names(times)) {
        ChartSeries& series = chart.series.emplace_back();
        series.name = name;
        for (const ModelTime& time : times) {
            Ps sum = 0;
            for (const LayerTypeTime& part : time.parts)
                if (part.name == name) sum += part.total();
            series.values.emplace_back(to_us(sum) / kMilli);
        }
    }
    return chart;
}

PageTable times_table(const std::vector<ModelTime>& times, const ModelTime& baseline) {
    PageTable table{"Systems end to end",
                    {{"system", Align::left},
                     {"time ms"},
                     {fmt::format("vs {}", baseline.system)},
                     {"tokens/s"},
                     {"MFU"}},
                    {}};
    for (const ModelTime& time : times)
        table.rows.push_back({time.system, fmt::format("{:.2f}", to_us(time.total) / kMilli),
                              fmt::format("{:.2f}×", ratio(baseline.total, time.total)),
                              grouped(std::llround(time.tokens_per_second)), percent(time.mfu)});
    return table;
}

PageTable parts_table(const std::vector<ModelTime>& times, bool training) {
    PageTable table{"Parts of the model, on the slowest GPU",
                    {{"system", Align::left}, {"part", Align::left}, {"count"}},
                    {}};
    table.columns.push_back({training ? "forward µs" : "µs each"});
    if (training) table.columns.push_back({"backward µs"});
    table.columns.push_back({"ms in all"});
    table.columns.push_back({"share"});
    for (const ModelTime& time : times)
        for (const LayerTypeTime& part : time.parts) {
            const bool counted = part.name != "host";
            std::vector<std::string>& cells = table.rows.emplace_back();
            cells = {time.system, part.name, counted ? grouped(part.count) : "",
                     counted ? tenths(to_us(part.forward + part.beside)) : ""};
            if (training)
                cells.push_back(!counted          ? ""
                                : part.beside > 0 ? "beside it"
                                                  : tenths(to_us(part.backward)));
            cells.push_back(fmt::format("{:.2f}", to_us(part.total()) / kMilli));
            cells.push_back(percent(ratio(part.total(), time.total)));
        }
    return table;
}

PageSection whole_section(const std::vector<ModelTime>& times, const ModelOptions& options) {
    PageSection section{
        "The whole model",
        {},
        {parts_chart(times), times_table(times, baseline_of(times, options.baseline))},
        {}};
    if (times.size() > 1) {
        BarChart speed{"Tokens per second", "tokens/s", {}, {{"tokens/s", {}}}, false, true};
        for (const ModelTime& time : times) {
            speed.categories.push_back(time.system);
            speed.series.front().values.emplace_back(time.tokens_per_second);
        }
        section.blocks.insert(section.blocks.begin() + 1, std::move(speed));
    }
    section.blocks.push_back(parts_table(times, options.training));
    return section;
}

std::vector<SystemSpec> specs_of(const std::vector<ModelTime>& times) {
    std::vector<SystemSpec> specs;
    for (const ModelTime& time : times) specs.push_back(time.spec);
    return specs;
}

/// A simulated layer by itself.
void add_layer(Page& page, const Comparison& comparison, const std::string& what) {
    page.sections.push_back(systems_section(comparison, what));
    for (PageSection section : {traffic_section(comparison), timeline_section(comparison)})
        if (!section.blocks.empty()) {
            section.heading = fmt::format("{}: {}", what, section.heading);
            page.sections.push_back(std::move(section));
        }
}

std::string title_of(std::string_view model, std::string_view machine, bool training) {
    return fmt::format("{} on {}, {}", model, machine,
                       training ? "forward and backward" : "forward");
}

}  // namespace

Page model_page(const ModelCase& model) {
    const bool training = model.options.training;
    Page page{title_of(model.layer.model_name, model.layer.machine_name, training),
              lines_of(head_text(model)),
              {whole_section(model.times, model.options)}};
    page.sections.front().notes.push_back(checks_text(model));
    add_layer(page, layer_comparison(model, Pass::forward), "One MoE layer, forward");
    if (training)
        add_layer(page, layer_comparison(model, Pass::backward), "One MoE layer, backward");
    page.configuration =
        configuration_of(model.layer.machine, model.layer.model, specs_of(model.times));
    return page;
}

Page model_page(const DenseCase& model) {
    const bool training = model.options.training;
    Page page{title_of(model.layer.model_name, model.layer.machine_name, training),
              lines_of(head_text(model)),
              {whole_section(model.times, model.options)}};
    page.sections.front().notes.push_back(checks_text(model));
    const auto& parts = model.times.front().sub_layers;
    for (std::size_t i = 0; i < parts.size(); ++i)
        add_layer(page, sub_layer_comparison(model, i),
                  fmt::format("Sub-layer {}", name_of(parts[i].part)));
    page.configuration =
        configuration_of(model.layer.machine, model.layer.model, specs_of(model.times));
    return page;
}

}  // namespace moehub
