#include "cli/model_commands.hpp"
#include "cli/output.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

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
    const std::string& output = arguments.layer.output;
    const bool colour = output.empty() && wants_colour(stdout);
    put(arguments.layer.json
            ? to_json(model)
            : head_text(model) + "\n" + parts_text(model.times, model.options.training, colour) +
                  "\n" + table_text(model.times, colour) + "\n" + bars_text(model.times) + "\n" +
                  checks_text(model),
        output);
}

}  // namespace moehub
