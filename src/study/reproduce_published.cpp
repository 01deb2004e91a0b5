#include "study/reproduce_published.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/toml_values.hpp"
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
    /// Its values, all of this type; of a key that is no list the one.
    std::vector<std::string> all(Entry::Type type, std::string_view expected) const {
        std::vector<std::string> texts;
        for (const Entry& one : entry.values) {
            const bool whole = one.type == Entry::Type::integer && type == Entry::Type::real;
            if (one.type != type && !whole)
                fail(fmt::format("expected {}, found {}", expected, moehub::quoted(one.text)));
            texts.push_back(one.text);
        }
        return texts;
    }
    std::string one(Entry::Type type, std::string_view expected) const {
        const std::vector<std::string> texts = all(type, expected);
        if (entry.list || texts.size() != 1)
            fail(fmt::format("expected {}, found a list or table", expected));
        return texts.front();
    }
    std::string text() const { return one(Entry::Type::string, "text"); }
    /// Lines of a paragraph.
    std::string paragraph() const {
        return fmt::format("{}", fmt::join(all(Entry::Type::string, "text"), " "));
    }
    double positive() const {
        const double value = parse_number(one(Entry::Type::real, "a number above 0"));
        if (value <= 0) fail("expected a number above 0");
        return value;
    }
    RatioRange range() const {
        const std::vector<std::string> ends = all(Entry::Type::real, "[least, most]");
        if (ends.size() != 2) fail("expected [least, most]");
        const RatioRange range{parse_number(ends[0]), parse_number(ends[1])};
        if (range.least < 0 || range.most <= range.least)
            fail(fmt::format("expected [least, most], found [{}, {}]", ends[0], ends[1]));
        return range;
    }
    template <class Value>
    Value named(const std::map<std::string, Value>& names) const {
        const std::string name = text();
        const auto found = names.find(name);
        if (found != names.end()) return found->second;
        std::vector<std::string> known;
        for (const auto& [one, value] : names) known.push_back(one);
        fail(fmt::format("found {}, allowed: {}", moehub::quoted(name), fmt::join(known, ", ")));
    }
};

/// What may stand somewhere, and where it goes.
using Keys = std::map<std::string, std::function<void(const Found&)>>;

void take(const Keys& keys, const std::string& key, const Found& found) {
    const auto known = keys.find(key);
    if (known != keys.end()) return known->second(found);
    std::vector<std::string> names;
    for (const auto& [name, set] : keys) names.push_back(name);
    found.fail(
        fmt::format("unknown, allowed: {}{}", fmt::join(names, ", "), did_you_mean(key, names)));
}

/// The member of a list that has this name, made where there is none.
template <class Item>
Item& named_in(std::vector<Item>& list, const std::string& name, std::string Item::*member) {
    for (Item& one : list)
        if (one.*member == name) return one;
    list.emplace_back().*member = name;
    return list.back();
}

class PublicationReader {
  public:
    PublicationReader(std::string name, const Origin& origin) : origin_(origin) {
        paper_.name = std::move(name);
    }

    void read(const ValuesEntry& entry) {
        const Found found{origin_, entry};
        const std::size_t first = entry.key.find('.');
        if (first == std::string::npos) return take(of_paper(), entry.key, found);
        const std::string figure = entry.key.substr(0, first);
        const std::string rest = entry.key.substr(first + 1);
        const std::size_t last = rest.rfind('.');
        if (figure == "reasons") {
            reasons_[rest] = {found.paragraph(), entry.line};
        } else if (last == std::string::npos) {
            take(of_figure(figure), rest, found);
        } else if (figure == "readings") {
            Reading& reading = named_in(paper_.readings, rest.substr(0, last), &Reading::name);
            take({{"what", [&](const Found& one) { reading.what = one.paragraph(); }},
                  {"changes",
                   [&](const Found& one) {
                       reading.changes = one.all(Entry::Type::string, "texts");
                   }}},
                 rest.substr(last + 1), found);
        } else {
            take(of_row(row_of(figure, rest.substr(0, last), entry.line)), rest.substr(last + 1),
                 found);
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

    [[noreturn]] void fail(int line, const std::string& key, std::string_view what) const {
        throw InputError(at(origin_, {key, "", Entry::Type::word, line}) + std::string(what));
    }

    Keys of_paper() {
        const auto text = [](std::string& to) {
            return [&to](const Found& found) { to = found.text(); };
        };
        const auto texts = [](std::vector<std::string>& to) {
            return [&to](const Found& found) { to = found.all(Entry::Type::string, "texts"); };
        };
        return {{"title", text(paper_.title)},
                {"subject", text(paper_.subject)},
                {"arxiv", text(paper_.arxiv)},
                {"venue", text(paper_.venue)},
                {"means", [this](const Found& found) { paper_.means = found.named(kMeans); }},
                {"machine", text(paper_.machine)},
                {"changes", texts(paper_.changes)},
                {"setup", texts(paper_.setup)}};
    }

    Keys of_figure(const std::string& figure) {
        return {{"title",
                 [this, figure](const Found& found) {
                     named_in(paper_.figures, figure, &NamedFigure::name).title = found.text();
                 }},
                {"where", [this, figure](const Found& found) { where_[figure] = found.text(); }}};
    }

    PublishedRow& row_of(const std::string& figure, const std::string& what, int line) {
        for (PublishedRow& one : paper_.rows)
            if (one.figure == figure && one.what == what) return one;
        paper_.rows.push_back({figure, what});
        lines_.push_back(line);
        return paper_.rows.back();
    }

    static Keys of_row(PublishedRow& row) {
        return {{"value", [&row](const Found& found) { row.value = found.positive(); }},
                {"kind", [&row](const Found& found) { row.kind = found.named(kKinds); }},
                {"claim",
                 [&row](const Found& found) {
                     row.claim = found.one(Entry::Type::boolean, "true") == "true";
                 }},
                {"where", [&row](const Found& found) { row.where = found.text(); }},
                {"reason", [&row](const Found& found) { row.reason = found.text(); }},
                {"holds", [&row](const Found& found) { row.holds = found.range(); }}};
    }

    /// What must stand together; the reason's name becomes its text.
    void check(PublishedRow& row, int line) {
        const std::string key = row.figure + "." + row.what;
        if (std::none_of(paper_.figures.begin(), paper_.figures.end(),
                         [&](const auto& one) { return one.name == row.figure; }))
            fail(line, key, "the figure has no title");
        if (row.claim == row.value.has_value())
            fail(line, key, "expected a value, or claim = true");
        if (row.holds.has_value() != (!row.claim && !row.reason.empty()))
            fail(line, key, "expected reason and holds together, of a claim reason alone");
        if (row.where.empty()) row.where = where_[row.figure];
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
    std::vector<int> lines_;  ///< of rows
    std::map<std::string, Reason> reasons_;
    std::map<std::string, std::string> where_;  ///< by figure
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
