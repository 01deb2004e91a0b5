// A study's file. Its tables are flattened, so [grid] link.latency and "link.latency" are the same.
#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/toml.hpp"
#include "study/sweep/study.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostSeeds = 100000;

std::string place(const std::string& origin, int line) {
    return fmt::format("{}:{}", origin, line);
}

[[noreturn]] void refuse(const std::string& origin, const ValuesEntry& entry,
                         std::string_view what) {
    throw input_error("{}: {}: {}", place(origin, entry.line), entry.key, what);
}

const Entry& single(const std::string& origin, const ValuesEntry& entry) {
    if (entry.list || entry.values.size() != 1)
        refuse(origin, entry, "found a list or a table, allowed: one value");
    return entry.values.front();
}

std::vector<std::string> texts_of(const ValuesEntry& entry) {
    std::vector<std::string> texts;
    for (const Entry& value : entry.values) texts.push_back(value.text);
    return texts;
}

/// "grid.tokens" without "grid."; nothing when the key is of another table.
std::optional<std::string> within(const std::string& key, std::string_view table) {
    if (!key.starts_with(table) || key.size() <= table.size() + 1 || key[table.size()] != '.')
        return std::nullopt;
    return key.substr(table.size() + 1);
}

/// Ranges come as several entries: tokens.from, tokens.to, tokens.factor.
class AxisReader {
  public:
    explicit AxisReader(std::string origin) : origin_(std::move(origin)) {}

    void take(const std::string& key, const ValuesEntry& entry) {
        for (std::size_t part = 0; part < std::size(kParts); ++part) {
            if (!key.ends_with(kParts[part]) || entry.list) continue;
            const std::string whole = key.substr(0, key.size() - kParts[part].size());
            find(whole, entry).range[part] = single(origin_, entry).text;
            return;
        }
        for (const std::string& value : texts_of(entry)) find(key, entry).values.push_back(value);
        find(key, entry);
    }

    std::vector<SweepAxis> axes() const {
        std::vector<SweepAxis> made;
        for (const Part& part : parts_) {
            const std::string where = place(origin_, part.line);
            SweepAxis axis{{part.key}, {}, where};
            for (const std::string& value : values(part, where)) axis.rows.push_back({value});
            made.push_back(std::move(axis));
        }
        return made;
    }

  private:
    static constexpr std::string_view kParts[] = {".from", ".to", ".step", ".factor"};
    struct Part {
        std::string key;
        int line;
        std::vector<std::string> values = {};
        std::array<std::string, 4> range = {};
    };

    Part& find(const std::string& key, const ValuesEntry& entry) {
        for (Part& part : parts_)
            if (part.key == key) return part;
        return parts_.emplace_back(Part{key, entry.line});
    }

    static std::vector<std::string> values(const Part& part, const std::string& where) {
        const auto& [from, to, step, factor] = part.range;
        if (from.empty() && to.empty() && step.empty() && factor.empty()) return part.values;
        try {
            if (from.empty() || to.empty() || !part.values.empty())
                throw InputError("a range has from, to and one of step and factor");
            return values_of({from, to, step, factor});
        } catch (const InputError& error) {
            throw input_error("{}: {}: {}", where, part.key, error.what());
        }
    }

    std::string origin_;
    std::vector<Part> parts_;
};

class StudyReader {
  public:
    explicit StudyReader(const std::string& origin) : origin_(origin), grid_(origin) {
        study_.origin = origin;
        study_.name = std::filesystem::path(origin).stem().string();
    }

    void take(const ValuesEntry& entry) {
        if (const auto key = within(entry.key, "set")) {
            study_.fixed.push_back({*key, single(origin_, entry).text, place(origin_, entry.line)});
        } else if (const auto axis = within(entry.key, "grid")) {
            grid_.take(*axis, entry);
        } else if (const auto zip = within(entry.key, "zip")) {
            const std::size_t dot = zip->find('.');
            if (dot == std::string::npos)
                refuse(origin_, entry, "expected a table of lists such as [zip.size]");
            zip_of(zip->substr(0, dot), entry).take(zip->substr(dot + 1), entry);
        } else {
            take_top(entry);
        }
    }

    Study study() {
        std::vector<SweepAxis> axes = grid_.axes();
        for (const Zip& zip : zips_) {
            SweepAxis axis = zipped(zip.reader.axes());
            axis.where = place(origin_, zip.line);
            axes.push_back(std::move(axis));
        }
        study_.axes = std::move(axes);
        return std::move(study_);
    }

  private:
    struct Zip {
        std::string name;
        int line;
        AxisReader reader;
    };

    AxisReader& zip_of(const std::string& name, const ValuesEntry& entry) {
        for (Zip& zip : zips_)
            if (zip.name == name) return zip.reader;
        return zips_.emplace_back(Zip{name, entry.line, AxisReader(origin_)}).reader;
    }

    void take_top(const ValuesEntry& entry) {
        static const std::vector<std::string> kKnown{
            "name", "title", "kind", "systems", "seeds", "baseline", "set", "grid", "zip"};
        const std::string& key = entry.key;
        if (key == "name")
            study_.name = name_from(entry);
        else if (key == "title")
            study_.title = single(origin_, entry).text;
        else if (key == "baseline")
            study_.baseline = single(origin_, entry).text;
        else if (key == "kind") {
            study_.kind = single(origin_, entry).text;
            study_.kind_where = place(origin_, entry.line);
        } else if (key == "systems")
            study_.systems = texts_of(entry);
        else if (key == "seeds")
            study_.seeds = seeds_from(entry);
        else if ((key == "set" || key == "grid" || key == "zip") && entry.values.empty())
            return;
        else
            refuse(origin_, entry,
                   fmt::format("unknown key{}{}", did_you_mean(key, kKnown),
                               " (what is the same for all points stands in [set], what changes in "
                               "[grid])"));
    }

    std::string name_from(const ValuesEntry& entry) const {
        const std::string name = single(origin_, entry).text;
        if (name.empty() || name.size() > 100 || name.find('/') != std::string::npos ||
            name.starts_with('.'))
            refuse(origin_, entry,
                   fmt::format("found {}, allowed: a name that a file can have",
                               moehub::quoted(name)));
        return name;
    }

    std::vector<std::string> seeds_from(const ValuesEntry& entry) const {
        const std::vector<std::string> texts = texts_of(entry);
        try {
            if (!entry.list) return parse_seeds(single(origin_, entry).text);
            return parse_seeds(fmt::format("{},", fmt::join(texts, ",")));
        } catch (const InputError& error) {
            throw input_error("{}: {}", place(origin_, entry.line), error.what());
        }
    }

    std::string origin_;
    Study study_;
    AxisReader grid_;
    std::vector<Zip> zips_;
};

}  // namespace

std::vector<std::string> parse_seeds(const std::string& text) {
    const auto fail = [&]() {
        throw input_error(
            "seeds: found {}, allowed: how many, up to {}, or a list of different whole numbers",
            moehub::quoted(text), kMostSeeds);
    };
    std::vector<std::string> seeds;
    try {
        if (text.find(',') == std::string::npos) {
            const std::int64_t count = parse_count(text);
            if (count < 1 || count > kMostSeeds) fail();
            for (std::int64_t i = 1; i <= count; ++i) seeds.push_back(std::to_string(i));
            return seeds;
        }
        std::set<std::int64_t> seen;
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            const std::int64_t seed = parse_count(rest.substr(0, comma));
            if (seed < 0 || !seen.insert(seed).second) fail();
            seeds.push_back(std::to_string(seed));
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    } catch (const InputError&) {
        fail();
    }
    return seeds;
}

Study parse_study(std::string_view text, const std::string& origin) {
    StudyReader reader(origin);
    for (const ValuesEntry& entry : read_toml_values(text, origin)) reader.take(entry);
    return reader.study();
}

Study load_study(const std::string& path) {
    return parse_study(read_bytes(path, kLongestToml), path);
}

}  // namespace moehub
