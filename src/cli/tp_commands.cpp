#include "cli/tp_commands.hpp"

#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "cli/trace.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/layer_page.hpp"
#include "report/progress.hpp"
#include "report/tp_comparison.hpp"
#include "request/values.hpp"
#include "study/usual_systems.hpp"

namespace moehub {
namespace {

std::vector<Comparison> simulate(const TpCase& layer, const std::vector<SystemSpec>& systems,
                                 TpCompareOptions options) {
    Progress progress("simulating");
    options.layer = layer.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return compare_tp_parts(layer.input(), layer.parts, systems, options);
}

}  // namespace

void compare_tp_command(const LayerArguments& arguments, const std::optional<std::string>& systems,
                        int threads) {
    if (systems) check_tp_systems(listed(*systems));
    const TpCase layer = load_tp(arguments, true);
    UsualSystems usual;
    if (systems)
        usual.names = listed(*systems);
    else
        usual = usual_systems(layer);
    TpCompareOptions options;
    options.baseline = arguments.baseline;
    options.threads = threads;
    std::vector<Comparison> parts = simulate(layer, load_systems(arguments, usual.names), options);
    for (Comparison& part : parts) part.left_out = usual.left_out;
    put_trace(arguments.trace, traced(layer, parts));
    const Comparison sum = sum_of(parts);
    const auto document = [&] {
        return document_text("compare", tp_comparison_json(layer, parts));
    };
    if (arguments.html.asked())
        put_page(arguments.html, tp_comparison_page(layer, parts), document());
    const TextStyle style = style_for(arguments.output);
    put(arguments.json ? document()
                       : fitted(head_text(layer) + "\n" + tp_table_text(layer, parts, style) +
                                    "\n" + bars_text(sum, style) + "\n" +
                                    left_out_text(sum.left_out) + tp_checks_text(layer, sum),
                                style.width),
        arguments.output);
}

void run_tp_command(const LayerArguments& arguments, const std::optional<std::string>& system) {
    const std::string name = system.value_or("cais");
    check_tp_systems({name});
    const TpCase layer = load_tp(arguments, false);
    const std::vector<Comparison> parts = simulate(layer, load_systems(arguments, {name}), {});
    const auto document = [&] { return document_text("run", tp_comparison_json(layer, parts)); };
    if (arguments.html.asked())
        put_page(arguments.html, tp_comparison_page(layer, parts), document());
    const Comparison& one = parts.front();
    put_trace(arguments.trace, traced(layer, parts));
    const TextStyle style = style_for(arguments.output);
    const ComparisonRow& row = one.rows.front();
    std::string dataflow = dataflow_text(layer.input(), row.system);
    if (!dataflow.empty()) dataflow += "\n";
    put(arguments.json ? document_text("run", tp_comparison_json(layer, parts))
                       : fitted(head_text(layer) + "\n" + tp_table_text(one, style) + "\n" +
                                    bars_text(one, style) + "\n" + dataflow +
                                    statistics_text(row.result, style, "tokens") + "\n" +
                                    tp_checks_text(layer, one),
                                style.width),
        arguments.output);
}

}  // namespace moehub
