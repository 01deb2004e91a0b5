#include "answers/nouns.hpp"
#include "answers/placed.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "report/number.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Which parts of an Evaluation mean something.
struct Known {
    bool tokens = false;       ///< what needs every token's experts
    bool transitions = false;  ///< what needs every token's experts in a next layer, too
    bool moved = false;        ///< there is a current layout
};

/// A part of an Evaluation as programs and people get it.
struct LayoutFigure {
    const char* words;
    const char* key;
    double Evaluation::*value;
    bool Known::*needs = nullptr;  ///< null: nothing
    Show show = kHidden;
    bool of_nodes = false;  ///< people get it where there are several
    bool traded = true;     ///< fronts are of it
};
constexpr LayoutFigure kFigures[] = {
    {"load", "load_max_over_mean", &Evaluation::load_max_over_mean, nullptr, fixed(3)},
    {"worst layer", "load_worst_layer", &Evaluation::load_worst_layer, nullptr, fixed(3), false,
     false},
    {"GPUs/token", "gpus_per_token", &Evaluation::gpus_per_token, &Known::tokens, fixed(3)},
    {"nodes/token", "nodes_per_token", &Evaluation::nodes_per_token, &Known::tokens, fixed(3),
     true},
    {"off-GPU", "off_gpu_transitions", &Evaluation::off_gpu_transitions, &Known::transitions,
     kPercent},
    {"off-node", "off_node_transitions", &Evaluation::off_node_transitions, &Known::transitions,
     kPercent, true},
    {"heaviest pair", "heaviest_pair", &Evaluation::heaviest_pair, &Known::transitions, fixed(2)},
    {"", "heaviest_pair_by_layer", &Evaluation::heaviest_pair_by_layer, &Known::transitions},
    {"activated", "activated_max_over_mean", &Evaluation::activated_max_over_mean, &Known::tokens,
     fixed(2), false, false},
};

constexpr const char* kLegend =
    "load: busiest GPU over the mean, mean over layers; off-GPU: transitions from a layer to the "
    "next that change GPU; heaviest pair: over an even spread; activated: experts a batch wakes, "
    "busiest over mean";

Known known_of(const PlacementReport& report, const PlacementTable& table) {
    return {table.has_tokens(), table.has_transitions(), report.task.options.current.has_value()};
}

bool is_known(const LayoutFigure& figure, const Known& known) {
    return figure.needs == nullptr || known.*figure.needs;
}

bool is_shown(const LayoutFigure& figure, const Known& known, const PlacementReport& report) {
    return figure.show.form != Show::Form::nothing && is_known(figure, known) &&
           (!figure.of_nodes || report.task.input.nodes > 1);
}

struct Judged {
    const Evaluation& evaluation;
    Known known;
};

/// A column for each figure of what `judged` finds in a row; people get those that `told` knows.
template <class Row>
void add_figures(std::vector<ColumnOf<Row>>& columns, const PlacementReport& report,
                 const Known& told, const std::string& prefix,
                 const std::function<Judged(const Row&)>& judged) {
    for (const LayoutFigure& one : kFigures)
        columns.push_back(
            {{one.words, prefix + one.key, is_shown(one, told, report) ? one.show : kHidden},
             [&one, judged](const Row& row) {
                 const Judged& of = judged(row);
                 return value_if(is_known(one, of.known), of.evaluation.*one.value);
             }});
    columns.push_back({{"moved", prefix + "moved_experts", told.moved ? kWhole : kHidden},
                       [judged](const Row& row) {
                           const Judged& of = judged(row);
                           return value_if(of.known.moved, of.evaluation.moved_experts);
                       }});
}

/// A layout on the tokens of a profile.
struct LayoutRow {
    const PlacementTable* table;
    std::size_t at;
    bool held_out;
};

std::vector<LayoutRow> rows_of(const PlacementTable& table, bool held_out) {
    std::vector<LayoutRow> rows;
    for (std::size_t i = 0; i < table.rows.size(); ++i) rows.push_back({&table, i, held_out});
    return rows;
}

std::vector<ColumnOf<LayoutRow>> layout_columns(const PlacementReport& report, const Known& told,
                                                const std::string& prefix = "") {
    std::vector<ColumnOf<LayoutRow>> columns;
    add_figures<LayoutRow>(columns, report, told, prefix, [&report](const LayoutRow& row) {
        return Judged{row.table->rows[row.at], known_of(report, *row.table)};
    });
    return columns;
}

/// "law.npy, 12,000 tokens, held out".
std::string profile_words(const Profile& profile, bool held_out) {
    return fmt::format("{}, {}{}, {}", profile.name,
                       profile.has_tokens() ? fmt::format("{} token{}", grouped(profile.tokens),
                                                          profile.tokens == 1 ? "" : "s")
                                            : "counts",
                       profile.weight == 1 ? "" : ", weight " + print_number(profile.weight),
                       held_out ? "held out" : "placed by");
}

/// A baseline that is the method asked for stands once.
std::vector<LayoutRow> shown_rows(const PlacementTable& table) {
    std::vector<LayoutRow> rows;
    for (const LayoutRow& row : rows_of(table, false))
        if (row.at + 1 == table.rows.size() || table.layouts[row.at] != table.layouts.back())
            rows.push_back(row);
    return rows;
}

/// Programs get all columns, people those that `told` knows.
Table layouts_table(const PlacementReport& report, const std::string& key,
                    const std::string& caption, const Known& told,
                    const std::vector<LayoutRow>& rows) {
    using Row = LayoutRow;
    std::vector<ColumnOf<Row>> columns{
        {hidden("profile"), [](const Row& row) { return row.table->profile->name; }},
        {hidden("held_out"), &Row::held_out},
        {hidden("weight"), [](const Row& row) { return row.table->profile->weight; }},
        {hidden("tokens"),
         [](const Row& row) {
             return value_if(row.table->has_tokens(), row.table->profile->tokens);
         }},
        {{"layout", "layout"}, [](const Row& row) { return row.table->layouts[row.at]; }}};
    append(columns, layout_columns(report, told));
    return table_of(key, caption, columns, rows);
}

/// Means over the profiles that judge: the layout's own, and those of the others.
Facts mean_facts(const PlacementReport& report, const PlacementTable& mean) {
    Facts facts;
    const auto add = [&](const LayoutRow& row, const std::string& prefix) {
        for (const auto& [column, value] : layout_columns(report, {}, prefix))
            facts.list.push_back({{column.words, column.key, kHidden}, value(row)});
    };
    std::vector<LayoutRow> rows = rows_of(mean, false);
    add(rows.back(), "evaluation.");
    rows.pop_back();
    for (const LayoutRow& row : rows) add(row, fmt::format("baselines.{}.", mean.layouts[row.at]));
    return facts;
}

/// Lower bounds of the parts, and how far above them the layout is on the profiles.
Facts bound_facts(const PlacementReport& report) {
    Facts facts;
    const Evaluation found = mean_table(report.training).found();
    for (const char* const what : {"bounds", "gaps"})
        for (const LayoutFigure& one : kFigures) {
            const double least = report.placed.result.bounds.*one.value;
            const double value = what[0] == 'b' ? least : found.*one.value / least - 1;
            facts.list.push_back({{one.words, fmt::format("{}.{}", what, one.key), kHidden},
                                  value_if(least > 0, value)});
        }
    return facts;
}

/// Each figure over that of the first layout: less is better in all of them.
BarChart figures_chart(const PlacementReport& report, const PlacementTable& table) {
    const std::vector<LayoutRow> rows = shown_rows(table);
    const Evaluation& first = table.rows.front();
    BarChart chart{fmt::format("Layouts against {}: less is better", table.layouts.front()),
                   "% of it",
                   {},
                   {}};
    for (const LayoutRow& row : rows) chart.series.push_back({table.layouts[row.at], {}});
    for (const LayoutFigure& one : kFigures) {
        if (!is_shown(one, known_of(report, table), report) || !(first.*one.value > 0)) continue;
        chart.categories.emplace_back(one.words);
        for (std::size_t i = 0; i < rows.size(); ++i)
            chart.series[i].values.emplace_back(100 * (table.rows[rows[i].at].*one.value) /
                                                (first.*one.value));
    }
    return chart;
}

Section layouts_section(const PlacementReport& report) {
    Section section{"Layouts side by side"};
    const PlacementTable mean = mean_table(report.judged());
    section.blocks = {{figures_chart(report, mean), Reader::page},
                      {mean_facts(report, mean), Reader::program},
                      {bound_facts(report), Reader::program}};
    std::vector<LayoutRow> all;
    for (const auto* tables : {&report.training, &report.held_out})
        for (const PlacementTable& table : *tables) {
            const bool held_out = tables == &report.held_out;
            const std::vector<LayoutRow> rows = rows_of(table, held_out);
            all.insert(all.end(), rows.begin(), rows.end());
            section.blocks.push_back(layouts_table(report, "",
                                                   profile_words(*table.profile, held_out),
                                                   known_of(report, table), shown_rows(table)));
        }
    section.blocks.push_back({layouts_table(report, "layouts", "", {}, all), Reader::program});
    section.notes.emplace_back(
        std::string(kLegend) +
        (report.task.options.current ? "; moved: experts to copy from the current layout" : ""));
    return section;
}

Section pairs_section(const std::vector<std::vector<double>>& pairs) {
    HeatChart map{"Transitions from GPU to GPU", "% of all", "from GPU", "to GPU", {}, {}, {}};
    HeatLayer& layer = map.layers.emplace_back();
    for (std::size_t from = 0; from < pairs.size(); ++from) {
        map.rows.push_back(fmt::format("{}", from));
        for (const double share : pairs[from]) layer.values.push_back(100 * share);
    }
    map.columns = map.rows;
    return {"Traffic between GPUs", {}, {std::move(map)}, {{traffic_model(), Reader::page}}};
}

/// Layouts of which none is better in everything, the one asked for among the tries.
std::vector<ParetoPoint> front_of(const PlacementReport& report) {
    const PlaceOptions& options = report.task.options;
    std::vector<ParetoPoint> points{{options.method, report.placed.result.objective,
                                     options.load_cap, options.time_limit,
                                     mean_table(report.judged()).found()}};
    points.insert(points.end(), report.placed.tries->begin(), report.placed.tries->end());
    return pareto_front(points);
}

Section front_section(const PlacementReport& report) {
    const std::vector<ParetoPoint> front = front_of(report);
    const Known known = known_of(report, mean_table(report.judged()));
    using Point = ParetoPoint;
    std::vector<ColumnOf<Point>> columns;
    add_figures<Point>(columns, report, {known.tokens, known.transitions, false}, "evaluation.",
                       [known](const Point& point) {
                           return Judged{point.evaluation, known};
                       });
    for (std::size_t i = 0; i < std::size(kFigures); ++i)
        if (!kFigures[i].traded) columns[i].column.show = kHidden;
    append(columns,
           {{{"options", "options", kProse}, [](const Point& point) { return flags_of(point); }},
            {hidden("method"), &Point::method},
            {hidden("objective"), [](const Point& point) { return to_string(point.objective); }},
            {hidden("load_cap"), &Point::load_cap},
            {hidden("time_limit_seconds"), &Point::time_limit}});
    LineChart chart{"Load against GPUs per token",
                    {"GPUs per token", false, false},
                    {"load, busiest GPU over mean", false, false},
                    {{"layouts", {}}},
                    false};
    for (const Point& point : front)
        chart.series.front().points.push_back({point.evaluation.gpus_per_token,
                                               point.evaluation.load_max_over_mean,
                                               flags_of(point)});
    return {"The front",
            {},
            {std::move(chart),
             table_of("pareto",
                      fmt::format("Layouts of which none is better in everything, on the {}",
                                  report.held_out.empty() ? "profiles" : "held-out tokens"),
                      columns, front)}};
}

using EffectColumns = std::vector<ColumnOf<LayoutEffect>>;

/// A time's mean and 95 % for people, the worst for programs, too.
void add_spread(EffectColumns& columns, const char* words, const std::string& key,
                TimeSpread LayoutEffect::*spread, bool tail) {
    const auto us = [spread](Ps TimeSpread::*time) {
        return [spread, time](const LayoutEffect& one) { return to_us((one.*spread).*time); };
    };
    columns.push_back({{words, key + ".mean", kTenths}, us(&TimeSpread::mean)});
    columns.push_back({{"95 %", key + ".p95", tail ? kTenths : kHidden, 1}, us(&TimeSpread::p95)});
    columns.push_back({{"worst", key + ".worst", kHidden}, us(&TimeSpread::worst)});
}

Table effects_table(const PlacementEffect& effect) {
    using One = LayoutEffect;
    constexpr Show kFactor{Show::Form::times, 3};
    EffectColumns columns{{{"system", "system"}, &One::system},
                          {{"layout", "layout"}, &One::layout}};
    add_spread(columns, "layer µs", "layer_us", &One::layer, false);
    add_spread(columns, "all-to-all", "all_to_all_us", &One::all_to_all, true);
    columns.push_back({hidden("fused"), &One::fused});
    add_spread(columns, "experts", "processing_us", &One::processing, true);
    append(columns,
           {{hidden("moe_layers_us"), [](const One& one) { return to_us(one.moe_layers); }},
            {{"model ms", "model_us", scaled(kSignificant, 1e-3)},
             [](const One& one) { return value_if(one.model > 0, to_us(one.model)); }},
            {{"vs order", "speedup", kFactor}, &One::speedup},
            {{"vs eplb", "speedup_over_eplb", kFactor}, [&effect](const One& one) {
                 const LayoutEffect* const eplb = effect_of(effect, kEplb, one.system);
                 return eplb != nullptr ? Json(faster(one, *eplb)) : Json(nullptr);
             }}});
    return table_of("effects.layouts",
                    fmt::format("Simulated: {} of {} token{} through the MoE layers",
                                several(effect.steps, "step"), grouped(effect.step_tokens),
                                effect.step_tokens == 1 ? "" : "s"),
                    columns, effect.layouts);
}

/// Systems × layouts.
BarChart effects_chart(const PlacementEffect& effect) {
    BarChart chart{"A MoE layer, mean over layers and steps", "µs", {}, {}};
    for (const LayoutEffect& one : effect.layouts) {
        if (chart.categories.empty() || chart.categories.back() != one.system)
            chart.categories.push_back(one.system);
        auto& values = series_named(chart.series, one.layout).values;
        values.resize(chart.categories.size());
        values.back() = to_us(one.layer.mean);
    }
    for (ChartSeries& one : chart.series) one.values.resize(chart.categories.size());
    return chart;
}

Section effect_section(const Placed& placed) {
    return {"What it does to time",
            {},
            {effects_chart(*placed.effect), effects_table(*placed.effect)},
            {fmt::format("Times in µs; model: forward, end to end; vs order, vs eplb: how many "
                         "times as fast as with experts in order, with EPLB's layout; taken: {}",
                         placed.taken)}};
}

/// What to type next.
std::string use_words(const PlacementReport& report) {
    const PlaceTask& task = report.task;
    std::string out;
    const auto lines =
        server_command(report.placed.result.layout, task.format, task.file, task.input.nodes);
    if (!lines.empty()) out += "The server's command line:\n";
    for (const std::string& line : lines) out += "    " + printable(line) + "\n";
    if (!lines.empty()) out += "\n";
    const std::string& profile = report.judged().front().profile->name;
    const bool one_file = profile.find(' ') == profile.npos;
    return out + "What it does to a layer, or to the model:\n" +
           printable(fmt::format("    moehub compare --machine {} --gpus {} --model {} \\",
                                 task.machine_name, task.input.gpus,
                                 task.model ? task.model_name : "MODEL")) +
           "\n" +
           printable(
               fmt::format("        --routing {} \\", one_file ? profile : "FOLDER_OF_DUMPS")) +
           "\n" + printable("        --layout " + task.file) + "\n";
}

Section file_section(const PlacementReport& report) {
    const PlaceTask& task = report.task;
    const std::string where =
        task.file.empty()
            ? fmt::format("Nothing is written yet: -o FILE writes the layout, --format {} ({}).",
                          to_string(task.format), fmt::join(layout_formats(), ", "))
            : fmt::format("Wrote {}, format {}.", task.file, to_string(task.format));
    Section section{"The file",
                    {where, fmt::format("Placed in {}.", duration(report.placed.result.seconds))}};
    if (!task.file.empty()) section.blocks.push_back(Lines{use_words(report)});
    return section;
}

// What was asked.

/// How many of the runs of tokens that were asked for a profile has.
int blocks_of(const PlacementTable& table, int asked) {
    return static_cast<int>(
        std::clamp<std::int64_t>(asked, 1, std::max<std::int64_t>(1, table.parts())));
}

std::string method_words(const PlacementReport& report) {
    const PlaceOptions& options = report.task.options;
    const std::string objective = to_string(report.placed.result.objective);
    if (!searches(report))
        return fmt::format("{}, which has its own aim; judged by {}", options.method, objective);
    std::string out = fmt::format("{}, minimising {}", options.method, objective);
    if (options.worst_profile) out += " of the worst profile";
    if (options.load_cap > 0)
        out += fmt::format(", load at most {}", print_number(options.load_cap));
    int blocks = 1;
    for (const PlacementTable& table : report.training)
        blocks = std::max(blocks, blocks_of(table, options.load_blocks));
    return blocks > 1 ? out + fmt::format(" in each of {} blocks", blocks) : out;
}

std::string slots_words(const PlacementReport& report) {
    const int slots = slots_per_gpu(report.placed.result.layout);
    if (slots == 0) return "slots that differ";
    const int copies = report.task.input.redundant;
    return fmt::format("{} a GPU{}", several(slots, "slot"),
                       copies > 0 ? fmt::format(", {} of a layer for copies", copies) : "");
}

/// The largest top-k of all profiles; 0: only counts are known.
int top_k_of(const PlacementReport& report) {
    int most = 0;
    for (const PlacementTable& table : report.training) most = std::max(most, table.profile->top_k);
    return most;
}

std::vector<std::string> lead_of(const PlacementReport& report) {
    const PlaceTask& task = report.task;
    const Profile& first = task.input.profiles.front();
    const int top_k = top_k_of(report), gpus = task.input.gpus, nodes = task.input.nodes;
    std::vector<std::string> lead{
        fmt::format("{}{} of {} experts{}, on {}{} of {}, {}",
                    task.model ? task.model_name + ": " : "", several(first.layers, "layer"),
                    first.experts, top_k > 0 ? fmt::format(", top-{}", top_k) : "",
                    several(gpus, "GPU"), nodes > 1 ? fmt::format(" in {} nodes", nodes) : "",
                    task.machine_name, slots_words(report)) +
            with_settings(task.settings),
        fmt::format("By {}, seed {}", method_words(report), task.options.seed)};
    for (const PlacementTable& table : report.training) {
        const int asked = task.options.load_blocks, blocks = blocks_of(table, asked);
        if (!searches(report) || blocks == asked) continue;
        lead.push_back(fmt::format("The profile{} has only {}, {} asked for.",
                                   report.training.size() > 1 ? " " + table.profile->name : "",
                                   several(blocks, "block"), asked));
    }
    return lead;
}

Json facts_of(const PlacementReport& report) {
    const auto& [input, options, held_out, machine, machine_name, model, model_name, settings,
                 systems, format, file] = report.task;
    const PlaceResult& result = report.placed.result;
    const bool bound = result.bound > 0 || result.value == 0;  // nothing is below 0
    const int slots = slots_per_gpu(result.layout);
    return {{"method", options.method},
            {"objective", to_string(result.objective)},
            {"load_cap", options.load_cap},
            {"load_blocks", options.load_blocks},
            {"worst_profile", options.worst_profile},
            {"seed", options.seed},
            {"machine", machine_name},
            {"model", value_if(model.has_value(), model_name)},
            {"set", settings},
            {"layers", input.profiles.front().layers},
            {"experts", input.profiles.front().experts},
            {"top_k", value_if(top_k_of(report) != 0, top_k_of(report))},
            {"gpus", input.gpus},
            {"nodes", input.nodes},
            {"replicas", input.redundant},
            {"slots_per_gpu", value_if(slots != 0, slots)},
            {"held_out", !held_out.empty()},
            {"value", result.value},
            {"bound", value_if(bound, result.bound)},
            {"gap", value_if(bound, result.gap)},
            {"search_seconds", result.seconds},
            {"cut_short", result.cut_short},
            {"notes", result.notes},
            {"idle", report.idle},
            {"traffic_model", traffic_model()},
            {"pareto", nullptr},
            {"effects", nullptr},
            {"file", or_null(file)},
            {"format", to_string(format)},
            {"server",
             value_if(!file.empty(), server_command(result.layout, format, file, input.nodes))}};
}

Json effect_facts(const Placed& placed) {
    const PlacementEffect& effect = *placed.effect;
    return {{"step_tokens", effect.step_tokens},
            {"steps", effect.steps},
            {"taken", placed.taken},
            {"decided_by", effect.layouts.front().system},
            {"notes", effect.notes}};
}

}  // namespace

const LayoutEffect* effect_of(const PlacementEffect& effect, const std::string& layout,
                              const std::string& system) {
    for (const LayoutEffect& one : effect.layouts)
        if (one.layout == layout && one.system == system) return &one;
    return nullptr;
}

bool searches(const PlacementReport& report) {
    return report.task.options.method == "joint" || report.task.options.method == "exact";
}

Answer placement_answer(const PlacementReport& report) {
    const PlaceTask& task = report.task;
    Answer answer{
        .title = fmt::format("Experts placed on {} GPUs of {}", task.input.gpus, task.machine_name),
        .lead = lead_of(report),
        .facts = facts_of(report),
        .main = "layouts"};
    const auto pairs = pair_traffic(task.judges(), report.placed.result.layout);
    answer.facts["pair_traffic"] = value_if(!pairs.empty(), pairs);
    answer.sections = {{"What it means", placement_sentences(report)}, layouts_section(report)};
    if (!pairs.empty()) answer.sections.push_back(pairs_section(pairs));
    if (report.placed.tries) answer.sections.push_back(front_section(report));
    if (report.placed.effect) {
        answer.facts["effects"] = effect_facts(report.placed);
        answer.sections.push_back(effect_section(report.placed));
    }
    answer.sections.push_back(file_section(report));
    return answer;
}

}  // namespace moehub
