#include "study/reproduce_paper.hpp"

#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/portable_math.hpp"
#include "base/quantity.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Paper {
    const char* name;  ///< name of its file in presets/papers
    PaperOfCells (*cells)(bool quick);
    Reproduction (*run)(const ReproduceOptions&);  ///< where its figures are no cells
};
constexpr Paper kPapers[] = {{"moe-hub", moe_hub_cells, nullptr},
                             {"dysharp", dysharp_cells, nullptr},
                             {"cais", cais_cells, nullptr},
                             {"moetuner", nullptr, reproduce_moetuner},
                             {"pangu", nullptr, reproduce_pangu}};

template <class Item>
void append(std::vector<Item>& all, std::vector<Item>& some) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
}

bool is_read(const PaperFigure& figure, std::size_t reading) {
    return reading == 0 || figure.every_reading;
}

std::vector<CellKey> keys_of(const std::vector<PaperFigure>& figures,
                             const std::vector<Reading>& readings) {
    std::vector<CellKey> keys;
    for (std::size_t reading = 0; reading < readings.size(); ++reading) {
        const std::vector<CellKey> asked = cells_asked([&](const Lookup& cell) {
            for (const PaperFigure& figure : figures)
                if (is_read(figure, reading)) figure.make(cell);
        });
        for (CellKey key : asked) {
            key.reading = readings[reading].name;
            keys.push_back(std::move(key));
        }
    }
    return keys;
}

/// The figure by the first reading, with what the others make of its numbers and claims beside.
FigureResult read_all(const PaperFigure& figure, const Reproduction& all) {
    FigureResult first = figure.make(lookup_in(all.cells, all.readings.front().name));
    for (std::size_t reading = 1; reading < all.readings.size(); ++reading) {
        if (!is_read(figure, reading)) continue;
        const FigureResult other = figure.make(lookup_in(all.cells, all.readings[reading].name));
        for (std::size_t i = 0; i < first.numbers.size(); ++i)
            first.numbers[i].otherwise.push_back(other.numbers[i].ours);
        for (std::size_t i = 0; i < first.claims.size(); ++i)
            first.claims[i].otherwise.push_back(other.claims[i].holds);
    }
    return first;
}

template <class Published>
void forget_reasons(std::vector<Published>& list) {
    for (Published& one : list) {
        one.reason.clear();
        one.explained = true;
    }
}

constexpr std::size_t kFirstLead = 1;  ///< column of the first baseline

template <class Of>
std::optional<double> mean_by(const Values& values, Of of) {
    double sum = 0;
    int count = 0;
    for (const std::optional<double>& value : values) {
        if (!value) continue;
        sum += of(*value);
        ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

using Mean = std::optional<double> (*)(const Values&);

bool has_mean(NumberKind kind) {
    return kind == NumberKind::ratio || kind == NumberKind::share;
}

FigureTable::Row row_of_means(const FigureTable& table, std::string name, Mean mean) {
    FigureTable::Row row{{std::move(name)}, {}, true};
    row.labels.resize(table.labels.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        row.values.push_back(has_mean(table.columns[i].kind) ? mean(column_of(table, i))
                                                             : std::nullopt);
    return row;
}

/// "Mixtral, 8 GPUs": a number says what it is of.
std::string words_of(const std::vector<std::string>& labels, const FigureTable& table) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const bool number =
            !labels[i].empty() && std::isdigit(static_cast<unsigned char>(labels[i].front())) != 0;
        words.push_back(number ? labels[i] + " " + table.labels[i] : labels[i]);
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<double> lead_of(const FigureTable::Row& row) {
    return geometric_mean_of({row.values.begin() + kFirstLead, row.values.end()});
}

/// The series of a row: its labels but the last; empty where there is only one.
std::string series_of(const FigureTable::Row& row) {
    return fmt::format("{}", fmt::join(row.labels.begin(), std::prev(row.labels.end()), ", "));
}

FigureTable leads_table(const LeadsFigure& figure, const Lookup& cell) {
    const Leads& leads = figure.leads;
    FigureTable table{figure.name, figure.title, figure.labels};
    table.columns.push_back({fmt::format("{} µs", leads.own), NumberKind::time});
    for (const std::string_view other : leads.others)
        table.columns.push_back(other == "ideal"
                                    ? FigureTable::Column{"of ideal", NumberKind::share}
                                    : FigureTable::Column{fmt::format("over {}", other)});
    for (const LeadsRow& leads_row : figure.rows) {
        const auto time_under = [&](std::string_view system) {
            CellKey key = leads_row.key;
            key.system = system;
            const ReproducedCell& one = cell(key);
            note_refusal(leads_row.labels, one, table);
            return one.*leads.time;
        };
        const Ps time = time_under(leads.own);
        FigureTable::Row row{leads_row.labels,
                             {time > 0 ? std::optional(to_us(time)) : std::nullopt}};
        for (const std::string_view system : leads.others)
            row.values.push_back(faster(time_under(system), time));
        table.rows.push_back(std::move(row));
    }
    return table;
}

std::vector<PublishedNumber> published_leads(const Publication& paper, const FigureTable& table) {
    std::vector<PublishedNumber> numbers;
    const auto add_of = [&](NumberKind kind, const char* front) {
        for (std::size_t i = kFirstLead; i < table.columns.size(); ++i)
            if (table.columns[i].kind == kind)
                numbers.push_back(published_mean(
                    paper, table.figure, front + table.columns[i].title, column_of(table, i)));
    };
    add_of(NumberKind::ratio, "");
    for (std::size_t i = kFirstLead; i < table.columns.size(); ++i) {
        const std::string what = table.columns[i].title + ", largest";
        const Values values = column_of(table, i);
        if (paper.find(table.figure, what))
            numbers.push_back(paper.number(table.figure, what, largest_of(values).value_or(0),
                                           geometric_mean_of(values).value_or(0)));
    }
    add_of(NumberKind::share, "share ");
    return numbers;
}

}  // namespace

Reproduction begun(const Publication& paper, const ReproduceOptions& options) {
    std::vector<std::string> names;
    for (const NamedFigure& figure : paper.figures) names.push_back(figure.name);
    if (options.figure && std::find(names.begin(), names.end(), *options.figure) == names.end())
        throw input_error("figure: found {}, allowed: {}{}", moehub::quoted(*options.figure),
                          fmt::join(names, ", "), did_you_mean(*options.figure, names));
    return {.paper = paper.name,
            .title = paper.title,
            .arxiv = paper.arxiv,
            .venue = paper.venue,
            .setup = paper.setup,
            .readings = paper.readings,
            .means = paper.means,
            .figure = options.figure.value_or(""),
            .quick = options.quick,
            .numbers = {},
            .claims = {},
            .tables = {},
            .cells = {}};
}

bool is_wanted(const Reproduction& all, const std::string& figure) {
    return all.figure.empty() || all.figure == figure;
}

void add(FigureResult figure, Reproduction& all) {
    append(all.numbers, figure.numbers);
    append(all.claims, figure.claims);
    append(all.tables, figure.tables);
}

Reproduction ended(Reproduction all) {
    if (all.quick) {
        forget_reasons(all.numbers);
        forget_reasons(all.claims);
    }
    return all;
}

Reproduction reproduce_cells(const PaperOfCells& cells, const ReproduceOptions& options) {
    Reproduction all = begun(cells.paper, options);
    std::vector<PaperFigure> wanted;
    for (const PaperFigure& figure : cells.figures)
        if (is_wanted(all, figure.name)) wanted.push_back(figure);
    all.cells = simulate_cells(cells.setup, keys_of(wanted, all.readings), options);
    for (const PaperFigure& figure : wanted) add(read_all(figure, all), all);
    return ended(std::move(all));
}

std::vector<PaperInfo> papers() {
    std::vector<PaperInfo> list;
    for (const Paper& one : kPapers) {
        const Publication& paper = publication(one.name);
        list.push_back({paper.name,
                        fmt::format("{}, {} (arXiv {}{}{})", paper.title, paper.subject,
                                    paper.arxiv, paper.venue.empty() ? "" : ", ", paper.venue),
                        paper.figures});
    }
    return list;
}

Reproduction reproduce(const std::string& paper, const ReproduceOptions& options) {
    std::vector<std::string> known;
    for (const Paper& one : kPapers) {
        if (paper == one.name)
            return one.run ? one.run(options) : reproduce_cells(one.cells(options.quick), options);
        known.emplace_back(one.name);
    }
    throw input_error("paper: found {}, allowed: {}{}", moehub::quoted(paper),
                      fmt::join(known, ", "), did_you_mean(paper, known));
}

std::optional<double> faster(Ps slow, Ps fast) {
    if (slow <= 0 || fast <= 0) return std::nullopt;
    return static_cast<double>(slow) / static_cast<double>(fast);
}

std::optional<double> share_of(double part, double whole, bool ran) {
    return ran && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

std::optional<double> mean_of(const Values& values) {
    return mean_by(values, [](double value) { return value; });
}

std::optional<double> geometric_mean_of(const Values& values) {
    const auto mean = mean_by(values, [](double value) { return portable_log(value); });
    return mean ? std::optional(portable_exp(*mean)) : std::nullopt;
}

std::optional<double> largest_of(const Values& values) {
    std::optional<double> most;
    for (const std::optional<double>& value : values)
        if (value && (!most || *value > *most)) most = value;
    return most;
}

Values column_of(const FigureTable& table, std::size_t column) {
    Values values;
    for (const FigureTable::Row& row : table.rows)
        if (!row.mean) values.push_back(row.values[column]);
    return values;
}

void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table) {
    if (!cell.refusal.empty())
        table.notes.push_back(fmt::format("{}: {}", words_of(labels, table), cell.refusal));
}

FigureResult make_leads(const Publication& paper, const LeadsFigure& figure, const Lookup& cell) {
    FigureTable table = leads_table(figure, cell);
    FigureResult result;
    for (const LeadsClaim& claim : figure.claims)
        result.claims.push_back(claim.check(paper, table, claim.what));
    if (figure.means) {
        result.numbers = published_leads(paper, table);
        add_means(paper, table);
    }
    result.tables.push_back(std::move(table));
    return result;
}

PaperFigure figure_of(const Publication& paper, LeadsFigure figure, bool every_reading) {
    std::string name = figure.name;
    return {std::move(name),
            [&paper, figure = std::move(figure)](const Lookup& cell) {
                return make_leads(paper, figure, cell);
            },
            every_reading};
}

PublishedNumber published_mean(const Publication& paper, std::string_view figure,
                               std::string_view what, const Values& values) {
    const Mean mean = paper.means == Means::geometric ? geometric_mean_of : mean_of;
    return paper.number(figure, what, mean(values).value_or(0),
                        geometric_mean_of(values).value_or(0));
}

void add_means(const Publication& paper, FigureTable& table) {
    const FigureTable::Row geometric = row_of_means(table, "geometric mean", geometric_mean_of);
    if (paper.means == Means::geometric)
        table.rows.insert(table.rows.end(),
                          {geometric, row_of_means(table, "largest", largest_of)});
    else
        table.rows.insert(table.rows.end(), {row_of_means(table, "mean", mean_of), geometric});
}

PublishedClaim always_ahead(const Publication& paper, const FigureTable& table,
                            std::string_view what) {
    std::optional<double> least;
    std::string where;
    for (const FigureTable::Row& row : table.rows) {
        for (std::size_t i = 0; !row.mean && i < row.values.size(); ++i) {
            const std::optional<double>& value = row.values[i];
            if (table.columns[i].kind != NumberKind::ratio || !value) continue;
            if (least && *value >= *least) continue;
            least = *value;
            where = fmt::format("{}: {}", fmt::join(row.labels, ", "), table.columns[i].title);
        }
    }
    return paper.claim(table.figure, what, least && *least > 1,
                       least ? fmt::format("smallest lead {:.2f}× ({})", *least, where) : "");
}

PublishedClaim lead_grows(const Publication& paper, const FigureTable& table,
                          std::string_view what) {
    bool grows = !table.rows.empty();
    std::string found;
    std::string series;
    std::optional<double> before;
    for (const FigureTable::Row& row : table.rows) {
        const std::optional<double> lead = lead_of(row);
        const bool first = before == std::nullopt || series_of(row) != series;
        if (!lead || (!first && *lead <= *before)) grows = false;
        if (first) {
            series = series_of(row);
            found +=
                fmt::format("{}{}", found.empty() ? "" : "; ", series.empty() ? "" : series + ": ");
        }
        found +=
            fmt::format("{}{} {:.2f}×", first ? "" : ", ", row.labels.back(), lead.value_or(0));
        before = lead.value_or(0);
    }
    return paper.claim(table.figure, what, grows, std::move(found));
}

}  // namespace moehub
