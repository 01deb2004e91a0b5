#include "cli/list.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "cli/output.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moehub {
namespace {

std::vector<std::string> kinds() {
    return {"machines", "models", "gpus"};
}

/// One width for all kinds, so that the whole list has two columns.
std::size_t widest_name() {
    std::size_t width = 0;
    for (const std::string& kind : kinds())
        for (const std::string& name : preset_names(kind)) width = std::max(width, name.size());
    return width;
}

std::string list_text(const std::vector<std::string>& wanted) {
    const std::size_t width = widest_name();
    std::string text;
    for (const std::string& kind : wanted) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", kind);
        for (const std::string& name : preset_names(kind))
            text += fmt::format("  {:<{}}  {}\n", name, width, preset_title(kind, name));
    }
    return text;
}

int list_command(const std::string& kind) {
    const std::vector<std::string> all = kinds();
    if (!kind.empty() && std::find(all.begin(), all.end(), kind) == all.end())
        throw InputError(fmt::format("list: found {}, allowed: {}{}", moehub::quoted(kind),
                                     fmt::join(all, ", "), did_you_mean(kind, all)));
    put(list_text(kind.empty() ? all : std::vector<std::string>{kind}), "");
    return 0;
}

}  // namespace

void add_list(CLI::App& app) {
    auto kind = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("list", "List the machines, models and GPUs there are");
    command->add_option("kind", *kind, "machines, models or gpus; without it all")
        ->type_name("KIND");
    command->footer("Example:\n  moehub list machines");
    command->callback([kind] { list_command(*kind); });
}

}  // namespace moehub
