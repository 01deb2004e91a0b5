#include "answers/profile_answer.hpp"

#include "report/number.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kManyLayers = 32;  ///< from here on terminals get extremes alone
constexpr std::size_t kBusiest = 16;

using Layer = LayerSummary;
using OfLayer = std::function<Json(const Layer&)>;

/// A figure of a layer.
struct LayerFigure {
    std::string key;  ///< "load.gini"
    Show show;
    OfLayer value;
    std::string overview = {};  ///< what it is called over all layers; empty: not there
    std::string column = {};    ///< layer by layer; empty: programs alone get it
};

Json json_of(const std::optional<double>& value) {
    return or_null(value);
}
Json json_of(const std::vector<CoactivePair>& pairs) {
    Json list = Json::array();
    for (const CoactivePair& one : pairs)
        list.push_back({{"first", one.first},
                        {"second", one.second},
                        {"together", one.together},
                        {"lift", one.lift}});
    return list;
}
template <class Value>
Json json_of(const Value& value) {
    return value;
}

template <class Value>
OfLayer load(Value LoadSummary::*member) {
    return [member](const Layer& layer) { return json_of(layer.load.*member); };
}

/// A member of a part that not every layer has.
template <class Part, class Value>
OfLayer of(std::optional<Part> Layer::*part, Value Part::*member) {
    return [=](const Layer& layer) {
        return layer.*part ? json_of((*(layer.*part)).*member) : Json(nullptr);
    };
}
template <class Part>
OfLayer of(std::optional<Part> Layer::*part, double Concentration::*member) {
    return [=](const Layer& layer) {
        return layer.*part ? Json((*(layer.*part)).concentration.*member) : Json(nullptr);
    };
}

std::vector<LayerFigure> figures_of(int gpus) {
    using Load = LoadSummary;
    using Co = CoactivationSummary;
    using Next = TransitionSummary;
    using Halves = LoadDifference;
    constexpr auto together = &Layer::coactivation;
    constexpr auto next = &Layer::next;
    constexpr auto halves = &Layer::halves;
    constexpr auto tenth = &Concentration::heaviest_tenth;
    constexpr auto chance = &Concentration::by_chance;
    const std::string busiest = fmt::format("busiest of {} GPUs / mean, in order", gpus);
    return {
        {"load.rows", kWhole, load(&Load::rows)},
        {"load.tokens", kWhole, load(&Load::tokens)},
        {"load.mean", kSignificant, load(&Load::mean)},
        {"load.largest", kWhole, load(&Load::largest)},
        {"load.busiest", kWhole, load(&Load::busiest), "", "busiest"},
        {"load.largest_over_mean", fixed(2), load(&Load::largest_over_mean),
         "busiest expert / mean", "/ mean"},
        {"load.busiest_share", kPercent, load(&Load::busiest_share), "busiest expert's share"},
        {"load.variation", fixed(2), load(&Load::variation), "variation"},
        {"load.gini", fixed(2), load(&Load::gini), "Gini", "Gini"},
        {"load.effective_experts", kTenths, load(&Load::effective_experts), "effective experts",
         "effective"},
        {"load.never_chosen", kWhole, load(&Load::never_chosen), "never chosen"},
        {"load.largest_over_gpu", fixed(2), load(&Load::largest_over_gpu)},
        {"load.gpu_contiguous", fixed(2), load(&Load::gpu_contiguous), busiest, "GPU"},
        {"load.gpu_bound", fixed(2), load(&Load::gpu_bound), "  at best without copies", "bound"},
        {"together.pairs", kWhole, of(together, &Co::pairs)},
        {"together.heaviest_tenth", kPercent, of(together, tenth),
         "pairs in a layer: in the heaviest 10 %"},
        {"together.heaviest_tenth_by_chance", kPercent, of(together, chance), "  by chance"},
        {"together.top_share", kPercent, of(together, &Co::top_share)},
        {"together.top_share_by_chance", kPercent, of(together, &Co::top_share_by_chance)},
        {"together.top", kHidden, of(together, &Co::top)},
        {"next.transitions", kWhole, of(next, &Next::transitions)},
        {"next.heaviest_tenth", kPercent, of(next, tenth),
         "to the next layer: in the heaviest 10 %"},
        {"next.heaviest_tenth_by_chance", kPercent, of(next, chance), "  by chance"},
        {"next.information_bits", fixed(2), of(next, &Next::information),
         "  mutual information, bits"},
        {"next.information_bits_by_chance", fixed(2), of(next, &Next::information_by_chance),
         "  by chance"},
        {"next.off_gpu_contiguous", kPercent, of(next, &Next::off_gpu), "  changes GPU, in order"},
        {"halves.total_variation", kPercent, of(halves, &Halves::total_variation),
         "first to second half: load moved"},
        {"halves.by_chance", kPercent, of(halves, &Halves::by_chance), "  by chance"},
        {"halves.correlation", fixed(2), of(halves, &Halves::correlation), "  correlation"},
    };
}

/// A row of the tables by layer: programs get one of all profiles, people one of each.
struct LayerRow {
    std::size_t profile;
    const ProfileSummary& summary;
    const Layer& layer;

    std::vector<double> counts() const {
        const auto at = (&layer - summary.layers.data()) * summary.experts;
        return {summary.counts.begin() + at, summary.counts.begin() + at + summary.experts};
    }
};

void add_rows(const ProfileReport& report, std::size_t profile, std::vector<LayerRow>& rows) {
    const ProfileSummary& summary = report.profiles[profile];
    for (const Layer& layer : summary.layers) rows.push_back({profile, summary, layer});
}

template <class Row, class Value>
ColumnOf<Row> member(const char* key, Value Row::*value) {
    return {hidden(key), [value](const Row& row) { return json_of(row.*value); }};
}

Table all_profiles(const ProfileReport& report) {
    using One = ProfileSummary;
    return table_of<One>(
        "profiles", "",
        {member("name", &One::name), member("tokens", &One::tokens), member("steps", &One::steps),
         member("experts", &One::experts), member("top_k", &One::top_k), member("gpus", &One::gpus),
         member("pair_tokens", &One::pair_tokens), member("notes", &One::notes)},
        report.profiles);
}

Table all_differences(const ProfileReport& report) {
    using One = ProfileDifference;
    return table_of<One>(
        "differences", "",
        {member("first", &One::first), member("second", &One::second),
         member("total_variation", &One::total_variation), member("by_chance", &One::by_chance),
         member("worst", &One::worst), member("worst_layer", &One::worst_layer),
         member("correlation", &One::correlation)},
        report.differences);
}

// What people get.

std::string name_text(const ProfileReport& report, std::size_t profile) {
    const std::string& name = report.profiles[profile].name;
    return report.profiles.size() > 1 ? fmt::format("{}  {}", profile + 1, name) : name;
}

std::string size_text(const ProfileSummary& summary) {
    const std::string what = summary.tokens > 0 ? grouped(summary.tokens) + " tokens"
                             : summary.steps > 0
                                 ? fmt::format("counts of {} steps", grouped(summary.steps))
                                 : "counts";
    return fmt::format("{}, {} of {} experts{}", what, several(std::ssize(summary.layers), "layer"),
                       summary.experts,
                       summary.top_k > 0 ? fmt::format(", top-{}", summary.top_k) : "");
}

/// Text in a column of numbers.
constexpr Show kAsNumber = kSignificant;

/// "31.2 (17.0)": beside it what chance gives.
std::string beside_chance(double value, double chance) {
    return fmt::format("{:.1f} ({:.1f})", 100 * value, 100 * chance);
}

template <class Part>
bool any_has(const ProfileSummary& summary, std::optional<Part> Layer::*part) {
    return std::any_of(summary.layers.begin(), summary.layers.end(),
                       [part](const Layer& layer) { return (layer.*part).has_value(); });
}

/// How a value is told by what stands beside it: a column of people's alone.
template <class Part>
ColumnOf<LayerRow> concentration_column(const char* words, const ProfileSummary& summary,
                                        std::optional<Part> Layer::*part) {
    return {{words, "", any_has(summary, part) ? kAsNumber : kHidden}, [part](const LayerRow& row) {
                const auto& one = row.layer.*part;
                return one ? Json(beside_chance(one->concentration.heaviest_tenth,
                                                one->concentration.by_chance))
                           : Json(nullptr);
            }};
}

/// People get the figures that have a column, programs all.
Table layers_table(const std::string& key, const std::vector<LayerRow>& rows) {
    const ProfileSummary& summary = rows.front().summary;
    std::vector<ColumnOf<LayerRow>> columns{
        {hidden("profile"), &LayerRow::profile},
        {{"layer", "layer", kWhole}, [](const LayerRow& row) { return row.layer.number; }}};
    for (const LayerFigure& one : figures_of(summary.gpus))
        columns.push_back({{one.column, one.key, one.column.empty() ? kHidden : one.show},
                           [value = one.value](const LayerRow& row) { return value(row.layer); }});
    append(columns, {concentration_column("together %", summary, &Layer::coactivation),
                     concentration_column("next %", summary, &Layer::next),
                     {{"moved %", "", any_has(summary, &Layer::halves) ? kAsNumber : kHidden},
                      [](const LayerRow& row) {
                          const auto& one = row.layer.halves;
                          return one ? Json(beside_chance(one->total_variation, one->by_chance))
                                     : Json(nullptr);
                      }},
                     {hidden("counts"), &LayerRow::counts}});
    return table_of(key, "By layer", columns, rows);
}

std::string layers_legend(const ProfileSummary& summary) {
    const bool halves = any_has(summary, &Layer::halves);
    return fmt::format(
        "busiest: the expert with the most rows, over the mean of all; effective: so many experts "
        "with equal rows were as uneven; GPU: the busiest of {} GPUs over their mean, experts in "
        "order; bound: the same, at best{}{}{}",
        summary.gpus,
        summary.pair_tokens > 0
            ? "; together: pairs of experts in the layer that are in the heaviest 10 % of pairs; "
              "next: from it to the next"
            : "",
        halves ? "; moved: load on other experts in the second half of the profile" : "",
        summary.pair_tokens > 0 || halves ? "; in brackets: by chance" : "");
}

double number_of(const Json& value) {
    double number = 0;
    value.visit([&number](const auto& held) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(held)>>)
            number = static_cast<double>(held);
    });
    return number;
}

/// Mean, extremes and the layers that have them; no cells where no layer has the figure.
std::vector<Json> overview_row(const LayerFigure& figure, const ProfileSummary& summary) {
    std::vector<std::pair<double, int>> values;  // with the layer's number
    double sum = 0;
    for (const Layer& layer : summary.layers)
        if (const Json value = figure.value(layer); !shown(value, kText).empty()) {
            values.emplace_back(number_of(value), layer.number);
            sum += values.back().first;
        }
    if (values.empty()) return {};
    const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
    const auto least = std::min_element(values.begin(), values.end(), less);
    const auto most = std::max_element(values.begin(), values.end(), less);
    const std::string low = shown(least->first, figure.show),
                      high = shown(most->first, figure.show);
    const Show mean = figure.show.form == Show::Form::whole ? kTenths : figure.show;
    std::vector<Json> row{figure.overview,
                          shown(sum / static_cast<double>(values.size()), mean),
                          low,
                          std::to_string(least->second),
                          high,
                          std::to_string(most->second)};
    if (low == high) row[3] = row[5] = nullptr;  // all layers alike
    return row;
}

Table overview_table(const ProfileSummary& summary, const std::string& caption) {
    Table table{"",
                caption,
                {{"over the layers"},
                 {"mean", "", kAsNumber},
                 {"lowest", "", kAsNumber},
                 {"layer", "", kAsNumber},
                 {"highest", "", kAsNumber},
                 {"layer", "", kAsNumber}},
                {}};
    for (const LayerFigure& figure : figures_of(summary.gpus))
        if (!figure.overview.empty())
            if (auto row = overview_row(figure, summary); !row.empty())
                table.rows.push_back(std::move(row));
    return table;
}

/// One layer's figures.
Table layer_table(const ProfileSummary& summary, const Layer& layer, const std::string& name) {
    const LoadSummary& of = layer.load;
    const std::string tokens =
        of.tokens > 0 ? fmt::format(" of {} tokens", grouped(of.tokens)) : "";
    Table table{"",
                fmt::format("{}Layer {}: {} rows{}, {} an expert", name, layer.number,
                            shown(of.rows, kWhole), tokens, significant(of.mean)),
                {{"figure"}, {"value", "", kAsNumber}},
                {}};
    for (const LayerFigure& figure : figures_of(summary.gpus))
        if (const Json value = figure.value(layer);
            !figure.overview.empty() && !shown(value, kText).empty())
            table.rows.push_back({figure.overview, shown(value, figure.show)});
    return table;
}

Table busiest_table(const ProfileSummary& summary, int layer) {
    const Layer& one = summary.layers[static_cast<std::size_t>(layer)];
    const std::vector<double> counts = LayerRow{0, summary, one}.counts();
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
    order.resize(one.load.rows > 0 ? std::min(order.size(), kBusiest) : 0);
    using Expert = std::size_t;
    return table_of<Expert>(
        "", fmt::format("Busiest experts of layer {}", one.number),
        {{{"expert", "expert", kWhole}, [](Expert expert) { return expert; }},
         {{"rows", "rows", kSignificant}, [&](Expert expert) { return counts[expert]; }},
         {{"share", "", kPercent}, [&](Expert expert) { return counts[expert] / one.load.rows; }},
         {{"/ mean", "", fixed(2)}, [&](Expert expert) { return counts[expert] / one.load.mean; }},
         {{"", "", bar_of(40)}, [&](Expert expert) { return counts[expert] / one.load.largest; }}},
        order);
}

Table pairs_table(const Layer& layer) {
    const CoactivationSummary pairs = layer.coactivation.value_or(CoactivationSummary{});
    using Pair = CoactivePair;
    return table_of<Pair>(
        "",
        fmt::format("Chosen together in layer {}, farthest above chance: {} of all pairs, by "
                    "chance {}",
                    layer.number, percent(pairs.top_share), percent(pairs.top_share_by_chance)),
        {{{"experts", "", kAsNumber},
          [](const Pair& pair) { return fmt::format("{} + {}", pair.first, pair.second); }},
         {{"together", "", kWhole}, &Pair::together},
         {{"share of pairs", "", kPercent},
          [&pairs](const Pair& pair) {
              return static_cast<double>(pair.together) / static_cast<double>(pairs.pairs);
          }},
         {{"over chance", "", fixed(2)}, &Pair::lift}},
        pairs.top);
}

/// Each profile beside each.
Table differences_table(const ProfileReport& report) {
    Table table{"",
                "Load that differs, % of the rows, mean over layers (in brackets: by chance)",
                {{"profile"}},
                {}};
    for (std::size_t i = 0; i < report.profiles.size(); ++i) {
        table.columns.push_back({fmt::format("{}", i + 1), "", kAsNumber});
        auto& row = table.rows.emplace_back(report.profiles.size() + 1);
        row[0] = name_text(report, i);
        row[i + 1] = "·";
    }
    for (const ProfileDifference& one : report.differences)
        table.rows[one.first][one.second + 1] = table.rows[one.second][one.first + 1] =
            beside_chance(one.total_variation, one.by_chance);
    return table;
}

// Sections.

/// Experts and pairs of one layer.
void add_layer(const ProfileSummary& summary, int layer, Reader reader, Section& section) {
    Table busiest = busiest_table(summary, layer);
    BarChart bars =
        bars_of(busiest,
                "Rows of the busiest experts of layer " +
                    std::to_string(summary.layers[static_cast<std::size_t>(layer)].number),
                "expert", {"rows"}, "rows");
    section.blocks.push_back({std::move(busiest), reader});
    if (!bars.categories.empty()) section.blocks.push_back({std::move(bars), Reader::page});
    section.blocks.push_back(
        {pairs_table(summary.layers[static_cast<std::size_t>(layer)]), reader});
}

Section profile_section(const ProfileReport& report, std::size_t profile) {
    const ProfileSummary& summary = report.profiles[profile];
    const bool several = report.profiles.size() > 1;
    const std::string name = several ? name_text(report, profile) : "";
    Section section{several ? name : "Layer by layer"};
    Table overview = overview_table(summary, name);
    if (!report.layer) section.blocks.push_back({overview, Reader::terminal});
    overview.caption = "Over the layers";
    if (report.layer) {
        const Layer& one = summary.layers[static_cast<std::size_t>(*report.layer)];
        section.blocks.push_back(layer_table(summary, one, several ? name + ": " : ""));
        add_layer(summary, *report.layer, Reader::all, section);
    }
    HeatChart map = load_map(summary);
    map.in_terminals = !report.layer;
    section.blocks.push_back(std::move(map));
    for (LineChart& chart : layer_charts(summary))
        section.blocks.push_back({std::move(chart), Reader::page});
    section.blocks.push_back({std::move(overview), Reader::page});
    if (!report.layer) add_layer(summary, report.detailed_layer(), Reader::page, section);
    const bool few = !several && summary.layers.size() > 1 && summary.layers.size() <= kManyLayers;
    const Reader by_layer = few && !report.layer ? Reader::all : Reader::page;
    std::vector<LayerRow> rows;
    add_rows(report, profile, rows);
    section.blocks.push_back({layers_table("", rows), by_layer});
    section.notes.push_back({layers_legend(summary), by_layer});
    return section;
}

}  // namespace

Answer profile_answer(const ProfileReport& report) {
    Answer answer{.title = "Recorded routing: " + report.profiles.front().name, .main = "layers"};
    for (std::size_t i = 0; i < report.profiles.size(); ++i)
        answer.lead.push_back(
            fmt::format("{}: {}", name_text(report, i), size_text(report.profiles[i])));
    std::vector<LayerRow> layers;
    for (std::size_t i = 0; i < report.profiles.size(); ++i) add_rows(report, i, layers);
    const std::vector<std::string> meaning = profile_sentences(report);
    answer.facts["meaning"] = meaning;
    Section first{"What it means for placing", meaning};
    first.blocks = {{all_profiles(report), Reader::program},
                    {layers_table("layers", layers), Reader::program},
                    {all_differences(report), Reader::program}};
    answer.sections.push_back(std::move(first));
    if (!report.differences.empty())
        answer.sections.push_back({"Load that differs", {}, {differences_table(report)}});
    for (std::size_t i = 0; i < report.profiles.size(); ++i)
        answer.sections.push_back(profile_section(report, i));
    answer.sections.push_back(pairs_section(report));
    return answer;
}

}  // namespace moehub
