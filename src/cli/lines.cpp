#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/table.hpp"

#include <moehub/tp_compare.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Lines that the MoE-Hub paper (arXiv 2605.05888) counted in published systems.
struct Published {
    const char* system;
    int scheduling_host;
    int scheduling_device;
    int communication_host;
    int communication_device;
};
constexpr Published kPublished[] = {
    {"CCFuser", 603, 211, 24, 34},          {"Comet", 6347, 5589, 1197, 1305},
    {"DeepEP", 1604, 3326, 498, 1899},      {"FlashDMoE", 720, 1706, 513, 1137},
    {"Primus-Turbo", 1341, 853, 386, 2260},
};
constexpr const char* kPaperOnMoeHub = "no scheduling code, fewer than 10 store instructions";

struct Request {
    std::string system;
    bool json = false;
};

/// The first system with the same program; empty when it is the first itself.
std::string shared_with(const std::vector<SystemInfo>& systems, const SystemInfo& one) {
    const auto first = std::find_if(systems.begin(), systems.end(), [&](const auto& other) {
        return other.program == one.program;
    });
    return first->name == one.name ? "" : first->name;
}

std::string table_of(const std::vector<SystemInfo>& systems, const TextStyle& style) {
    Table table({{"system", Table::Align::left}, {"lines"}, {"", Table::Align::text}});
    for (const SystemInfo& one : systems) {
        const std::string other = shared_with(systems, one);
        table.add({one.name, grouped(one.lines),
                   one.title + (other.empty() ? "" : fmt::format(" (program of {})", other))});
    }
    return table.text(style);
}

std::string programs_text(const TextStyle& style) {
    return "Lines of each system's program here: what its GPUs run, on top of what all share.\n"
           "Blank lines, comments and includes aside; moehub lines SYSTEM prints it.\n\n" +
           table_of(all_systems(), style) + "\nTensor-parallel sub-layers:\n\n" +
           table_of(all_tp_systems(), style);
}

std::string published_text(const TextStyle& style) {
    Table table({{"published system", Table::Align::left},
                 {"scheduling: host"},
                 {"device"},
                 {"communication: host"},
                 {"device"}});
    for (const Published& one : kPublished)
        table.add({one.system, grouped(one.scheduling_host), grouped(one.scheduling_device),
                   grouped(one.communication_host), grouped(one.communication_device)});
    return "What the MoE-Hub paper (arXiv 2605.05888) counted in real code bases. Another "
           "measure:\n"
           "compare systems within one table, not lines across the two.\n\n" +
           table.text(style) + fmt::format("MoE-Hub: {}\n", kPaperOnMoeHub);
}

Json system_json(const SystemInfo& one) {
    return {{"system", one.name}, {"title", one.title}, {"lines", one.lines}};
}

Json all_json() {
    Json json;
    json["systems"] = Json::array();
    for (const SystemInfo& one : all_systems()) json["systems"].push_back(system_json(one));
    json["tp_systems"] = Json::array();
    for (const SystemInfo& one : all_tp_systems()) json["tp_systems"].push_back(system_json(one));
    json["counted_by_paper"] = Json::array();
    for (const Published& one : kPublished)
        json["counted_by_paper"].push_back(
            {{"system", one.system},
             {"scheduling", {{"host", one.scheduling_host}, {"device", one.scheduling_device}}},
             {"communication",
              {{"host", one.communication_host}, {"device", one.communication_device}}}});
    json["paper_on_moe_hub"] = kPaperOnMoeHub;
    return json;
}

/// Of a name that both kinds of layers have, the MoE layers' program.
std::string one_text(const std::string& name, bool json) {
    std::vector<SystemInfo> systems = all_systems();
    for (SystemInfo& one : all_tp_systems()) systems.push_back(std::move(one));
    const auto one = std::find_if(systems.begin(), systems.end(),
                                  [&](const auto& system) { return system.name == name; });
    if (one == systems.end()) check_systems({name});
    if (!json) return one->program;
    Json object = system_json(*one);
    object["program"] = one->program;
    return document_text("lines", std::move(object));
}

void execute(const Request& request) {
    const TextStyle style = style_for("");
    if (!request.system.empty())
        put(one_text(request.system, request.json), "");
    else
        put(request.json ? document_text("lines", all_json())
                         : fitted(programs_text(style) + "\n" + published_text(style), style.width),
            "");
}

}  // namespace

Command lines_command() {
    const auto request = std::make_shared<Request>();
    return {
        "lines",
        "List the systems and the lines their programs need; print one program",
        {
            {"system", &request->system, "print the program of this one", "SYSTEM"},
            {"--json", &request->json, "print JSON"},
        },
        "Example:\n  moehub lines moe-hub",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
