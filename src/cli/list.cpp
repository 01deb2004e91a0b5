#include "base/json.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moehub {
namespace {

std::vector<std::string> kinds() {
    return {"machines", "models",  "gpus",     "generations",
            "systems",  "engines", "trainers", "shapes"};
}

/// One width for all kinds, so that the whole list has two columns.
std::size_t widest_name() {
    std::size_t width = 0;
    for (const std::string& kind : kinds())
        for (const std::string& name : preset_names(kind)) width = std::max(width, name.size());
    return width;
}

struct Group {
    std::string title;
    std::string key;  ///< in JSON
    std::string kind;
    std::vector<std::string> names;
};

bool has(const std::vector<SystemInfo>& systems, const std::string& name) {
    return std::any_of(systems.begin(), systems.end(),
                       [&](const SystemInfo& one) { return one.name == name; });
}

/// Systems by what they run; some run both.
void add_systems(std::vector<Group>& groups) {
    const std::vector<SystemInfo> moe = all_systems();
    const std::vector<SystemInfo> tp = all_tp_systems();
    Group layers{"systems", "systems", "systems", {}};
    Group sub_layers{
        "systems of tensor-parallel sub-layers (--layer-type tp)", "tp_systems", "systems", {}};
    for (const std::string& name : preset_names("systems")) {
        if (has(tp, name)) sub_layers.names.push_back(name);
        if (has(moe, name) || !has(tp, name)) layers.names.push_back(name);
    }
    groups.push_back(std::move(layers));
    groups.push_back(std::move(sub_layers));
}

std::vector<Group> groups_of(const std::vector<std::string>& kinds) {
    std::vector<Group> groups;
    for (const std::string& kind : kinds) {
        if (kind == "systems")
            add_systems(groups);
        else
            groups.push_back({kind, kind, kind, preset_names(kind)});
    }
    return groups;
}

std::string list_text(const std::vector<std::string>& wanted) {
    const std::size_t width = widest_name();
    std::string text;
    for (const Group& group : groups_of(wanted)) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group.title);
        for (const std::string& name : group.names)
            text += fmt::format("  {:<{}}  {}\n", name, width, preset_title(group.kind, name));
    }
    return text;
}

/// {"machines": [{"name", "title"}, …], …}
Json list_json(const std::vector<std::string>& wanted) {
    Json json;
    for (const Group& group : groups_of(wanted)) {
        json[group.key] = Json::array();
        for (const std::string& name : group.names) {
            json[group.key].push_back({{"name", name}, {"title", preset_title(group.kind, name)}});
        }
    }
    return json;
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
    put(request.json ? document_text("list", list_json(wanted))
                     : fitted(list_text(wanted), style_for("").width),
        "");
}

}  // namespace

Command list_command() {
    const auto request = std::make_shared<Request>();
    return {
        "list",
        "List the machines, models, GPUs, systems, serving engines, trainers and axes of shape "
        "searches there are",
        {
            {"kind",
             &request->kind,
             "machines, models, gpus, generations, systems, engines, trainers or shapes; without "
             "it all",
             "KIND",
             {},
             kinds()},
            {"--json", &request->json, "print JSON"},
        },
        "Example:\n  moehub list machines",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
