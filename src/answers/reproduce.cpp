// A paper's published numbers beside the simulator's, with the cells behind them.
#include "answers/question.hpp"
#include "report/answer_forms.hpp"

#include <moehub/reproduce.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Request {
    std::optional<std::string> paper;
    ReproduceOptions options;
    std::string page;
};

Options options_of(Request& request) {
    Named<std::string> names;
    for (const PaperInfo& one : papers()) names.emplace_back(one.name, one.name);
    Target paper = to(request.paper, names);
    paper.type = "PAPER";
    return {
        {"paper", std::move(paper), "which; without it they are listed"},
        {"--figure", to_text(request.options.figure, "NAME"), "only this one", needs("paper")},
        {"--quick", to(request.options.quick),
         "a few cells of each figure; means are not comparable with the paper's", needs("paper")},
        {"--page", to_file(request.page),
         "write a page of Markdown, too, as docs/reproduction has one of each paper",
         needs("paper")},
        {"--threads", to(request.options.threads, kThreads),
         "cells simulated at a time, same result; without it as many as cores"}};
}

Show show_of(NumberKind kind, int digits) {
    if (kind == NumberKind::ratio) return fixed(digits);
    return kind == NumberKind::share ? kPercent : kTenths;
}

/// A published number with the digits that papers print.
std::string published_text(NumberKind kind, double value) {
    return shown(value, show_of(kind, 3));
}

// The list

Answer list_answer() {
    Table list{"",
               "Papers to reproduce, and their figures",
               {{"paper", "", kOnce}, {"figure"}, {"", "", kProse}},
               {}};
    const auto figures = [](const PaperInfo& one) {
        Json rows = Json::array();
        for (const NamedFigure& figure : one.figures)
            rows.push_back({{"name", figure.name}, {"title", figure.title}});
        return rows;
    };
    Table all = table_of<PaperInfo>("papers", "",
                                    {{hidden("name"), &PaperInfo::name},
                                     {hidden("title"), &PaperInfo::title},
                                     {hidden("figures"), figures}},
                                    papers());
    for (const PaperInfo& one : papers()) {
        list.rows.push_back({one.name, "", one.title});
        for (const NamedFigure& figure : one.figures)
            list.rows.push_back({one.name, figure.name, figure.title});
    }
    Answer answer{.title = "Papers to reproduce"};
    answer.sections = {{"",
                        {},
                        {std::move(all), std::move(list)},
                        {"moehub reproduce PAPER runs all of one, --figure NAME a part."}}};
    return answer;
}

// Published numbers

/// A block for each column that ours fills, and a line where the paper's ends.
std::string bar_against(double ours, double paper, double full) {
    constexpr int kWidth = 32;
    const auto column = [&](double value) {
        return std::lround(std::clamp(value / full, 0.0, 1.0) * (kWidth - 1));
    };
    std::string out;
    for (long i = 0; i <= std::max(column(ours), column(paper)); ++i)
        out += i == column(paper) ? "│" : i <= column(ours) ? "█" : " ";
    return out;
}

/// One scale for all ratios; shares have their own, from nothing to all; of anything else each.
double full_scale(const PublishedNumber& one, const std::vector<PublishedNumber>& all) {
    if (one.kind == NumberKind::share) return 1;
    double most = std::max(one.ours, one.paper);
    if (one.kind == NumberKind::ratio)
        for (const PublishedNumber& other : all)
            if (other.kind == one.kind) most = std::max({most, 1.0, other.ours, other.paper});
    return most;
}

std::string_view within(const PublishedNumber& one) {
    return one.as_published() ? "yes" : one.explained ? "no" : "no, unexplained";
}

/// At least one: a paper that leaves nothing open names none.
std::size_t readings_of(const Reproduction& all) {
    return std::max<std::size_t>(1, all.readings.size());
}

/// What the readings after the first make of a number, under their names; empty without such.
Json otherwise(const PublishedNumber& one, const std::vector<Reading>& readings) {
    Json json = Json::object();
    for (std::size_t i = 1; i <= one.otherwise.size(); ++i)
        json[readings[i].name] = {{"ours", one.read(i)},
                                  {"ratio", one.read(i) / one.paper},
                                  {"as_published", one.as_published(i)}};
    return json;
}

Table numbers_table(const Reproduction& all) {
    using One = PublishedNumber;
    std::vector<ColumnOf<One>> columns{{{"figure", "figure"}, &One::figure},
                                       {{"what", "what", kProse}, &One::what},
                                       {{"paper", "", kTenths}, [](const One& one) {
                                            return published_text(one.kind, one.paper);
                                        }}};
    for (std::size_t i = 0; i < readings_of(all); ++i) {
        columns.push_back(
            {{i == 0 ? "here" : all.readings[i].name, "", kTenths}, [i](const One& one) {
                 return one.is_read(i) ? Json(published_text(one.kind, one.read(i))) : nullptr;
             }});
        columns.push_back({{i == 0 ? "here/paper" : "/paper", "", fixed(2)}, [i](const One& one) {
                               return one.is_read(i) ? Json(one.read(i) / one.paper) : nullptr;
                           }});
        if (i == 0) columns.push_back({{"within 10 %", "", kText, 1}, within});
    }
    append(
        columns,
        {{{"█ here  │ paper", "", bar_of(32), 2},
          [&](const One& one) {
              return bar_against(one.ours, one.paper, full_scale(one, all.numbers));
          }},
         {hidden("paper"), &One::paper},
         {hidden("ours"), &One::ours},
         {hidden("ratio"), &One::ratio},
         {hidden("geometric_mean"),
          [&](const One& one) { return value_if(all.means != Means::none, one.geometric); }},
         {hidden("as_published"), [](const One& one) { return one.as_published(); }},
         {hidden("otherwise"), [&](const One& one) { return otherwise(one, all.readings); }},
         {hidden("where"), &One::where},
         {hidden("holds"),
          [](const One& one) {
              return one.holds ? Json{one.holds->least, one.holds->most} : Json(nullptr);
          }},
         {hidden("explained"), [&](const One& one) { return value_if(!all.quick, one.explained); }},
         {hidden("reason"), [](const One& one) { return or_null(one.reason); }}});
    return table_of("numbers", "", columns, all.numbers);
}

/// What a bar chart and its tables have: values of one kind by name, nothing where one is missing.
struct Bars {
    BarChart chart;
    double scale = 1;

    Bars(std::string title, NumberKind kind) : scale(kind == NumberKind::share ? 100 : 1) {
        const std::map<NumberKind, const char*> units{{NumberKind::share, "%"},
                                                      {NumberKind::time, "µs"},
                                                      {NumberKind::size, "GB"},
                                                      {NumberKind::ratio, "×"}};
        chart.title = std::move(title);
        chart.unit = units.at(kind);
    }
    void add(std::size_t series, const std::optional<double>& value) {
        chart.series[series].values.push_back(value ? std::optional(scale * *value) : std::nullopt);
    }
};

/// Published and ours of one kind, which have one scale.
void add_numbers_chart(const Reproduction& all, NumberKind kind, const char* title,
                       Section& section) {
    Bars bars(title, kind);
    bars.chart.series = {{"paper", {}}, {"here", {}}};
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        bars.chart.series.push_back({all.readings[i].name, {}});
    for (const PublishedNumber& one : all.numbers) {
        if (one.kind != kind) continue;
        bars.chart.categories.push_back(fmt::format("{}: {}", one.figure, one.what));
        bars.add(0, one.paper);
        for (std::size_t i = 0; i < readings_of(all); ++i)
            bars.add(i + 1, one.is_read(i) ? std::optional(one.read(i)) : std::nullopt);
    }
    if (!bars.chart.categories.empty())
        section.blocks.push_back({std::move(bars.chart), Reader::page});
}

std::size_t count_as_published(const Reproduction& all, std::size_t reading) {
    return static_cast<std::size_t>(
        std::count_if(all.numbers.begin(), all.numbers.end(),
                      [&](const auto& one) { return one.as_published(reading); }));
}

Section numbers_section(const Reproduction& all) {
    Section section{"Published numbers"};
    if (!all.numbers.empty())
        section.sentences = {fmt::format("Of {} numbers {} are within 10 %.", all.numbers.size(),
                                         count_as_published(all, 0))};
    add_numbers_chart(all, NumberKind::ratio, "Ratios", section);
    add_numbers_chart(all, NumberKind::share, "Shares", section);
    add_numbers_chart(all, NumberKind::time, "Times", section);
    add_numbers_chart(all, NumberKind::size, "Sizes", section);
    section.blocks.push_back(numbers_table(all));
    return section;
}

// How the paper is read

/// Numbers that come within 10 % by this reading and by no other that has run all there are.
std::string alone(const Reproduction& all, std::size_t reading) {
    std::vector<std::string> list;
    for (const PublishedNumber& one : all.numbers) {
        bool only = one.otherwise.size() + 1 >= all.readings.size() && one.as_published(reading);
        for (std::size_t other = 0; other < all.readings.size(); ++other)
            only = only && (other == reading || !one.as_published(other));
        if (only) list.push_back(fmt::format("{}, {}", one.figure, one.what));
    }
    return fmt::format("{}", fmt::join(list, "; "));
}

Section readings_section(const Reproduction& all) {
    struct Read {
        Reading reading;
        std::size_t number;
    };
    std::vector<Read> rows;
    for (const Reading& one : all.readings) rows.push_back({one, rows.size()});
    const bool shows = rows.size() > 1 && !all.numbers.empty();
    const auto what_it_takes = [](const Read& one) {
        return one.reading.changes.empty()
                   ? one.reading.what
                   : fmt::format("{} ({})", one.reading.what, fmt::join(one.reading.changes, "; "));
    };
    const auto asked = [&all](const Read& one) {
        return std::count_if(all.numbers.begin(), all.numbers.end(),
                             [&](const auto& number) { return number.is_read(one.number); });
    };
    Table table = table_of<Read>(
        "readings", "What the paper leaves open, read in several ways; \"here\" is the first",
        {{{"reading", "name"}, [](const Read& one) { return one.reading.name; }},
         {{"what it takes", "", kProse}, what_it_takes},
         {hidden("what"), [](const Read& one) { return one.reading.what; }},
         {hidden("changes"), [](const Read& one) { return one.reading.changes; }},
         {{"within 10 %", "", kTenths},
          [&](const Read& one) {
              return fmt::format("{} of {}", count_as_published(all, one.number), asked(one));
          }},
         {{"by no other", "", kProse, 1}, [&](const Read& one) { return alone(all, one.number); }}},
        rows);
    return {
        "How the paper is read", {}, {{std::move(table), shows ? Reader::all : Reader::program}}};
}

// Claims and reasons

std::string_view holds_text(bool holds) {
    return holds ? "✓" : "✗";
}

Section claims_section(const Reproduction& all) {
    using One = PublishedClaim;
    std::vector<ColumnOf<One>> columns{
        {{"", ""}, [](const One& one) { return holds_text(one.holds); }},
        {{"figure", "figure"}, &One::figure},
        {{"the paper says", "what", kProse}, &One::what},
        {{"found", "found", kProse}, &One::found}};
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        columns.push_back({{all.readings[i].name, "", kText, 1}, [i](const One& one) {
                               return one.otherwise.empty() ? "–"
                                                            : holds_text(one.otherwise[i - 1]);
                           }});
    append(
        columns,
        {{hidden("holds"), &One::holds},
         {hidden("otherwise"),
          [&](const One& one) {
              Json json = Json::object();
              for (std::size_t i = 0; i < one.otherwise.size(); ++i)
                  json[all.readings[i + 1].name] = {{"holds", Json(bool{one.otherwise[i]})}};
              return json;
          }},
         {hidden("where"), &One::where},
         {hidden("explained"), [&](const One& one) { return value_if(!all.quick, one.explained); }},
         {hidden("reason"), [](const One& one) { return or_null(one.reason); }}});
    return {"Claims",
            {},
            {table_of("claims", "What the paper says without a number", columns, all.claims)}};
}

/// What differs for the same reason stands together; of a quick run there are none.
Section reasons_section(const Reproduction& all) {
    Table table{
        "", "Why they differ, by more than 10 %", {{"what", "", kProse}, {"why", "", kProse}}, {}};
    std::map<std::string, std::size_t> rows;  // row of each reason
    const auto add = [&](const auto& one) {
        if (one.reason.empty()) return;
        const std::string what = fmt::format("{}, {}", one.figure, one.what);
        const auto [row, is_new] = rows.emplace(one.reason, rows.size());
        if (is_new)
            table.rows.push_back({what, one.reason});
        else
            table.rows[row->second][0] =
                fmt::format("{}; {}", shown(table.rows[row->second][0], kText), what);
    };
    for (const PublishedNumber& one : all.numbers) add(one);
    for (const PublishedClaim& one : all.claims) add(one);
    return {"Reasons", {}, {std::move(table)}};
}

// Every cell

/// The kind of numbers that most columns have.
NumberKind usual_kind(const FigureTable& figure) {
    const auto columns = [&](NumberKind kind) {
        return std::count_if(figure.columns.begin(), figure.columns.end(),
                             [kind](const auto& one) { return one.kind == kind; });
    };
    NumberKind most = figure.columns.front().kind;
    for (const FigureTable::Column& column : figure.columns)
        if (columns(column.kind) > columns(most)) most = column.kind;
    return most;
}

/// Rows by their labels, with the columns of the usual kind.
BarChart figure_chart(const FigureTable& figure) {
    const NumberKind kind = usual_kind(figure);
    Bars bars(figure.title, kind);
    for (const FigureTable::Row& row : figure.rows)
        if (!row.mean)
            bars.chart.categories.push_back(fmt::format("{}", fmt::join(row.labels, ", ")));
    for (std::size_t i = 0; i < figure.columns.size(); ++i) {
        if (figure.columns[i].kind != kind) continue;
        bars.chart.series.push_back({figure.columns[i].title, {}});
        for (const FigureTable::Row& row : figure.rows)
            if (!row.mean) bars.add(bars.chart.series.size() - 1, row.values[i]);
    }
    return std::move(bars.chart);
}

/// Another table of a figure stands in the figure's section.
void add_figure(const FigureTable& figure, std::vector<Section>& sections) {
    constexpr std::size_t kMostBars = 160;  // more is read in the table
    Table table{"", fmt::format("{}: {}", figure.figure, figure.title), {}, {}};
    for (const std::string& label : figure.labels) table.columns.push_back({label});
    for (const FigureTable::Column& column : figure.columns)
        table.columns.push_back({column.title, "", show_of(column.kind, 2)});
    for (const FigureTable::Row& row : figure.rows) {
        std::vector<Json>& cells = table.rows.emplace_back(row.labels.begin(), row.labels.end());
        for (const std::optional<double>& value : row.values)
            cells.push_back(value ? Json(*value) : row.mean ? Json(" ") : Json(nullptr));
    }
    if (sections.back().heading != figure.figure) sections.push_back({figure.figure});
    Section& section = sections.back();
    BarChart chart = figure_chart(figure);
    if (!chart.categories.empty() && chart.categories.size() * chart.series.size() <= kMostBars)
        section.blocks.push_back({std::move(chart), Reader::page});
    section.blocks.push_back(std::move(table));
    for (const std::string& note : figure.notes) section.notes.emplace_back(note);
}

Json rows_json(const FigureTable& table) {
    Json rows = Json::array();
    for (const FigureTable::Row& row : table.rows) {
        if (row.mean) continue;
        Json json;
        for (std::size_t i = 0; i < row.labels.size(); ++i) json[table.labels[i]] = row.labels[i];
        for (std::size_t i = 0; i < row.values.size(); ++i)
            json[table.columns[i].title] = or_null(row.values[i]);
        rows.push_back(std::move(json));
    }
    return rows;
}

std::string_view name_of(CellWork work) {
    const std::map<CellWork, std::string_view> names{
        {CellWork::layer, "layer"},         {CellWork::communication, "communication"},
        {CellWork::model, "model"},         {CellWork::training, "training"},
        {CellWork::sub_layer, "sub-layer"}, {CellWork::all_reduce, "all-reduce"}};
    return names.at(work);
}

Table cells_table(const std::vector<ReproducedCell>& cells) {
    using One = ReproducedCell;
    const auto name = [](const char* key, std::string CellKey::*member) -> ColumnOf<One> {
        return {hidden(key), [member](const One& one) { return or_null(one.*member); }};
    };
    const auto time = [](const char* key, Ps One::*member) -> ColumnOf<One> {
        return {hidden(key), [member](const One& one) {
                    return value_if(one.refusal.empty(), to_us(one.*member));
                }};
    };
    const auto bytes = [](const char* key, Bytes One::*member) -> ColumnOf<One> {
        return {hidden(key),
                [member](const One& one) { return value_if(one.refusal.empty(), one.*member); }};
    };
    const auto of_sub_layers = [](const char* key, auto of) -> ColumnOf<One> {
        return {hidden(key), [of](const One& one) {
                    return value_if(one.work == CellWork::sub_layer, of(one));
                }};
    };
    return table_of<One>(
        "cells", "",
        {name("model", &One::model),
         {hidden("gpus"), &One::gpus},
         {hidden("tokens"), &One::tokens},
         name("routing", &One::routing),
         name("system", &One::system),
         name("reading", &One::reading),
         {hidden("work"), [](const One& one) { return name_of(one.work); }},
         {hidden("changes"), &One::changes},
         {hidden("grain"),
          [](const One& one) { return one.grain == Grain::row ? "row" : "packet"; }},
         name("part", &One::part),
         name("machine", &One::machine),
         time("time_us", &One::time),
         time("first_gemm_us", &One::first_gemm),
         time("model_us", &One::model_time),
         time("forward_us", &One::forward_time),
         time("compute_us", &One::compute),
         time("communication_us", &One::communication),
         time("busier_way_us", &One::busier_way),
         bytes("traffic_bytes.up", &One::bytes_up),
         bytes("traffic_bytes.down", &One::bytes_down),
         of_sub_layers("link_use", [](const One& one) { return one.link_use; }),
         of_sub_layers("merge.deepest", [](const One& one) { return one.merge.deepest; }),
         of_sub_layers("merge.spread_us", [](const One& one) { return one.merge.spread_us; }),
         of_sub_layers("merge.longest_us", [](const One& one) { return one.merge.longest_us; }),
         {hidden("refusal"), [](const One& one) { return or_null(one.refusal); }}},
        cells);
}

/// Every table and every cell for programs.
Section values_section(const Reproduction& all) {
    Table tables = table_of<FigureTable>("tables", "",
                                         {{hidden("figure"), &FigureTable::figure},
                                          {hidden("title"), &FigureTable::title},
                                          {hidden("rows"), rows_json}},
                                         all.tables);
    return {"", {}, {std::move(tables), cells_table(all.cells)}};
}

// All together

std::vector<std::string> setup_sentences(const Reproduction& all) {
    std::vector<std::string> sentences = all.setup;
    if (all.means == Means::arithmetic)
        sentences.emplace_back("Published means are taken to be arithmetic means of the ratios.");
    if (all.means == Means::geometric)
        sentences.emplace_back("Means are geometric means of the ratios, as the paper's.");
    return sentences;
}

/// As who reads the page would type it.
std::string command_of(const Reproduction& all) {
    return fmt::format("moehub reproduce {0}{1}{2} --page {0}.md", all.paper,
                       all.figure.empty() ? "" : " --figure " + all.figure,
                       all.quick ? " --quick" : "");
}

Answer asked_answer(const Request& request, const Asker& asker) {
    if (!request.paper) return list_answer();
    ReproduceOptions options = request.options;
    options.progress = asker.pieces("simulating");
    const Reproduction all = reproduce(*request.paper, options);
    Answer answer = answer_of(all);
    if (!request.page.empty()) {
        asker.save(request.page, markdown_of(answer, command_of(all)));
        asker.tell("wrote " + request.page);
    }
    return answer;
}

}  // namespace

Answer answer_of(const Reproduction& all) {
    Answer answer{.title =
                      fmt::format("{} (arXiv {}{}{}): its evaluation, published and here",
                                  all.title, all.arxiv, all.venue.empty() ? "" : ", ", all.venue)};
    answer.lead = {answer.title};
    if (all.quick)
        answer.lead.emplace_back(
            "Quick: a few cells of each figure. Means over other cells than the paper's are not "
            "comparable with it.");
    answer.facts = {{"paper", all.paper},
                    {"figure", or_null(all.figure)},
                    {"quick", all.quick},
                    {"setup", all.setup}};
    answer.sections = {{"What all cells have in common", setup_sentences(all)},
                       numbers_section(all),
                       readings_section(all),
                       claims_section(all),
                       reasons_section(all)};
    for (const FigureTable& figure : all.tables) add_figure(figure, answer.sections);
    answer.sections.push_back(values_section(all));
    answer.main = "numbers";
    return answer;
}

Question reproduce_question() {
    return {.first = "paper",
            .ask = asking(options_of, asked_answer, nullptr, [](const Request& request) {
                return output_to("--page", request.page);
            })};
}

}  // namespace moehub
