#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "request/predict_arguments.hpp"
#include "study/kernel_keys.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

std::string explained(const PredictArguments& request, const KernelPrediction& a) {
    Table table({{"part", Table::Align::left}, {"µs"}, {"", Table::Align::text}});
    for (const PredictedPart& part : parts_of(a.cost))
        table.add(
            {std::string(part.name), significant(part.seconds * 1e6), std::string(part.what)});
    std::string text = "\n" + table.text(style_for(""));
    text += fmt::format("\n{} GFLOP, {} MB to and from HBM\n", significant(a.cost.flops / 1e9),
                        significant(a.cost.bytes / 1e6));
    if (std::holds_alternative<DecodeCall>(a.call) && a.cost.bytes < 0.99 * memory_of(a.call))
        text +=
            "A cache of less than 0.4 of the L2 is taken to lie there, as it did when measured.\n";
    const std::string used = "kernels." + request.library;
    const auto& inherited = a.gpu.inherited;
    if (std::find(inherited.begin(), inherited.end(), used) != inherited.end())
        text += fmt::format("Constants of {} are the generation's (docs/cards.md): {}\n",
                            request.library, preset_title("generations", a.gpu.generation));
    return text;
}

std::string text_of(const PredictArguments& request, const KernelPrediction& a) {
    std::string text =
        fmt::format("{} µs on {} ({}), bound by {}: {} of the tensor cores' peak, {} of HBM\n",
                    significant(a.cost.seconds * 1e6), request.gpu, request.library,
                    bound_of(a.cost), percent(share_of_peak(a)), percent(share_of_hbm(a)));
    return request.explain ? text + explained(request, a) : text;
}

void run(const PredictArguments& request) {
    const KernelPrediction answer = predict(request);
    put(request.json ? document_text("predict", predict_json(request, answer))
                     : fitted(text_of(request, answer), style_for("").width),
        "");
}

}  // namespace

Command predict_command() {
    const auto request = std::make_shared<PredictArguments>();
    return {
        "predict",
        "Predict the time of one kernel of a serving engine on one card",
        predict_options(*request),
        "Example:\n  moehub predict gemm --gpu b200 --dtype fp8 m=4096 n=7168 k=2048 --explain",
        [request] { run(*request); },
    };
}

}  // namespace moehub
