#include "request/trace_output.hpp"

#include "request/values.hpp"

namespace moehub {
namespace {

constexpr std::int64_t kMostRows = 4096;

}  // namespace

void add_trace_options(std::vector<Option>& options, TraceArguments& arguments) {
    options.push_back({"--trace", &arguments.file,
                       "also write a timeline that the Perfetto UI opens: kernels, SMs, links, "
                       "units, and some rows on their way",
                       "FILE"});
    options.push_back({"--trace-rows",
                       &arguments.rows,
                       "rows to follow in each layer, at most; without it 64",
                       "N",
                       {.needs = "--trace"}});
}

TimelineOptions timeline_of(const TraceArguments& arguments) {
    TimelineOptions options;
    options.record = !arguments.file.empty();
    if (arguments.rows)
        options.followed_rows =
            static_cast<int>(count_of("--trace-rows", *arguments.rows, {0, kMostRows}));
    return options;
}

}  // namespace moehub
