#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/layer_page.hpp"
#include "report/placement_page.hpp"
#include "report/placement_report.hpp"
#include "report/progress.hpp"
#include "request/place_answer.hpp"
#include "request/place_arguments.hpp"
#include "request/place_choice.hpp"

#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

Placed search(const Interrupt& interrupt, PlaceTask& task, bool pareto) {
    Progress progress("placing");
    Placed placed = search_layout(
        task, pareto, {interrupt.token(), [&](double share) { progress.update_share(share); }});
    if (interrupt.happened())
        fmt::print(stderr, "moehub: this is the best found until the interruption\n");
    return placed;
}

void write(const PlaceArguments& arguments, const PlaceTask& task, const Placed& placed) {
    if (arguments.output.empty()) return;
    put(layout_text(placed.result.layout, task.format), arguments.output);
}

void execute(const PlaceArguments& arguments) {
    // From the start: who stops a search that has not begun gets what it begins with.
    const Interrupt interrupt;
    require_writable({output_file("-o", arguments.output), html_file(arguments.html)});
    PlaceTask task = load_place(arguments);
    Placed placed = search(interrupt, task, arguments.pareto);
    write(arguments, task, placed);  // before what takes long or can fail
    if (!task.systems.empty() && take_fastest(task, placed)) write(arguments, task, placed);
    note_layers_in_order(task, placed);
    const PlacementReport report = report_of(arguments, task, placed);
    const auto document = [&] { return document_text("place", placement_json(report)); };
    if (arguments.html.asked()) {
        Page page = placement_page(report);
        page.configuration = configuration_of(task.machine, task.model, task.systems);
        put_page(arguments.html, std::move(page), document());
    }
    const TextStyle style = style_for("");
    put(arguments.json ? document() : fitted(placement_text(report, style), style.width), "");
    if (interrupt.happened()) throw Interrupted();
}

}  // namespace

Command place_command() {
    const auto arguments = std::make_shared<PlaceArguments>();
    return {
        "place",
        "Place experts on GPUs from recorded routing, in the files servers load",
        place_options(*arguments),
        "Example:\n"
        "  moehub place law.npy:0-0.5 --evaluate law.npy:0.5-1 --gpus 8 --model deepseek-v2-lite "
        "\\\n      --system deepep -o layout.json\n"
        "  moehub place dumps/*.pt --gpus 16 --machine h100-cluster --replicas 16 -o layout.json\n"
        "  moehub place --profile law.npy intent.npy@2 --gpus 16 --replicas 16 --load-blocks 4 \\\n"
        "      --model deepseek-v2-lite --machine h100-cluster --format trtllm -o layout.yaml\n"
        "  moehub place --profile new.npy --current layout.json --max-moves 40 -o next.json\n"
        "  moehub place --profile law.npy --objective gpus+4*transitions --pareto --time-limit 20",
        [arguments] { execute(*arguments); },
    };
}

}  // namespace moehub
