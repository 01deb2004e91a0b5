// Layers and whole models over configurations, GPUs, sequences and routing:
//
//     lead of a cell = time of the baseline / time of DySHARP,
//
// and published are the geometric mean and the largest of the leads. A 16-way pipeline multiplies
// the time of all that run one forward, one backward by the same (micro-batches + 15) /
// micro-batches, which the leads do not have.
#include "study/reproduce_dysharp.hpp"

#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kGpus = 32;
constexpr int kSwitchesOfMore = 18;  ///< switches of a machine of 64 GPUs, as in the paper
constexpr double kDeviation = 0.032;

Leads layer_leads() {
    return {"dysharp", {"deepep", "nvls", "fastermoe", "tutel", "ccfuser", "comet"}};
}

DysharpConfig with_sequence(DysharpConfig config, int sequence) {
    config.sequence = sequence;
    return config;
}

/// One layer, or whole models in training, of every configuration.
PaperFigure grid_figure(const DysharpScope& scope, LeadsFigure figure, CellWork work,
                        bool every_reading) {
    figure.labels = {"configuration"};
    figure.means = true;
    figure.claims = {{always_ahead, "ahead of every baseline in every configuration"}};
    for (const DysharpConfig& config : scope.configs)
        figure.rows.push_back({{config.name}, usual_point(config).under("", work)});
    return figure_of(dysharp_paper(), std::move(figure), every_reading);
}

PaperFigure layer_figure(const DysharpScope& scope) {
    return grid_figure(
        scope, {"layer", "One MoE layer: time of the baseline / dysharp's", {}, layer_leads(), {}},
        CellWork::layer, true);
}

PaperFigure training_figure(const DysharpScope& scope) {
    Leads leads = layer_leads();
    leads.others.push_back("dualpipe");
    leads.time = &ReproducedCell::model_time;
    return grid_figure(scope,
                       {"training",
                        "The whole model, forward and backward: time of the baseline / dysharp's",
                        {},
                        leads,
                        {}},
                       CellWork::training, false);
}

std::vector<LeadsRow> gpus_rows(const DysharpScope& scope) {
    std::vector<LeadsRow> rows;
    for (const DysharpConfig& config : scope.gpus_configs)
        for (const int gpus : scope.gpus) {
            DysharpPoint point = usual_point(config);
            point.gpus = gpus;
            rows.push_back({{config.name, std::to_string(gpus)}, point.under("")});
        }
    return rows;
}

std::vector<LeadsRow> sequence_rows(const DysharpScope& scope) {
    std::vector<LeadsRow> rows;
    for (const int sequence : scope.sequences)
        rows.push_back({{std::to_string(sequence)},
                        usual_point(with_sequence(scope.usual, sequence)).under("")});
    return rows;
}

/// What the deviation is a part of, from even to uneven routing.
constexpr std::pair<DeviationOf, const char*> kDeviations[] = {
    {DeviationOf::even_share, "an even share"},
    {DeviationOf::tokens, "the tokens"},
    {DeviationOf::choices, "all choices"},
};

std::vector<LeadsRow> deviation_rows(const DysharpScope& scope) {
    std::vector<LeadsRow> rows;
    for (const auto& [of, name] : kDeviations)
        for (const double deviation : scope.deviations) {
            DysharpPoint point = usual_point(scope.usual);
            point.routing = dysharp_routing(scope.usual, deviation, of);
            rows.push_back({{name, fmt::format("{}", deviation)}, point.under("")});
        }
    return rows;
}

std::vector<LeadsRow> skew_rows(const DysharpScope& scope) {
    std::vector<LeadsRow> rows;
    for (const int sequence : scope.skew_sequences)
        for (const double skew : scope.skews) {
            DysharpPoint point = usual_point(with_sequence(scope.usual, sequence));
            point.routing = fmt::format("zipf:{}", skew);
            rows.push_back({{std::to_string(sequence), fmt::format("{}", skew)}, point.under("")});
        }
    return rows;
}

DysharpConfig small(int top_k) {
    return {fmt::format("S top-{}", top_k), "dysharp-s", 64, top_k, 2048};
}
DysharpConfig medium(int top_k) {
    return {fmt::format("M top-{}", top_k), "dysharp-m", 128, top_k, 4096};
}
/// Configurations with a larger top-k have a quarter of the tokens, which changes ratios little and
/// saves most of the time that all of this takes.
DysharpConfig large(int top_k) {
    return {fmt::format("L top-{}", top_k), "dysharp-l", 256, top_k, top_k > 8 ? 2048 : 8192};
}

DysharpScope quick_dysharp() {
    const DysharpConfig few = with_sequence(small(8), 256);
    return {.configs = {few},
            .large = few,
            .gpus_configs = {few},
            .gpus = {4, 32},
            .usual = few,
            .sequences = {128, 256},
            .deviations = {0.032},
            .skews = {1.5},
            .skew_sequences = {16, 256},
            .tlb_entries = {64, 512},
            .sum_packets = {64, 512},
            .unit_sequence = 16};
}

}  // namespace

const Publication& dysharp_paper() {
    return publication("dysharp");
}

DysharpScope whole_dysharp() {
    DysharpScope scope{.configs = {},
                       .large = large(8),
                       .gpus_configs = {small(8), medium(8)},
                       .gpus = {4, 8, 16, 32, 64},
                       .usual = small(8),
                       .sequences = {1024, 2048, 4096, 8192, 16384},
                       .deviations = {0.01, 0.032, 0.05},
                       .skews = {0.5, 1, 1.5, 2, 2.5},
                       .skew_sequences = {16, 2048},
                       .tlb_entries = {64, 128, 256, 512, 1024, 2048},
                       .sum_packets = {64, 128, 256, 512, 1024, 2048},
                       .unit_sequence = 256};
    for (const auto of : {small, medium, large})
        for (const int top_k : {8, 16, 32}) scope.configs.push_back(of(top_k));
    scope.configs.push_back({"GPT-OSS", "gpt-oss-120b-dysharp", 64, 4, 4096});
    scope.configs.push_back({"Qwen3", "qwen3-235b-a22b", 128, 8, 4096});
    return scope;
}

CellKey DysharpPoint::under(std::string_view system, CellWork work) const {
    CellKey key{config.model, gpus, std::int64_t{config.sequence} * gpus, routing,
                std::string(system)};
    key.work = work;
    key.changes = {fmt::format("model.top_k={}", config.top_k)};
    if (gpus > kGpus) key.changes.push_back(fmt::format("switches={}", kSwitchesOfMore));
    return key;
}

DysharpPoint usual_point(const DysharpConfig& config) {
    return {config, kGpus, dysharp_routing(config, kDeviation)};
}

/// A routing's shares are of all choices.
std::string dysharp_routing(const DysharpConfig& config, double deviation, DeviationOf of) {
    if (of == DeviationOf::even_share) deviation /= config.experts;
    if (of == DeviationOf::tokens) deviation /= config.top_k;
    return fmt::format("normal:{:g}", deviation);
}

/// One parameter set for every figure; 64 GPUs are still one node.
PaperOfCells dysharp_cells(bool quick) {
    const DysharpScope scope = quick ? quick_dysharp() : whole_dysharp();
    const std::string& usual = scope.usual.name;
    const auto sweep = [](const char* name, std::string title, std::vector<std::string> labels,
                          std::vector<LeadsRow> rows, LeadsClaim claim) {
        return figure_of(
            dysharp_paper(),
            {name, std::move(title), std::move(labels), layer_leads(), std::move(rows), {claim}},
            false);
    };
    PaperOfCells cells{dysharp_paper(), setup_of(dysharp_paper()), {}};
    cells.setup.software = {HostMode::graph, true, false};
    cells.setup.eager = false;
    for (std::string& sentence : cells.paper.setup)
        sentence =
            fmt::format(fmt::runtime(sentence), fmt::arg("decode", scope.skew_sequences.front()),
                        fmt::arg("prompt", scope.skew_sequences.back()),
                        fmt::arg("units", scope.unit_sequence));
    std::vector<PaperFigure>& figures = cells.figures;
    figures = dysharp_parts(scope);
    figures.insert(figures.begin(), {layer_figure(scope), training_figure(scope)});
    figures.insert(
        figures.end(),
        {sweep("gpus", "More GPUs, one sequence each: time of the baseline / dysharp's",
               {"configuration", "GPUs"}, gpus_rows(scope),
               {lead_grows, "the lead grows with the GPUs"}),
         sweep("sequence",
               fmt::format("{}, longer sequences: time of the baseline / dysharp's", usual),
               {"tokens of a GPU"}, sequence_rows(scope),
               {lead_grows, "the lead grows with the sequence"}),
         sweep("deviation",
               fmt::format("{}, by the standard deviation of the experts' shares: time of the "
                           "baseline / dysharp's",
                           usual),
               {"of", "deviation"}, deviation_rows(scope),
               {always_ahead, "the lead stays however uneven experts are"}),
         sweep(
             "skew",
             fmt::format("{}, inference, experts in demand by a power law: time of the baseline / "
                         "dysharp's",
                         usual),
             {"tokens of a GPU", "α"}, skew_rows(scope),
             {always_ahead, "the lead stays under power-law skew"})});
    for (PaperFigure& one : dysharp_units(scope)) figures.push_back(std::move(one));
    return cells;
}

}  // namespace moehub
