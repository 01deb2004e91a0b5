#include "base/json.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "cli/commands.hpp"
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
    return {"machines", "models", "gpus", "systems"};
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

/// {"machines": [{"name", "title"}, …], …}
std::string list_json(const std::vector<std::string>& wanted) {
    Json json;
    for (const std::string& kind : wanted) {
        json[kind] = Json::array();
        for (const std::string& name : preset_names(kind)) {
            json[kind].push_back({{"name", name}, {"title", preset_title(kind, name)}});
        }
    }
    return json.dump(2) + "\n";
}

struct Request {
    std::string kind;
    bool json = false;
};

void execute(const Request& request) {
    const std::string& kind = request.kind;
    const std::vector<std::string> all = kinds();
    if (!kind.empty() && std::find(all.begin(), all.end(), kind) == all.end())
        throw InputError(fmt::format("list: found {}, allowed: {}{}", moehub::quoted(kind),
                                     fmt::join(all, ", "), did_you_mean(kind, all)));
    const std::vector<std::string> wanted = kind.empty() ? all : std::vector<std::string>{kind};
    put(request.json ? list_json(wanted) : list_text(wanted), "");
}

}  // namespace

Command list_command() {
    const auto request = std::make_shared<Request>();
    return {
        "list",
        "List the machines, models, GPUs and systems there are",
        {
            {"kind", &request->kind, "machines, models, gpus or systems; without it all", "KIND"},
            {"--json", &request->json, "print JSON"},
        },
        "Example:\n  moehub list machines",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
