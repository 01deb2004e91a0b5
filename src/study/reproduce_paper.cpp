#include "study/reproduce_paper.hpp"

namespace moehub {
namespace {

std::vector<PaperFigure> figures_wanted(const std::vector<PaperFigure>& figures,
                                        const std::optional<std::string>& name) {
    check_figure(name, names_of(figures));
    std::vector<PaperFigure> wanted;
    for (const PaperFigure& figure : figures)
        if (!name || *name == figure.name) wanted.push_back(figure);
    return wanted;
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

}  // namespace

std::vector<NamedFigure> names_of(const std::vector<PaperFigure>& figures) {
    std::vector<NamedFigure> list;
    for (const PaperFigure& figure : figures) list.push_back({figure.name, figure.title});
    return list;
}

Reproduction reproduce_paper(Reproduction all, const PaperSetup& setup,
                             const std::vector<PaperFigure>& figures, const ReasonOf& reason,
                             const ReproduceOptions& options) {
    const std::vector<PaperFigure> wanted = figures_wanted(figures, options.figure);
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    all.readings = setup.readings;
    all.cells =
        simulate_cells(setup, keys_of(wanted, all.readings), {options.threads, options.progress});
    for (const PaperFigure& figure : wanted) add_explained(read_all(figure, all), reason, all);
    return all;
}

}  // namespace moehub
