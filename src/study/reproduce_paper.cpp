#include "study/reproduce_paper.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Paper {
    const char* name;  ///< of its file in presets/papers
    Reproduction (*run)(const ReproduceOptions&);
};
constexpr Paper kPapers[] = {{"moe-hub", reproduce_moe_hub},
                             {"dysharp", reproduce_dysharp},
                             {"cais", reproduce_cais},
                             {"moetuner", reproduce_moetuner},
                             {"pangu", reproduce_pangu}};

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

}  // namespace

Reproduction begun(const Publication& paper, const ReproduceOptions& options) {
    std::vector<std::string> names;
    for (const NamedFigure& figure : paper.figures) names.push_back(figure.name);
    if (options.figure && std::find(names.begin(), names.end(), *options.figure) == names.end())
        throw InputError(fmt::format("figure: found {}, allowed: {}{}",
                                     moehub::quoted(*options.figure), fmt::join(names, ", "),
                                     did_you_mean(*options.figure, names)));
    Reproduction all;
    all.paper = paper.name;
    all.title = paper.title;
    all.arxiv = paper.arxiv;
    all.venue = paper.venue;
    all.setup = paper.setup;
    all.readings = paper.readings;
    all.means = paper.means;
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    return all;
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

PaperSetup setup_of(const Publication& paper) {
    return {paper.machine, paper.changes, paper.readings};
}

Reproduction reproduce_cells(Reproduction all, const PaperSetup& setup,
                             const std::vector<PaperFigure>& figures,
                             const ReproduceOptions& options) {
    std::vector<PaperFigure> wanted;
    for (const PaperFigure& figure : figures)
        if (is_wanted(all, figure.name)) wanted.push_back(figure);
    all.cells =
        simulate_cells(setup, keys_of(wanted, all.readings), {options.threads, options.progress});
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
        if (paper == one.name) return one.run(options);
        known.emplace_back(one.name);
    }
    throw InputError(fmt::format("paper: found {}, allowed: {}{}", moehub::quoted(paper),
                                 fmt::join(known, ", "), did_you_mean(paper, known)));
}

}  // namespace moehub
