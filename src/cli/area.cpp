#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/area_report.hpp"
#include "report/document.hpp"

#include <moehub/presets.hpp>

#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Request {
    std::string machine = "dgx-h800";
    Overrides settings;
    bool json = false;
    std::string output;
};

void execute(const Request& request) {
    const Machine machine = load_machine(request.machine, request.settings);
    const auto tables = area_of(machine);
    if (request.json) return put(document_text("area", area_json(machine, tables)), request.output);
    const std::string head =
        fmt::format("tables of {}: {} GPUs, {} switches a node{}{}\n\n", request.machine,
                    machine.gpus(), machine.switches, request.settings.empty() ? "" : ", with ",
                    fmt::join(request.settings, ", "));
    const TextStyle style = style_for(request.output);
    put(fitted(head + area_text(tables, style), style.width), request.output);
}

}  // namespace

Command area_command() {
    const auto request = std::make_shared<Request>();
    return {
        "area",
        "Silicon that the proposals' tables take, beside the papers' figures",
        {
            {"--machine", &request->machine, "preset or TOML file (moehub list machines)", "M"},
            {"--set", &request->settings,
             "change a machine's value, repeatable: --set moe_hub.rat_entries=32768", "KEY=VALUE"},
            {"--json", &request->json, "print JSON; bits, mm²"},
            {"-o,--output", &request->output, "write to this file instead", "FILE"},
        },
        "Example:\n  moehub area --set moe_hub.rat_entries=32768 --set dysharp.tlb_entries=1024",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
