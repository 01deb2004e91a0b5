#include "cli/html_output.hpp"
#include "cli/model_commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/model_page.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "request/values.hpp"

namespace moehub {
namespace {

void run(DenseCase& model, const std::vector<SystemSpec>& systems) {
    Progress progress("simulating");
    ModelOptions options = model.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    model.times = simulate_dense_models(
        {model.layer.machine, model.layer.model, model.layer.tokens}, systems, options);
}

}  // namespace

void dense_model_command(const ModelArguments& arguments) {
    DenseCase model = load_dense_model(arguments);
    run(model, load_dense_systems(arguments));
    const auto document = [&] { return document_text("model", model_json(model)); };
    const HtmlOutput& html = arguments.layer.html;
    if (html.asked()) put_page(html, model_page(model), document());
    const std::string& output = arguments.layer.output;
    const TextStyle style = style_for(output);
    put(arguments.layer.json
            ? document_text("model", model_json(model))
            : fitted(head_text(model) + "\n" +
                         parts_text(model.times, model.options.training, style) + "\n" +
                         table_text(model.times, model.options.baseline, style) + "\n" +
                         bars_text(model.times, style) + "\n" + checks_text(model),
                     style.width),
        output);
}

}  // namespace moehub
