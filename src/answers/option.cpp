#include "answers/option.hpp"

#include "base/quantity.hpp"
#include "model/records.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

[[noreturn]] void refuse(std::string_view option, const std::string& found,
                         std::string_view allowed) {
    bad_input("{}: found {}, allowed: {}", option, moehub::quoted(found), allowed);
}

/// The kind of value that names such a noun.
template <class Noun>
ValueKind kind_of_noun() {
    // In the order of HeldNoun's alternatives.
    constexpr ValueKind kKinds[] = {ValueKind::machine, ValueKind::model,  ValueKind::gpu,
                                    ValueKind::system,  ValueKind::layout, ValueKind::routing};
    return kKinds[HeldNoun(Held<Noun>()).index()];
}

template <class Noun>
void add_keys(std::vector<std::string>& keys, const std::string& prefix) {
    Noun noun;
    for (const Field& field : fields_of(noun)) keys.push_back(prefix + field.key);
}

void add_keys_of(std::vector<std::string>& keys, const std::string& noun,
                 const std::string& prefix) {
    if (noun == "machine") add_keys<Machine>(keys, prefix);
    if (noun == "gpu") add_keys<Gpu>(keys, prefix);
    if (noun == "model") add_keys<Model>(keys, prefix);
    if (noun == "system") add_keys<SystemSpec>(keys, prefix);
    if (noun == "trainer") add_keys<TrainerSpec>(keys, prefix);
    if (noun == "engine") add_keys<EngineSpec>(keys, prefix);
}

std::string key_of_name(std::string name) {
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

void check_rules(const Options& options, const Said& said) {
    for (const Option& option : options) {
        const OptionRules& rules = option.rules;
        const std::string name = name_of(option);
        const std::string key = key_of_name(name);
        if (rules.required && !has(said, key)) bad_input("{} is required", name);
        if (!is_on(options, said, key)) continue;
        if (!rules.needs.empty() && !is_on(options, said, key_of_name(rules.needs)))
            bad_input("{} requires {}", name, rules.needs);
        for (const std::string& other : rules.excludes)
            if (is_on(options, said, key_of_name(other))) bad_input("{} excludes {}", name, other);
    }
}

/// A list that is said has something in it, and every text a name. No settings change nothing.
void check_list(const Option& option, const SaidOption& said) {
    const Target& target = option.target;
    if (!(target.list || target.commas) || target.kind == ValueKind::settings) return;
    if (said.texts.empty() && said.given.empty())
        bad_input("{}: found nothing, allowed: {}", name_of(option), type_of(option));
    if (words_of(target.kind).presets.empty() && !words_of(target.kind).files) return;
    for (const std::string& text : said.texts)
        if (listed(text).empty()) refuse(name_of(option), text, "a name or a file");
}
}  // namespace

void refuse_name(std::string_view option, const std::string& found,
                 const std::vector<std::string>& known) {
    bad_input("{}: found {}, allowed: {}{}", option, moehub::quoted(found), fmt::join(known, ", "),
              did_you_mean(found, known));
}

std::int64_t count_of(std::string_view option, const std::string& text, Range allowed) {
    try {
        const std::int64_t count = parse_count(text);
        if (count >= allowed.least && count <= allowed.most) return count;
    } catch (const InputError&) {
        // Said better below.
    }
    const bool open = allowed.most >= std::numeric_limits<int>::max();
    refuse(option, text,
           open ? fmt::format("a whole number, {} or more", allowed.least)
                : fmt::format("a whole number from {} to {}", allowed.least, allowed.most));
}

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> parts;
    if (text.find_first_not_of(' ') == std::string::npos) return parts;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        std::string part = text.substr(start, end - start);
        part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
        part.erase(part.find_last_not_of(' ') + 1);
        parts.push_back(std::move(part));
        start = end + 1;
    }
    return parts;
}

double number_of(std::string_view option, const std::string& text, double most,
                 std::string_view allowed) {
    try {
        if (const double number = parse_number(text); number >= 0 && number <= most) return number;
    } catch (const InputError&) {
        // Said better below.
    }
    refuse(option, text, allowed);
}

Bytes size_of(std::string_view option, const std::string& text) {
    constexpr Bytes kMost = Bytes{1} << 40;
    std::string with_unit = with_byte_unit(text);
    const auto last = text.find_last_not_of(' ');
    const char end = last == std::string::npos ? '\0' : text[last];
    if (end >= '0' && end <= '9') with_unit += " B";
    try {
        if (const Bytes bytes = parse_bytes(with_unit); bytes >= 1 && bytes <= kMost) return bytes;
    } catch (const InputError&) {
        // Said better below.
    }
    refuse(option, text, "a size from 1 B to 1 TiB such as 8589934592, 8G, 64MiB or \"64 MB\"");
}

Ps time_of(std::string_view option, const std::string& text) {
    try {
        const Ps time = parse_time(text);
        if (time < 0) bad_input("found {}, allowed: 0 or more", quoted(text));
        return time;
    } catch (const InputError& error) {
        bad_input("{}: {}", option, error.what());
    }
}

bool flag_of(std::string_view option, const std::string& text) {
    if (text != "true" && text != "false") refuse(option, text, "true, false");
    return text == "true";
}

Target to(std::vector<std::int64_t>& counts, Range allowed) {
    Target target;
    target.kind = ValueKind::count;
    target.commas = true;
    target.clear = [&counts] { counts.clear(); };
    target.read = [&counts, allowed](std::string_view option, const std::string& text) {
        const std::vector<std::string> parts = listed(text);
        if (parts.empty()) count_of(option, text, allowed);
        for (const std::string& part : parts) counts.push_back(count_of(option, part, allowed));
    };
    return target;
}

Target to_time(Ps& time) {
    Target target = single(ValueKind::time, time, time_of);
    target.usual = print_time(time);
    return target;
}
Target to_time(std::optional<Ps>& time) {
    return single(ValueKind::time, time, time_of);
}

Target to_texts(std::vector<std::string>& texts, ValueKind kind) {
    Target target;
    target.kind = kind;
    target.list = true;
    target.clear = [&texts] { texts.clear(); };
    target.read = [&texts](std::string_view option, const std::string& text) {
        if (text.empty()) refuse(option, text, "a value");
        texts.push_back(text);
    };
    return target;
}

template <class Noun>
Target to(Wanted<Noun>& noun) {
    Target target;
    target.kind = kind_of_noun<Noun>();
    target.usual = noun.name;
    target.read = [&noun](std::string_view option, const std::string& text) {
        if (text.empty()) refuse(option, text, "a name or a file");
        noun = {text, nullptr};
    };
    target.give = [&noun](const HeldNoun& given) { noun.given = std::get<Held<Noun>>(given); };
    return target;
}

template <class Noun>
Target to(std::vector<Wanted<Noun>>& nouns) {
    Target target;
    target.kind = kind_of_noun<Noun>();
    target.commas = true;
    for (const auto& one : nouns) target.usual += (target.usual.empty() ? "" : ",") + one.name;
    target.clear = [&nouns] { nouns.clear(); };
    target.read = [&nouns](std::string_view, const std::string& text) {
        for (std::string& name : listed(text)) nouns.push_back({std::move(name), nullptr});
    };
    target.give = [&nouns](const HeldNoun& given) {
        nouns.push_back({"", std::get<Held<Noun>>(given)});
    };
    return target;
}

template <class Noun>
Target to(std::optional<std::vector<Wanted<Noun>>>& nouns) {
    std::vector<Wanted<Noun>> none;
    Target target = to(none);  // all that goes into that list is replaced
    const auto list = [&nouns]() -> auto& {
        return nouns ? *nouns : nouns.emplace();
    };
    target.clear = [list] { list().clear(); };
    target.read = [list](std::string_view option, const std::string& text) {
        to(list()).read(option, text);
    };
    target.give = [list](const HeldNoun& given) { to(list()).give(given); };
    return target;
}

template Target to(Wanted<Machine>&);
template Target to(Wanted<Model>&);
template Target to(Wanted<Gpu>&);
template Target to(Wanted<SystemSpec>&);
template Target to(Wanted<ExpertLayout>&);
template Target to(Wanted<NamedRouting>&);
template Target to(std::vector<Wanted<Model>>&);
template Target to(std::vector<Wanted<SystemSpec>>&);
template Target to(std::optional<std::vector<Wanted<SystemSpec>>>&);

Target to_profiles(std::vector<Wanted<NamedRouting>>& profiles) {
    Target target = to(profiles);
    target.kind = ValueKind::profile;
    target.commas = false;
    target.list = true;
    target.read = [&profiles](std::string_view, const std::string& text) {
        profiles.push_back({text, nullptr});
    };
    return target;
}

Target to(Settings& settings, std::vector<std::string> nouns) {
    Target target;
    target.kind = ValueKind::settings;
    target.list = true;
    target.clear = [&settings] { settings = {}; };
    target.read = [&settings, nouns](std::string_view option, const std::string& text) {
        const std::size_t equals = std::min(text.find('='), text.size());
        if (equals == 0 || equals == text.size()) refuse(option, text, "KEY=VALUE");
        settings.typed.push_back(text);
        for (std::size_t i = 1; i < nouns.size(); ++i)
            if (text.starts_with(nouns[i] + "."))
                return settings.others[nouns[i]].push_back(text.substr(nouns[i].size() + 1));
        settings.machine.push_back(text);
    };
    target.keys = [nouns] {
        std::vector<std::string> keys;
        for (std::size_t i = 0; i < nouns.size(); ++i)
            add_keys_of(keys, nouns[i], i == 0 ? "" : nouns[i] + ".");
        return keys;
    };
    return target;
}

const KindWords& words_of(ValueKind kind) {
    static constexpr KindWords kWords[] = {
        {"", "", false, "bool"},
        {"N", "", false, "int"},
        {"X", "", false, "float"},
        {"SIZE", "", false, "int | str"},
        {"TIME", "", false, "str"},
        {"NAME", "", false, "str"},
        {"TEXT", "", false, "str"},
        {"FILE", "", true, "PathLike"},
        {"KEY=VALUE", "", false, "str"},
        {"M", "machines", true, "MachineLike"},
        {"M", "models", true, "ModelLike"},
        {"GPU", "gpus", true, "GpuLike"},
        {"S", "systems", true, "SystemLike"},
        {"E", "engines", true, "PathLike"},
        {"T", "trainers", true, "PathLike"},
        {"NAME|FILE", "shapes", true, "PathLike"},
        {"R", "", true, "RoutingLike"},
        {"FILE", "", true, "LayoutLike"},
        {"FILE", "", true, "RoutingLike"},
    };
    static_assert(std::size(kWords) == static_cast<std::size_t>(ValueKind::profile) + 1);
    return kWords[static_cast<std::size_t>(kind)];
}

std::string type_of(const Option& option) {
    constexpr std::size_t kFew = 3;  ///< choices that are named
    const Target& target = option.target;
    if (!target.type.empty()) return target.type;
    if (target.kind == ValueKind::choice && target.choices.size() <= kFew)
        return fmt::format("{}", fmt::join(target.choices, "|"));
    const std::string type(words_of(target.kind).type);
    return target.commas ? type + ",…" : type;
}

std::vector<std::string> names_of(const Option& option) {
    return listed(option.names);
}

std::string name_of(const Option& option) {
    const std::size_t comma = option.names.rfind(',');
    return comma == std::string::npos ? option.names : option.names.substr(comma + 1);
}

bool is_argument(const Option& option) {
    return !option.names.starts_with('-');
}

std::string key_of(const Option& option) {
    return key_of_name(name_of(option));
}

const Option* find_option(const Options& options, std::string_view key) {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const Option& one) { return key_of(one) == key; });
    return found == options.end() ? nullptr : &*found;
}

void append(Options& options, Options more) {
    for (Option& option : more) options.push_back(std::move(option));
}

Options joined(std::vector<Options> parts) {
    Options all;
    for (Options& part : parts) append(all, std::move(part));
    return all;
}

bool has(const Said& said, std::string_view key) {
    return std::any_of(said.begin(), said.end(),
                       [&](const SaidOption& one) { return one.key == key; });
}

bool is_on(const Options& options, const Said& said, std::string_view key) {
    return std::any_of(said.begin(), said.end(), [&](const SaidOption& one) {
        if (one.key != key) return false;
        if (one.texts.empty() || one.texts.back() != "false") return true;
        const Option* const option = find_option(options, key);
        return option == nullptr || option->target.kind != ValueKind::flag;
    });
}

void fill(const Options& options, const Said& said) {
    for (const SaidOption& one : said) {
        if (find_option(options, one.key) != nullptr) continue;
        std::vector<std::string> known;
        for (const Option& option : options) known.push_back(key_of(option));
        bad_input("unknown option {}{}", moehub::quoted(one.key), did_you_mean(one.key, known));
    }
    check_rules(options, said);
    for (const Option& option : options) {
        const Target& target = option.target;
        const std::string name = name_of(option);
        const std::string key = key_of_name(name);
        for (const SaidOption& one : said) {
            if (one.key != key) continue;
            check_list(option, one);
            const bool goes_on = &one != said.data() && std::prev(&one)->key == key;
            if (target.clear && !goes_on) target.clear();
            for (const std::string& text : one.texts) target.read(name, text);
            for (const HeldNoun& noun : one.given) {
                if (!target.give) bad_input("{}: found an object, allowed: a name", name);
                try {
                    target.give(noun);
                } catch (const std::bad_variant_access&) {
                    bad_input("{}: found an object of another kind", name);
                }
            }
        }
    }
}

}  // namespace moehub
