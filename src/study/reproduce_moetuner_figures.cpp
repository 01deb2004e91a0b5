// A published percentage is the share of a time that is saved,
//
//     1 − time of MoETuner's layout / time of experts in order,
//
// with the mean and the tail (95th percentile) over layers and steps; of end to end it is the
// speed-up less 1.
#include "study/reproduce_moetuner.hpp"

namespace moehub {
namespace {

PublishedNumber share(const std::string& figure, std::string what, double paper, double ours) {
    PublishedNumber number;
    number.figure = figure;
    number.what = std::move(what);
    number.kind = NumberKind::share;
    number.paper = paper;
    number.ours = ours;
    return number;
}

FigureTable times_table(const MoeTunerSetup& setup, const MoeTunerTrial& trial) {
    FigureTable table{setup.figure,
                      setup.title +
                          ": times in µs over layers and steps, and what is gained end "
                          "to end",
                      {"layout"},
                      {{"layer", NumberKind::time},
                       {"all-to-all", NumberKind::time},
                       {"p95", NumberKind::time},
                       {"worst", NumberKind::time},
                       {"token processing", NumberKind::time},
                       {"p95 of it", NumberKind::time},
                       {"worst of it", NumberKind::time},
                       {"whole model", NumberKind::time},
                       {"end to end", NumberKind::share}},
                      {},
                      {}};
    for (const LayoutEffect& one : trial.effect.layouts)
        table.rows.push_back(
            {{one.layout},
             {to_us(one.layer.mean), to_us(one.collectives.mean), to_us(one.collectives.p95),
              to_us(one.collectives.worst), to_us(one.processing.mean), to_us(one.processing.p95),
              to_us(one.processing.worst), to_us(one.model), one.speedup - 1},
             false});
    return table;
}

}  // namespace

FigureResult setup_figure(const MoeTunerSetup& setup, const MoeTunerTrial& trial) {
    const LayoutEffect& before = trial.of(kContiguous);
    const LayoutEffect& after = trial.of(kMoeTuner);
    const MoeTunerNumbers& paper = setup.published;
    const auto number = [&](std::string what, double published, double ours) {
        return share(setup.figure, std::move(what), published, ours);
    };
    FigureResult result;
    result.numbers = {
        number("end to end, faster by", paper.end_to_end, after.speedup - 1),
        number("token processing, tail saved", paper.processing_tail,
               saved(before.processing.p95, after.processing.p95)),
        number("token processing, mean saved", paper.processing_mean,
               saved(before.processing.mean, after.processing.mean)),
        number("all-to-all, tail saved", paper.all_to_all_tail,
               saved(before.collectives.p95, after.collectives.p95)),
        number("all-to-all, mean saved", paper.all_to_all_mean,
               saved(before.collectives.mean, after.collectives.mean)),
    };
    result.tables = {times_table(setup, trial)};
    return result;
}

FigureResult methods_figure(const std::vector<NamedTrial>& trials) {
    FigureTable table{"methods",
                      "8 H100 in one node, EP4-TP2, held-out tokens: what each method makes of "
                      "more and less even routing",
                      {"routing", "layout"},
                      {{"load max/mean", NumberKind::ratio},
                       {"GPUs per token", NumberKind::ratio},
                       {"transitions off GPU", NumberKind::share},
                       {"heaviest pair", NumberKind::ratio},
                       {"layer µs", NumberKind::time},
                       {"end to end", NumberKind::share}},
                      {},
                      {}};
    for (const NamedTrial& named : trials) {
        for (std::size_t i = 0; i < named.trial->layouts.size(); ++i) {
            const Evaluation& seen = named.trial->held_out[i];
            const LayoutEffect& one = named.trial->effect.layouts[i];
            table.rows.push_back(
                {{named.routing, one.layout},
                 {seen.load_max_over_mean, seen.gpus_per_token, seen.off_gpu_transitions,
                  seen.heaviest_pair, to_us(one.layer.mean), one.speedup - 1},
                 false});
        }
    }
    FigureResult result;
    result.tables = {std::move(table)};
    return result;
}

}  // namespace moehub
