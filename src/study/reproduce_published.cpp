#include "study/reproduce_published.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/presets.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr double kTolerance = 0.1;

const std::map<std::string, NumberKind> kKinds{{"ratio", NumberKind::ratio},
                                               {"share", NumberKind::share},
                                               {"size", NumberKind::size},
                                               {"time", NumberKind::time}};
const std::map<std::string, Means> kMeans{
    {"arithmetic", Means::arithmetic}, {"geometric", Means::geometric}, {"none", Means::none}};

/// A key of the file with its values, and the front of errors about it.
struct Found {
    const Origin& origin;
    const ValuesEntry& entry;

    [[noreturn]] void fail(std::string_view what) const {
        throw InputError(at(origin, {entry.key, "", Entry::Type::word, entry.line}) +
                         std::string(what));
    }
    /// The key's values; one value where the key is no list.
    std::vector<std::string> texts(Entry::Type type = Entry::Type::string,
                                   std::string_view expected = "text") const {
        std::vector<std::string> texts;
        for (const Entry& one : entry.values) {
            const bool whole = one.type == Entry::Type::integer && type == Entry::Type::real;
            if (one.type != type && !whole)
                fail(fmt::format("expected {}, found {}", expected, moehub::quoted(one.text)));
            texts.push_back(one.text);
        }
        if (texts.empty() && !entry.list) fail(fmt::format("expected {}, found a table", expected));
        return texts;
    }
    /// The values as one text: lines of a paragraph are joined.
    std::string text() const { return fmt::format("{}", fmt::join(texts(), " ")); }
    std::vector<double> numbers(std::size_t count, std::string_view expected) const {
        std::vector<double> numbers;
        for (const std::string& one : texts(Entry::Type::real, expected))
            numbers.push_back(parse_number(one));
        const bool grows = std::adjacent_find(numbers.begin(), numbers.end(),
                                              std::greater_equal<>()) == numbers.end();
        if (numbers.size() != count || !grows || numbers.front() <= 0)
            fail(fmt::format("expected {}", expected));
        return numbers;
    }
    template <class Value>
    Value one_of(const std::map<std::string, Value>& known) const {
        return pick(known, text());
    }
    /// What is known by that name.
    template <class Value>
    const Value& pick(const std::map<std::string, Value>& known, const std::string& name) const {
        const auto found = known.find(name);
        if (found != known.end()) return found->second;
        std::vector<std::string> names;
        for (const auto& [one, value] : known) names.push_back(one);
        fail(fmt::format("found {}, allowed: {}{}", moehub::quoted(name), fmt::join(names, ", "),
                         did_you_mean(name, names)));
    }
};

/// Keys that may stand in a table, and where their values go.
template <class Noun>
using Keys = std::map<std::string, std::function<void(Noun&, const Found&)>>;

const Keys<Publication> kOfPaper{
    {"title", [](auto& paper, auto& found) { paper.title = found.text(); }},
    {"subject", [](auto& paper, auto& found) { paper.subject = found.text(); }},
    {"arxiv", [](auto& paper, auto& found) { paper.arxiv = found.text(); }},
    {"venue", [](auto& paper, auto& found) { paper.venue = found.text(); }},
    {"means", [](auto& paper, auto& found) { paper.means = found.one_of(kMeans); }},
    {"machine", [](auto& paper, auto& found) { paper.machine = found.text(); }},
    {"changes", [](auto& paper, auto& found) { paper.changes = found.texts(); }},
    {"setup", [](auto& paper, auto& found) { paper.setup = found.texts(); }}};

const Keys<Reading> kOfReading{
    {"what", [](auto& reading, auto& found) { reading.what = found.text(); }},
    {"changes", [](auto& reading, auto& found) { reading.changes = found.texts(); }}};

const Keys<PublishedRow> kOfRow{
    {"value", [](auto& row, auto& found) { row.value = found.numbers(1, "a number above 0")[0]; }},
    {"kind", [](auto& row, auto& found) { row.kind = found.one_of(kKinds); }},
    {"claim",
     [](auto& row, auto& found) {
         row.claim = found.texts(Entry::Type::boolean, "true").front() == "true";
     }},
    {"where", [](auto& row, auto& found) { row.where = found.text(); }},
    {"reason", [](auto& row, auto& found) { row.reason = found.text(); }},
    {"holds", [](auto& row, auto& found) {
         const std::vector<double> ends = found.numbers(2, "[least, most]");
         row.holds = RatioRange{ends[0], ends[1]};
     }}};

/// A figure's own keys.
struct FigureKeys {
    std::string title;
    std::string where;
};
const Keys<FigureKeys> kOfFigure{
    {"title", [](auto& figure, auto& found) { figure.title = found.text(); }},
    {"where", [](auto& figure, auto& found) { figure.where = found.text(); }}};

/// The item of a list that `is` finds, or a new one.
template <class Item, class Is>
Item& found_in(std::vector<Item>& list, Is is, Item fresh) {
    const auto known = std::find_if(list.begin(), list.end(), is);
    if (known != list.end()) return *known;
    return list.emplace_back(std::move(fresh));
}

class PublicationReader {
  public:
    PublicationReader(std::string name, Origin origin) : origin_(std::move(origin)) {
        paper_.name = std::move(name);
    }

    void read(const ValuesEntry& entry) {
        const Found found{origin_, entry};
        const std::size_t first = entry.key.find('.');
        if (first == std::string::npos) return set(paper_, kOfPaper, entry.key, found);
        const std::string table = entry.key.substr(0, first);
        const std::string rest = entry.key.substr(first + 1);
        const std::size_t last = rest.rfind('.');
        const std::string key = rest.substr(last + 1);  // all of the key where it has no dot
        if (table == "reasons") {
            reasons_[rest] = {found.text(), entry.line};
        } else if (table == "readings" && last != std::string::npos) {
            const std::string name = rest.substr(0, last);
            set(found_in(paper_.readings, [&](auto& one) { return one.name == name; },
                         {name, "", {}}),
                kOfReading, key, found);
        } else if (last == std::string::npos) {
            NamedFigure& figure =
                found_in(paper_.figures, [&](auto& one) { return one.name == table; }, {table, ""});
            set(figures_[table], kOfFigure, key, found);
            figure.title = figures_[table].title;
        } else {
            const std::string what = rest.substr(0, last);
            const auto is = [&](auto& one) { return one.figure == table && one.what == what; };
            set(found_in(paper_.rows, is, {table, what}), kOfRow, key, found);
            lines_.resize(paper_.rows.size(), entry.line);
        }
    }

    Publication end() {
        if (paper_.title.empty() || paper_.arxiv.empty())
            throw InputError(origin_ + ": title, arxiv: missing");
        for (std::size_t i = 0; i < paper_.rows.size(); ++i) check(paper_.rows[i], lines_[i]);
        for (const auto& [name, reason] : reasons_)
            if (!reason.used) fail(reason.line, "reasons." + name, "no row has it");
        return std::move(paper_);
    }

  private:
    struct Reason {
        std::string text;
        int line = 0;
        bool used = false;
    };

    template <class Noun>
    static void set(Noun& noun, const Keys<Noun>& keys, const std::string& key,
                    const Found& found) {
        found.pick(keys, key)(noun, found);
    }

    [[noreturn]] void fail(int line, const std::string& key, std::string_view what) const {
        throw InputError(at(origin_, {key, "", Entry::Type::word, line}) + std::string(what));
    }

    /// What must stand together; the reason's name becomes its text.
    void check(PublishedRow& row, int line) {
        const std::string key = row.figure + "." + row.what;
        const FigureKeys& figure = figures_[row.figure];
        if (figure.title.empty()) fail(line, key, "the figure has no title");
        if (row.claim == row.value.has_value())
            fail(line, key, "expected a value, or claim = true");
        if (row.holds.has_value() != (!row.claim && !row.reason.empty()))
            fail(line, key, "expected reason and holds together, of a claim reason alone");
        if (row.where.empty()) row.where = figure.where;
        if (row.where.empty()) fail(line, key, "where: missing, of the row and of its figure");
        if (row.reason.empty()) return;
        const auto reason = reasons_.find(row.reason);
        if (reason == reasons_.end())
            fail(line, key,
                 fmt::format("no reason {} under [reasons]", moehub::quoted(row.reason)));
        reason->second.used = true;
        row.reason = reason->second.text;
    }

    Origin origin_;
    Publication paper_;
    std::vector<int> lines_;  ///< line of each row in the file
    std::map<std::string, Reason> reasons_;
    std::map<std::string, FigureKeys> figures_;
};

const PublishedRow& row_in(const Publication& paper, std::string_view figure, std::string_view what,
                           bool claim) {
    const PublishedRow* row = paper.find(figure, what);
    if (row && row->claim == claim) return *row;
    throw std::logic_error(fmt::format("presets/papers/{}.toml has no {} {}, {}", paper.name,
                                       claim ? "claim" : "number", figure, what));
}

}  // namespace

bool PublishedNumber::as_published() const {
    return as_published(0);
}

bool PublishedNumber::as_published(std::size_t reading) const {
    return is_read(reading) && std::abs(read(reading) / paper - 1) <= kTolerance;
}

const PublishedRow* Publication::find(std::string_view figure, std::string_view what) const {
    for (const PublishedRow& one : rows)
        if (one.figure == figure && one.what == what) return &one;
    return nullptr;
}

PublishedNumber Publication::number(std::string_view figure, std::string_view what, double ours,
                                    double geometric) const {
    const PublishedRow& row = row_in(*this, figure, what, false);
    PublishedNumber number{row.figure, row.what, row.kind, *row.value, ours, geometric};
    number.where = row.where;
    if (number.as_published()) return number;
    number.holds = row.holds;
    number.explained = row.holds && row.holds->has(number.ratio());
    number.reason = number.explained ? row.reason : kNoExplanation;
    if (!number.explained && row.holds)
        number.reason += fmt::format(": what is known holds for {} to {} of the published number",
                                     row.holds->least, row.holds->most);
    return number;
}

PublishedClaim Publication::claim(std::string_view figure, std::string_view what, bool holds,
                                  std::string found) const {
    const PublishedRow& row = row_in(*this, figure, what, true);
    PublishedClaim claim{row.figure, row.what, holds, std::move(found)};
    claim.where = row.where;
    claim.explained = holds || !row.reason.empty();
    if (!holds) claim.reason = claim.explained ? row.reason : kNoExplanation;
    return claim;
}

const Publication& publication(std::string_view paper) {
    static const std::vector<Publication> all = [] {
        std::vector<Publication> read;
        for (const EmbeddedPreset& one : embedded_presets())
            if (one.kind == "papers")
                read.push_back(parse_publication(one.text, std::string(one.name),
                                                 fmt::format("preset papers/{}", one.name)));
        return read;
    }();
    for (const Publication& one : all)
        if (one.name == paper) return one;
    throw std::logic_error(fmt::format("no presets/papers/{}.toml", paper));
}

Publication parse_publication(std::string_view text, const std::string& name,
                              const Origin& origin) {
    PublicationReader reader(name, origin);
    for (const ValuesEntry& entry : read_toml_values(text, origin)) reader.read(entry);
    return reader.end();
}

}  // namespace moehub
