#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "request/collective_arguments.hpp"
#include "study/collective_names.hpp"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::string table_text(const CollectiveRun& run, const CollectiveArguments& request) {
    const auto& [what, result, wall_seconds] = run;
    const auto traffic = [gpus = what.gpus](Bytes bytes) {
        const auto total = static_cast<double>(bytes);
        return fmt::format("{} ({} per GPU)", byte_size(total), byte_size(total / gpus));
    };
    std::string out = fmt::format(
        "{} ({}) of {} on {}, {} GPUs, {} grain{}{}\n\n", name_of(what.op), name_of(what.algorithm),
        byte_size(static_cast<double>(what.bytes)), request.machine, what.gpus, name_of(what.grain),
        request.settings.empty() ? "" : ", with ", fmt::join(request.settings, ", "));
    const auto line = [&out](std::string_view name, const std::string& value) {
        out += fmt::format("  {:<20}{}\n", name, value);
    };
    if (!result.chosen.empty()) line("as NCCL chooses", result.chosen);
    if (!result.part.empty()) line("counted from", result.part);
    line("time", duration(to_seconds(result.time)));
    line("bus bandwidth", significant(result.bus_bandwidth / 1e9) + " GB/s");
    line("algorithm bandwidth", significant(algorithm_bandwidth(run) / 1e9) + " GB/s");
    line("traffic up", traffic(result.bytes_up));
    line("traffic down", traffic(result.bytes_down));
    line("packets", grouped(result.packets));
    line("events", grouped(result.events));
    line("wall time", duration(wall_seconds));
    if (wall_seconds > 0)
        line("simulated", significant(static_cast<double>(result.packets) / wall_seconds / 1e6) +
                              " million packets/s");
    return out;
}

}  // namespace

Command collective_command() {
    const auto request = std::make_shared<CollectiveArguments>();
    const auto execute = [request] {
        require_writable({output_file("-o", request->output)});
        const CollectiveRun done = run_collective(*request);
        put(request->json ? document_text("collective", collective_json(done, *request))
                          : fitted(table_text(done, *request), style_for(request->output).width),
            request->output);
    };
    return {
        "collective",
        "Simulate one collective on a machine's fabric: time, bandwidth, traffic",
        collective_options(*request),
        "Example:\n  moehub collective --op all_reduce --algorithm nvls --bytes 8G\n"
        "  moehub collective --op all_reduce --algorithm auto --bytes 4M",
        execute,
    };
}

}  // namespace moehub
