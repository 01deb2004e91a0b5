#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"

#include <moehub/presets.hpp>

#include <memory>
#include <string>

namespace moehub {
namespace {

struct Request {
    std::string name;
    Overrides settings;
    bool json = false;
    bool sources = false;
    std::string output;
};

std::vector<std::string> all_presets() {
    std::vector<std::string> names;
    for (const char* kind :
         {"machines", "models", "gpus", "generations", "systems", "engines", "trainers", "shapes"})
        for (const std::string& name : preset_names(kind)) names.push_back(name);
    return names;
}

template <class Noun>
std::string text_of(const Noun& noun, bool json) {
    return json ? document_text("show", Json::parse(to_json(noun))) : to_toml(noun);
}

void execute(const Request& request) {
    const std::string kind = kind_of(request.name);
    if (request.sources || kind == "generations" || kind == "shapes") {  // these are their files
        put(sources_of(request.name), request.output);
        return;
    }
    std::string text;
    if (kind == "machines")
        text = text_of(load_machine(request.name, request.settings), request.json);
    else if (kind == "models")
        text = text_of(load_model(request.name, request.settings), request.json);
    else if (kind == "systems")
        text = text_of(load_system(request.name, request.settings), request.json);
    else if (kind == "engines")
        text = text_of(load_engine(request.name, request.settings), request.json);
    else if (kind == "trainers")
        text = text_of(load_trainer(request.name, request.settings), request.json);
    else
        text = text_of(load_gpu(request.name, request.settings), request.json);
    put(text, request.output);
}

}  // namespace

Command show_command() {
    const auto request = std::make_shared<Request>();
    return {
        "show",
        "Print everything known about a machine, model, GPU, system, engine or trainer, as TOML",
        {
            {"name",
             &request->name,
             "preset (moehub list) or TOML file",
             "NAME",
             {.required = true},
             all_presets()},
            {"--set", &request->settings,
             "change a value first, repeatable: --set link.latency=\"300 ns\"", "KEY=VALUE"},
            {"--json", &request->json,
             "print JSON; times in picoseconds, sizes in bytes, rates per second"},
            {"--sources",
             &request->sources,
             "print the files behind it as written, with the source of every number",
             "",
             {.excludes = {"--json", "--set"}}},
            {"-o,--output", &request->output, "write to this file instead", "FILE"},
        },
        "Example:\n  moehub show dgx-h100 --set gpu=h200-sxm -o mine.toml",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
