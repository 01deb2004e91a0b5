#include "study/reproduce_pangu.hpp"

#include <functional>

namespace moehub {
namespace {

std::vector<std::string> setup_sentences() {
    return {
        "Machine ascend-910b-cluster: 8 NPUs a node in a mesh, 200 Gb/s RoCE an NPU; model "
        "pangu-ultra-moe, sequences of 8,192, bf16. Parallel layout, the paper's: TP 8, PP 16, VPP "
        "2, experts over 32 NPUs (EP 4 extended by TP), micro-batches of 2, ZeRO-1.",
        "The global batch is not published: 64 micro-batches a pipeline.",
        "MFU counts 6 FLOPs for each weight that multiplies a token, all of attention's scores "
        "(12 for each pair of query and key element, those above the diagonal too) and multi-token "
        "prediction, of a peak of 313 TFLOP/s. The two published pairs of MFU and tokens/s then "
        "ask for 290 to 300 TFLOP/s; counting half of the scores, for 235, which no 910B has.",
        "The card was not measured: one constant, the share of the tensor rate that products "
        "keep, is fitted to the optimised run. Of the baseline, all-to-all, full recomputation and "
        "no overlap follow from what the paper adds; how uneven its experts are loaded "
        "(log-normal, 0.2) is a choice.",
        "Times are by the planner's tables, as moehub validate has them.",
        "The 66-layer option is not published: the fastest shape of 66 layers is taken that has as "
        "many parameters, all and active, within 5 % (moehub plan --search-model).",
    };
}

constexpr Reason kReasons[] = {
    {"training", "MFU, baseline", Side::below,
     "How uneven experts were loaded before they were placed is not published; evenly loaded, the "
     "baseline lies above the published MFU."},
    {"training", "thousand tokens/s, baseline", Side::below,
     "As its MFU, and the peak that counts: the published pair asks for a card 5 % slower than "
     "the one taken."},
};

struct Figure {
    NamedFigure named;
    std::function<FigureResult(PanguRuns&)> make;
};

std::vector<Figure> figures() {
    return {
        {{"parameters", "how large the model is"},
         [](PanguRuns&) { return pangu_parameters_figure(); }},
        {{"training", "MFU and tokens/s before and after"}, pangu_training_figure},
        {{"techniques", "what each technique brings"}, pangu_techniques_figure},
        {{"layers", "61 layers against others"}, pangu_layers_figure},
    };
}

}  // namespace

std::string pangu_reason(std::string_view figure, std::string_view what, Side side) {
    return reason_among(kReasons, figure, what, side);
}

std::vector<NamedFigure> pangu_figures() {
    std::vector<NamedFigure> named;
    for (const Figure& one : figures()) named.push_back(one.named);
    return named;
}

/// All of it takes a minute: there is nothing that --quick would leave out.
Reproduction reproduce_pangu(const ReproduceOptions& options) {
    check_figure(options.figure, pangu_figures());
    Reproduction all;
    all.paper = "pangu";
    all.title = "Pangu Ultra MoE";
    all.arxiv = "2505.04519";
    all.setup = setup_sentences();
    all.means = Means::none;
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    PanguRuns runs;
    const std::vector<Figure> every = figures();
    for (std::size_t i = 0; i < every.size(); ++i) {
        if (!options.figure || *options.figure == every[i].named.name)
            add_explained(every[i].make(runs), pangu_reason, all);
        if (options.progress) options.progress(i + 1, every.size());
    }
    return all;
}

}  // namespace moehub
