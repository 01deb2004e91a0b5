#include "cli/model_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/model_page.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/tp_compare.hpp>

namespace moehub {
namespace {

constexpr const char* kUsualSystems = "ideal,tp-nvls,cais";

void refuse_attention(const ModelArguments& arguments, const std::string& model) {
    for (const auto& [option, typed] :
         {std::pair("--attention-tp", arguments.attention_gpus.has_value()),
          std::pair("--attention-system", arguments.attention_system.has_value())})
        if (typed)
            throw InputError(
                fmt::format("{}: found with model {}, which is dense: all of it is under tensor "
                            "parallelism, allowed: with experts",
                            option, moehub::quoted(model)));
}

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
    DenseCase model;
    model.layer = load_dense(arguments.layer);
    refuse_attention(arguments, model.layer.model_name);
    const std::vector<std::string> systems = listed(arguments.systems.value_or(kUsualSystems));
    check_tp_systems(systems);
    model.options = options_of(arguments);
    if (arguments.overlap_gradients && !arguments.training)
        throw InputError("--overlap-gradients: found without --training, allowed: with it");
    model.options.overlap_gradients = arguments.overlap_gradients;
    model.options.layer.grain = model.layer.options.grain;
    model.options.layer.verify = model.layer.options.verify;
    model.options.layer.timeline = model.layer.options.timeline;
    if (model.options.training)
        model.layer.parts.insert(model.layer.parts.end(), {SubLayer::l3, SubLayer::l4});
    run(model, load_systems(arguments.layer, systems));
    const HtmlOutput& html = arguments.layer.html;
    if (html.asked()) put_page(html, model_page(model), to_json(model));
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
