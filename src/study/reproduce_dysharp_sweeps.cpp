// Over GPUs, over the length of a sequence, and over how unevenly tokens choose experts.
#include "study/reproduce_dysharp_leads.hpp"

#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

/// From even to uneven.
constexpr std::pair<DeviationOf, const char*> kDeviations[] = {
    {DeviationOf::even_share, "an even share"},
    {DeviationOf::tokens, "the tokens"},
    {DeviationOf::choices, "all choices"},
};

void add_point(std::vector<std::string> labels, const DysharpPoint& point, const Lookup& cell,
               FigureTable& table) {
    add_leads(
        std::move(labels), kDysharpBaselines, &ReproducedCell::time,
        [&](std::string_view system) -> const ReproducedCell& {
            return cell(point.under(system, CellWork::layer));
        },
        table);
}

DysharpConfig with_sequence(DysharpConfig config, std::int64_t sequence) {
    config.sequence = static_cast<int>(sequence);
    return config;
}

FigureResult figure_of(FigureTable table, PublishedClaim claim) {
    FigureResult result;
    result.claims.push_back(std::move(claim));
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace

FigureResult dysharp_gpus_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table =
        leads_table("gpus", "More GPUs, one sequence each: time of the baseline / dysharp's",
                    {"configuration", "GPUs"}, kDysharpBaselines);
    for (const DysharpConfig& config : scope.gpus_configs)
        for (const int gpus : scope.gpus) {
            DysharpPoint point = usual_point(config);
            point.gpus = gpus;
            add_point({config.name, fmt::format("{}", gpus)}, point, cell, table);
        }
    PublishedClaim claim = lead_grows(table, "the lead grows with the GPUs");
    return figure_of(std::move(table), std::move(claim));
}

FigureResult dysharp_sequence_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table(
        "sequence",
        fmt::format("{}, longer sequences: time of the baseline / dysharp's", scope.usual.name),
        {"tokens of a GPU"}, kDysharpBaselines);
    for (const int sequence : scope.sequences)
        add_point({fmt::format("{}", sequence)}, usual_point(with_sequence(scope.usual, sequence)),
                  cell, table);
    PublishedClaim claim = lead_grows(table, "the lead grows with the sequence");
    return figure_of(std::move(table), std::move(claim));
}

FigureResult dysharp_deviation_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table("deviation",
                                    fmt::format("{}, by the standard deviation of the experts' "
                                                "shares: time of the baseline / dysharp's",
                                                scope.usual.name),
                                    {"of", "deviation"}, kDysharpBaselines);
    for (const auto& [of, name] : kDeviations)
        for (const double deviation : scope.deviations) {
            DysharpPoint point = usual_point(scope.usual);
            point.routing = dysharp_routing(scope.usual, deviation, of);
            add_point({name, fmt::format("{}", deviation)}, point, cell, table);
        }
    PublishedClaim claim = always_ahead(table, "the lead stays however uneven experts are");
    return figure_of(std::move(table), std::move(claim));
}

FigureResult dysharp_skew_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table = leads_table("skew",
                                    fmt::format("{}, inference, experts in demand by a power law: "
                                                "time of the baseline / dysharp's",
                                                scope.usual.name),
                                    {"tokens of a GPU", "α"}, kDysharpBaselines);
    for (const std::int64_t sequence : scope.skew_sequences)
        for (const double skew : scope.skews) {
            DysharpPoint point = usual_point(with_sequence(scope.usual, sequence));
            point.routing = fmt::format("zipf:{}", skew);
            add_point({fmt::format("{}", sequence), fmt::format("{}", skew)}, point, cell, table);
        }
    PublishedClaim claim = always_ahead(table, "the lead stays under power-law skew");
    return figure_of(std::move(table), std::move(claim));
}

}  // namespace moehub
