#include "cli/show.hpp"

#include "cli/output.hpp"

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

template <class Noun>
std::string text_of(const Noun& noun, bool json) {
    return json ? to_json(noun) : to_toml(noun);
}

int show_command(const Request& request) {
    if (request.sources) {
        put(sources_of(request.name), request.output);
        return 0;
    }
    const std::string kind = kind_of(request.name);
    std::string text;
    if (kind == "machines")
        text = text_of(load_machine(request.name, request.settings), request.json);
    else if (kind == "models")
        text = text_of(load_model(request.name, request.settings), request.json);
    else if (kind == "systems")
        text = text_of(load_system(request.name, request.settings), request.json);
    else
        text = text_of(load_gpu(request.name, request.settings), request.json);
    put(text, request.output);
    return 0;
}

}  // namespace

void add_show(CLI::App& app) {
    auto request = std::make_shared<Request>();
    CLI::App* command = app.add_subcommand(
        "show", "Print everything known about a machine, model, GPU or system, as TOML with units");
    command->add_option("name", request->name, "preset (moehub list) or TOML file")
        ->type_name("NAME")
        ->required();
    command
        ->add_option("--set", request->settings,
                     "change a value first, repeatable: --set link.latency=\"300 ns\"")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command
        ->add_flag("--json", request->json,
                   "print JSON; times in picoseconds, sizes in bytes, rates per second")
        ->disable_flag_override();
    command
        ->add_flag("--sources", request->sources,
                   "print the files behind it as written, with the source of every number")
        ->disable_flag_override()
        ->excludes("--json")
        ->excludes("--set");
    command->add_option("-o,--output", request->output, "write to this file instead")
        ->type_name("FILE");
    command->footer("Example:\n  moehub show dgx-h100 --set gpu=h200-sxm -o mine.toml");
    command->callback([request] { show_command(*request); });
}

}  // namespace moehub
