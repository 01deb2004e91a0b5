#include "cli/html_output.hpp"
#include "cli/model_commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/model_page.hpp"
#include "report/progress.hpp"
#include "report/served_report.hpp"
#include "request/values.hpp"

#include <moehub/compare.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr const char* kEngine = "engine";  ///< among systems: its own MoE layers
constexpr std::int64_t kMostBatch = 1 << 20;

std::vector<std::int64_t> counts_of(std::string_view option, const std::string& text,
                                    std::int64_t most) {
    std::vector<std::int64_t> counts;
    for (const std::string& one : listed(text)) counts.push_back(count_of(option, one, {1, most}));
    return counts;
}

std::vector<std::string> usual_systems(const Serving& serving) {
    if (serving.what.model.moe_layers() == 0 || serving.gpus() == 1) return {kEngine};
    std::vector<std::string> names{serving.prefill ? "deepep" : "deepep-ll", "moe-hub"};
    if (serving.what.machine.nodes == 1) names.insert(names.begin(), kEngine);
    return names;
}

/// Systems that were named must run; of the usual ones those that cannot are left out.
void run(ServedCase& what, const std::vector<std::string>& names, bool named_by_user,
         const ModelArguments& arguments, int threads) {
    Progress progress("simulating");
    ServeOptions options{threads, ServingClock(what.serving.what).costs(), {}};
    check(what.serving);
    for (std::size_t i = 0; i < names.size(); ++i) {
        progress.update(i, names.size());
        try {
            if (names[i] == kEngine) {
                what.steps.push_back(serve_by_engine(what.serving, options));
                continue;
            }
            what.steps.push_back(
                serve(what.serving, load_systems(arguments.layer, {names[i]}), options).front());
        } catch (const InputError& error) {
            if (named_by_user) throw;
            what.left_out.push_back({names[i], error.what()});
        }
    }
    progress.update(names.size(), names.size());
    if (what.steps.empty()) throw InputError(what.left_out.front().reason);
}

std::optional<SystemSpec> system_named(const ModelArguments& arguments, const std::string& name) {
    if (name == kEngine) return std::nullopt;
    return load_systems(arguments.layer, {name}).front();
}

ServedCase case_of(const ModelArguments& arguments, const Serving& serving) {
    ServedCase what;
    what.serving = serving;
    what.machine_name = arguments.layer.machine.value_or(kUsualServingMachine);
    what.weights = weights_of(arguments, serving.what.machine);
    what.settings = settings_of(arguments.layer);
    what.routing = arguments.layer.routing.value_or("uniform");
    what.layout = arguments.layer.layout.value_or("");
    return what;
}

/// Every size under the first system, with progress.
void sizes_command(const ModelArguments& arguments, const std::vector<Serving>& servings,
                   const std::vector<std::int64_t>& batches, const std::string& system,
                   int threads) {
    Progress progress("simulating");
    ServeOptions options{threads, nullptr,
                         [&](std::size_t done, std::size_t all) { progress.update(done, all); }};
    SizesCase sizes{case_of(arguments, servings.front()), system, {}};
    const std::optional<SystemSpec> spec = system_named(arguments, system);
    sizes.spec = spec;
    if (!spec) sizes.system = servings.front().what.engine.name;
    if (arguments.serving.find) {
        const double limit = to_seconds(time_of("--tpot", *arguments.serving.tpot));
        for (const Serving& serving : servings) {
            sizes.points.push_back(find_batch(serving, spec, limit, {threads, nullptr, {}}));
            progress.update(sizes.points.size(), servings.size());
        }
    } else {
        sizes.points = serve_sizes(servings, batches, spec, options);
    }
    const HtmlOutput& html = arguments.layer.html;
    if (html.asked())
        put_page(html, served_page(sizes), document_text("model", served_json(sizes)));
    const std::string& output = arguments.layer.output;
    const TextStyle style = style_for(output);
    put(arguments.layer.json
            ? document_text("model", served_json(sizes))
            : fitted(head_text(sizes) + "\n" + sizes_text(sizes, style), style.width),
        output);
}

}  // namespace

void serve_model_command(const ModelArguments& arguments) {
    refuse_unserved(arguments);
    const ServingArguments& asked = arguments.serving;
    if (asked.find && *asked.find != "batch")
        throw InputError(
            fmt::format("--find: found {}, allowed: batch", moehub::quoted(*asked.find)));
    std::vector<Serving> servings = load_servings(arguments);
    const std::vector<std::string> systems =
        arguments.systems ? listed(*arguments.systems) : usual_systems(servings.front());
    std::vector<std::string> simulated = systems;
    std::erase(simulated, kEngine);
    if (!simulated.empty()) check_systems(simulated);
    if (!asked.batch_per_gpu && !asked.find)
        throw InputError("--batch-per-gpu: found nothing, allowed: requests of a GPU, or --find");
    if (asked.batch_per_gpu && asked.find)
        throw InputError("--batch-per-gpu: found with --find, allowed: one of them");
    std::vector<std::int64_t> batches;
    if (asked.batch_per_gpu)
        batches = counts_of("--batch-per-gpu", *asked.batch_per_gpu, kMostBatch);
    const int threads = options_of(arguments).threads;
    if (asked.find || servings.size() > 1 || batches.size() > 1) {
        const bool several = arguments.systems && systems.size() > 1;
        if (several) throw InputError("--systems: found several, allowed of a table: one");
        return sizes_command(arguments, servings, batches,
                             arguments.systems || systems.size() == 1 ? systems[0] : systems[1],
                             threads);
    }
    servings.front().batch_per_gpu = batches.front();
    ServedCase what = case_of(arguments, servings.front());
    run(what, systems, arguments.systems.has_value(), arguments, threads);
    const HtmlOutput& html = arguments.layer.html;
    if (html.asked()) put_page(html, served_page(what), document_text("model", served_json(what)));
    const std::string& output = arguments.layer.output;
    const TextStyle style = style_for(output);
    put(arguments.layer.json ? document_text("model", served_json(what))
                             : fitted(head_text(what) + "\n" + operators_text(what, style) + "\n" +
                                          steps_text(what, style),
                                      style.width),
        output);
}

}  // namespace moehub
