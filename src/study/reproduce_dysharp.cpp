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
constexpr int kSwitchesOfMore = 18;  ///< the paper's, of 64 GPUs
constexpr double kDeviation = 0.032;

Leads layer_leads() {
    return {"dysharp", {"deepep", "nvls", "fastermoe", "tutel", "ccfuser", "comet"}};
}

FigureResult grid_figure(const Leads& leads, CellWork work, const DysharpScope& scope,
                         const Lookup& cell, FigureTable table) {
    for (const DysharpConfig& config : scope.configs)
        add_leads(leads, {config.name}, usual_point(config).under("", work), cell, table);
    FigureResult result{
        published_leads(dysharp_paper(), table),
        {always_ahead(dysharp_paper(), table, "ahead of every baseline in every configuration")}};
    add_means(dysharp_paper(), table);
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult layer_figure(const DysharpScope& scope, const Lookup& cell) {
    const Leads leads = layer_leads();
    return grid_figure(
        leads, CellWork::layer, scope, cell,
        leads_table(leads, "layer", "One MoE layer: time of the baseline / dysharp's",
                    {"configuration"}));
}

FigureResult training_figure(const DysharpScope& scope, const Lookup& cell) {
    Leads leads = layer_leads();
    leads.others.push_back("dualpipe");
    leads.time = &ReproducedCell::model_time;
    return grid_figure(leads, CellWork::training, scope, cell,
                       leads_table(leads, "training",
                                   "The whole model, forward and backward: time of the baseline "
                                   "/ dysharp's",
                                   {"configuration"}));
}

void add_point(std::vector<std::string> labels, const DysharpPoint& point, const Lookup& cell,
               FigureTable& table) {
    add_leads(layer_leads(), std::move(labels), point.under(""), cell, table);
}

DysharpConfig with_sequence(DysharpConfig config, int sequence) {
    config.sequence = sequence;
    return config;
}

/// A table with what is claimed of it.
FigureResult claimed(PublishedClaim (*claim)(const Publication&, const FigureTable&,
                                             std::string_view),
                     std::string_view what, FigureTable table) {
    FigureResult result;
    result.claims = {claim(dysharp_paper(), table, what)};
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult gpus_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table(layer_leads(), "gpus",
                                    "More GPUs, one sequence each: time of the baseline / "
                                    "dysharp's",
                                    {"configuration", "GPUs"});
    for (const DysharpConfig& config : scope.gpus_configs)
        for (const int gpus : scope.gpus) {
            DysharpPoint point = usual_point(config);
            point.gpus = gpus;
            add_point({config.name, fmt::format("{}", gpus)}, point, cell, table);
        }
    return claimed(lead_grows, "the lead grows with the GPUs", std::move(table));
}

FigureResult sequence_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table(
        layer_leads(), "sequence",
        fmt::format("{}, longer sequences: time of the baseline / dysharp's", scope.usual.name),
        {"tokens of a GPU"});
    for (const int sequence : scope.sequences)
        add_point({fmt::format("{}", sequence)}, usual_point(with_sequence(scope.usual, sequence)),
                  cell, table);
    return claimed(lead_grows, "the lead grows with the sequence", std::move(table));
}

/// From even to uneven.
constexpr std::pair<DeviationOf, const char*> kDeviations[] = {
    {DeviationOf::even_share, "an even share"},
    {DeviationOf::tokens, "the tokens"},
    {DeviationOf::choices, "all choices"},
};

FigureResult deviation_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table(layer_leads(), "deviation",
                                    fmt::format("{}, by the standard deviation of the experts' "
                                                "shares: time of the baseline / dysharp's",
                                                scope.usual.name),
                                    {"of", "deviation"});
    for (const auto& [of, name] : kDeviations)
        for (const double deviation : scope.deviations) {
            DysharpPoint point = usual_point(scope.usual);
            point.routing = dysharp_routing(scope.usual, deviation, of);
            add_point({name, fmt::format("{}", deviation)}, point, cell, table);
        }
    return claimed(always_ahead, "the lead stays however uneven experts are", std::move(table));
}

FigureResult skew_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table(layer_leads(), "skew",
                                    fmt::format("{}, inference, experts in demand by a power law: "
                                                "time of the baseline / dysharp's",
                                                scope.usual.name),
                                    {"tokens of a GPU", "α"});
    for (const int sequence : scope.skew_sequences)
        for (const double skew : scope.skews) {
            DysharpPoint point = usual_point(with_sequence(scope.usual, sequence));
            point.routing = fmt::format("zipf:{}", skew);
            add_point({fmt::format("{}", sequence), fmt::format("{}", skew)}, point, cell, table);
        }
    return claimed(always_ahead, "the lead stays under power-law skew", std::move(table));
}

DysharpConfig small(int top_k) {
    return {fmt::format("S top-{}", top_k), "dysharp-s", 64, top_k, 2048};
}
DysharpConfig medium(int top_k) {
    return {fmt::format("M top-{}", top_k), "dysharp-m", 128, top_k, 4096};
}
/// Of the larger top-k a quarter of the tokens, which changes ratios little and saves most of the
/// time that all of this takes.
DysharpConfig large(int top_k) {
    return {fmt::format("L top-{}", top_k), "dysharp-l", 256, top_k, top_k > 8 ? 2048 : 8192};
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

/// One parameter set for every figure; 64 GPUs are still one node.
PaperSetup dysharp_setup() {
    PaperSetup setup = setup_of(dysharp_paper());
    setup.software = {HostMode::graph, true, false};
    setup.eager = false;
    return setup;
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

std::vector<PaperFigure> dysharp_figures(const DysharpScope& scope) {
    return {figure_of("layer", layer_figure, scope),
            figure_of("training", training_figure, scope, false),
            figure_of("traffic", dysharp_traffic, scope),
            figure_of("wire", dysharp_wire, scope),
            figure_of("ablation", dysharp_ablation, scope, false),
            figure_of("gpus", gpus_figure, scope, false),
            figure_of("sequence", sequence_figure, scope, false),
            figure_of("deviation", deviation_figure, scope, false),
            figure_of("skew", skew_figure, scope, false),
            figure_of("tlb", dysharp_tlb, scope, false),
            figure_of("buffer", dysharp_buffer, scope, false)};
}

Reproduction reproduce_dysharp(const ReproduceOptions& options) {
    const DysharpScope scope = options.quick ? quick_dysharp() : whole_dysharp();
    Reproduction all = begun(dysharp_paper(), options);
    for (std::string& sentence : all.setup)
        sentence =
            fmt::format(fmt::runtime(sentence), fmt::arg("decode", scope.skew_sequences.front()),
                        fmt::arg("prompt", scope.skew_sequences.back()),
                        fmt::arg("units", scope.unit_sequence));
    return reproduce_cells(std::move(all), dysharp_setup(), dysharp_figures(scope), options);
}

}  // namespace moehub
