#include "study/sweep/merge.hpp"

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/sweep_report.hpp"

#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Request {
    std::string target;
    std::vector<std::string> sources;
    std::string csv;
    bool json = false;
};

void execute(const Request& request) {
    require_writable(
        {{"target", request.target}, output_file("--csv", request.csv == "-" ? "" : request.csv)},
        request.sources);
    const MergedSweep merged = merge_sweeps(request.target, request.sources);
    const bool csv_only = request.csv == "-";
    if (!request.csv.empty())
        put(sweep_csv(merged.study, merged.outcomes), csv_only ? "" : request.csv);
    const std::size_t points = merged.outcomes.size();
    if (request.json) {
        put(document_text("merge", sweep_json(merged.study, merged.outcomes, request.target)), "");
    } else if (!csv_only) {
        const TextStyle style = style_for("");
        put(fitted(head_text(merged.study) + "\n" +
                       sweep_text(merged.study, merged.outcomes, style) +
                       fmt::format("Results: {}: {} of {} points\n", request.target,
                                   points - merged.missing, points),
                   style.width),
            "");
    }
    // For scripts: what was merged is written, but it is not the whole study.
    if (merged.missing > 0)
        throw InputError(
            fmt::format("{}: {} of {} points are missing; merge all parts, or run the study with "
                        "-o {} to go on",
                        request.target, merged.missing, points, request.target));
}

}  // namespace

Command merge_command() {
    const auto request = std::make_shared<Request>();
    return {
        "merge",
        "Join databases of parts of a sweep (moehub sweep --shard) into one",
        {
            {"target", &request->target, "the new database", "OUT.sqlite", {.required = true}},
            {"sources",
             &request->sources,
             "databases of one study's parts",
             "IN.sqlite",
             {.required = true, .many = true}},
            {"--csv", &request->csv, "the table, one row a point; - is standard output", "FILE"},
            {"--json", &request->json, "print JSON; times in µs"},
        },
        "Example:\n  moehub merge latency.sqlite latency-1-of-4.sqlite latency-2-of-4.sqlite "
        "\\\n      latency-3-of-4.sqlite latency-4-of-4.sqlite",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
