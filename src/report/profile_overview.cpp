#include "report/profile_tables.hpp"

#include <functional>

#include <fmt/format.h>

namespace moehub {
namespace {

using Value = std::optional<double>;

std::string hundredths(double value) {
    return fmt::format("{:.2f}", value);
}
std::string percent_of(double value) {
    return percent(value);
}
std::string whole(double value) {
    return fmt::format("{:.0f}", value);
}

template <class Summary, class Field>
Value field_of(const std::optional<Summary>& summary, Field field) {
    return summary ? Value(field(*summary)) : std::nullopt;
}

/// One figure of a layer; the overview has a row for each.
struct Figure {
    std::string title;
    std::function<Value(const LayerSummary&)> of;
    std::string (*text)(double);
};

std::vector<Figure> load_figures(int gpus) {
    using Layer = const LayerSummary&;
    return {
        {"busiest expert / mean", [](Layer l) { return l.load.largest_over_mean; }, hundredths},
        {"busiest expert's share", [](Layer l) { return l.load.busiest_share; }, percent_of},
        {"variation", [](Layer l) { return l.load.variation; }, hundredths},
        {"Gini", [](Layer l) { return l.load.gini; }, hundredths},
        {"effective experts", [](Layer l) { return l.load.effective_experts; }, tenths},
        {"never chosen", [](Layer l) { return static_cast<double>(l.load.never_chosen); }, whole},
        {fmt::format("busiest of {} GPUs / mean, contiguous", gpus),
         [](Layer l) { return l.load.gpu_contiguous; }, hundredths},
        {"  no placement without copies is below", [](Layer l) { return l.load.gpu_bound; },
         hundredths},
    };
}

std::vector<Figure> pair_figures() {
    using Layer = const LayerSummary&;
    using Co = const CoactivationSummary&;
    using Next = const TransitionSummary&;
    using Halves = const LoadDifference&;
    return {
        {"pairs in a layer: in the heaviest 10 %",
         [](Layer l) {
             return field_of(l.coactivation, [](Co c) { return c.concentration.heaviest_tenth; });
         },
         percent_of},
        {"  by chance",
         [](Layer l) {
             return field_of(l.coactivation, [](Co c) { return c.concentration.by_chance; });
         },
         percent_of},
        {"to the next layer: in the heaviest 10 %",
         [](Layer l) {
             return field_of(l.next, [](Next n) { return n.concentration.heaviest_tenth; });
         },
         percent_of},
        {"  by chance",
         [](Layer l) { return field_of(l.next, [](Next n) { return n.concentration.by_chance; }); },
         percent_of},
        {"  mutual information, bits",
         [](Layer l) { return field_of(l.next, [](Next n) { return n.information; }); },
         hundredths},
        {"  by chance",
         [](Layer l) { return field_of(l.next, [](Next n) { return n.information_by_chance; }); },
         hundredths},
        {"  changes GPU, contiguous",
         [](Layer l) { return field_of(l.next, [](Next n) { return n.off_gpu; }); }, percent_of},
        {"first to second half: load moved",
         [](Layer l) { return field_of(l.halves, [](Halves h) { return h.total_variation; }); },
         percent_of},
        {"  by chance",
         [](Layer l) { return field_of(l.halves, [](Halves h) { return h.by_chance; }); },
         percent_of},
        {"  correlation", [](Layer l) { return l.halves ? l.halves->correlation : std::nullopt; },
         hundredths},
    };
}

std::vector<std::string> overview_row(const Figure& figure, const ProfileSummary& summary) {
    double sum = 0;
    int count = 0;
    const LayerSummary *lowest = nullptr, *highest = nullptr;
    for (const LayerSummary& layer : summary.layers) {
        const Value value = figure.of(layer);
        if (!value) continue;
        sum += *value;
        ++count;
        if (lowest == nullptr || *value < *figure.of(*lowest)) lowest = &layer;
        if (highest == nullptr || *value > *figure.of(*highest)) highest = &layer;
    }
    if (count == 0) return {};
    const double least = *figure.of(*lowest), most = *figure.of(*highest);
    std::vector<std::string> row{
        figure.title,       figure.text == whole ? tenths(sum / count) : figure.text(sum / count),
        figure.text(least), "",
        figure.text(most),  ""};
    if (row[2] == row[4]) return row;  // all layers alike
    row[3] = fmt::format("{}", lowest->number);
    row[5] = fmt::format("{}", highest->number);
    return row;
}

}  // namespace

ReportTable overview_table(const ProfileSummary& summary) {
    ReportTable table{{{"over the layers", Table::Align::left},
                       {"mean"},
                       {"lowest"},
                       {"layer"},
                       {"highest"},
                       {"layer"}},
                      {}};
    for (const auto& figures : {load_figures(summary.gpus), pair_figures()})
        for (const Figure& figure : figures)
            if (auto row = overview_row(figure, summary); !row.empty())
                table.rows.push_back(std::move(row));
    return table;
}

}  // namespace moehub
