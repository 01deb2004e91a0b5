#include "request/place_checks.hpp"

#include "base/utf8.hpp"
#include "report/table.hpp"
#include "request/values.hpp"

#include <algorithm>
#include <filesystem>

namespace moehub {
LayoutFormat format_of(const PlaceArguments& arguments) {
    LayoutFormat format = LayoutFormat::sglang;
    const std::string ending = std::filesystem::path(arguments.output).extension().string();
    if (ending == ".csv") format = LayoutFormat::csv;
    if (ending == ".yaml" || ending == ".yml") format = LayoutFormat::trtllm;
    if (arguments.format) {
        const std::vector<std::string> known = layout_formats();
        if (std::find(known.begin(), known.end(), *arguments.format) == known.end())
            throw InputError(fmt::format("--format: found {}, allowed: {}{}",
                                         moehub::quoted(*arguments.format), fmt::join(known, ", "),
                                         did_you_mean(*arguments.format, known)));
        format = parse_layout_format(*arguments.format);
    }
    if (arguments.unequal && !arguments.output.empty() && !why_equal_slots(format).empty())
        throw InputError(fmt::format("--unequal: found --format {}, {}, allowed: with csv, json",
                                     to_string(format), why_equal_slots(format)));
    return format;
}

void check_output(const PlaceArguments& arguments) {
    for (const auto* files :
         {&arguments.profiles.ranks, &arguments.profiles.files, &arguments.evaluate})
        for (const auto& [option, path] :
             {std::pair("-o", arguments.output), {"--html", arguments.html.path.value_or("")}})
            check_output_apart(option, path, *files);
}

void check_dense_layers(const PlaceArguments& arguments, const PlaceTask& task) {
    const Profile& profile = task.input.profiles.front();
    if (arguments.output.empty() || task.format != LayoutFormat::sglang || profile.layers_said)
        return;
    throw InputError(
        fmt::format("--format sglang: found no word in {} on how many dense layers the model "
                    "begins with, and SGLang wants a row for every layer, allowed: with --model M "
                    "or --dense-layers N (0: none)",
                    printable(profile.name)));
}

void check_memory(const PlaceArguments& arguments, const PlaceTask& task) {
    if (!task.model) {
        if (arguments.memory)
            throw InputError(
                "--memory: found without --model, which says how large an expert is, "
                "allowed: with it");
        return;
    }
    const Model& model = *task.model;
    const int bits = static_cast<int>(count_of("--weight-bits", arguments.weight_bits, {1, 64}));
    const Bytes limit =
        arguments.memory ? size_of("--memory", *arguments.memory) : task.machine.gpu.hbm_capacity;
    const double expert = (model.gated ? 3.0 : 2.0) * model.hidden * model.expert_ffn * bits / 8;
    const int slots =
        (model.experts + task.input.redundant + task.input.gpus - 1) / task.input.gpus;
    const double all = expert * slots * model.moe_layers();
    if (limit <= 0 || all <= static_cast<double>(limit)) return;
    throw InputError(fmt::format(
        "--memory: found {} slot{} of {} a GPU in {} layer{}, {}, allowed: {}; fewer "
        "--replicas or more --gpus{}",
        slots, slots == 1 ? "" : "s", byte_size(expert), model.moe_layers(),
        model.moe_layers() == 1 ? "" : "s", byte_size(all), byte_size(static_cast<double>(limit)),
        bits == 16 ? ", or --weight-bits 8 where weights are FP8" : ""));
}

}  // namespace moehub
