#include "request/plan_shapes.hpp"

#include "report/progress.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The window that was typed, or one around what the base model has.
ParameterWindow window_of(std::string_view option, const std::optional<std::string>& text,
                          std::int64_t usual) {
    if (!text) return parse_parameter_window(fmt::format("{}", usual));
    try {
        return parse_parameter_window(*text);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", option, error.what()));
    }
}

}  // namespace

std::vector<Option> shape_options(ShapeArguments& arguments) {
    return {
        {"--search-model",
         &arguments.search_model,
         "search the model's shape as well: --model is the base, with its attention and "
         "vocabulary",
         {},
         {.excludes = {"--explain"}}},
        {"--params", &arguments.params,
         "with --search-model: parameters, such as 718e9±5% or 718e9+-5%; without: the base's ± 5 "
         "%",
         "N±W"},
        {"--active", &arguments.active,
         "likewise those that multiply a token (no input embedding), such as 39e9±5%", "N±W"},
        {"--shapes", &arguments.shapes,
         "with --search-model: what each axis may be, a preset or a TOML file", "NAME|FILE"},
    };
}

void require_search(const ShapeArguments& arguments) {
    if (arguments.search_model) return;
    const char* given = arguments.params                ? "--params"
                        : arguments.active              ? "--active"
                        : arguments.shapes != "default" ? "--shapes"
                                                        : nullptr;
    if (given != nullptr)
        throw InputError(fmt::format("{}: allowed with --search-model only", given));
}

ShapeAnswer search_shapes(const ShapeArguments& arguments, const ShapeRequest& request) {
    const Model& base = request.run.model;
    ShapeSearchOptions options;
    options.axes = load_shape_axes(arguments.shapes, base);
    options.total = window_of("--params", arguments.params, parameters(base));
    options.active = window_of("--active", arguments.active, multiplied_parameters(base));
    options.fixed = request.fixed;
    options.systems = request.systems;
    options.top = request.top;
    options.threads = request.threads;
    Progress progress("timing shapes");
    options.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
    ShapeSearch found = search_shapes(request.run, options);
    options.progress = {};
    return {std::move(found), std::move(options)};
}

}  // namespace moehub
