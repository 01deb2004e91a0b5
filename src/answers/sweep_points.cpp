// A point of a study as what is said to its question: its keys are that question's options, and
// what `--set` takes.
#include "answers/question.hpp"
#include "answers/sweep_request.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::string_view kSystem = "system.";
constexpr std::string_view kRoutingParts[] = {"routing.spread", "routing.transition"};

/// Options that say how work is done or shown, not what it is; and what a study says itself.
constexpr std::string_view kNoKeys[] = {"set",      "seed",   "seeds",   "layer_type",
                                        "threads",  "sweep",  "zip",     "trace_rows",
                                        "baseline", "decode", "prefill", "output"};

bool is_key(const Option& option, const SweepKind& kind) {
    const std::string key = key_of(option);
    return key != kind.systems && (option.rules.forms & kind.forms) != 0 &&
           std::find(std::begin(kNoKeys), std::end(kNoKeys), key) == std::end(kNoKeys);
}

std::vector<std::string> known_keys(const Study& study, const StudyQuestion& asked) {
    const Asked question = asked.question.ask();
    std::vector<std::string> known;
    for (const Option& option : question.options) {
        if (is_key(option, asked.kind)) known.push_back(key_of(option));
        if (key_of(option) == "routing")
            known.insert(known.end(), std::begin(kRoutingParts), std::end(kRoutingParts));
        const bool set = key_of(option) == "set";
        if (!option.target.keys || !(set || is_key(option, asked.kind))) continue;
        const std::string front = set ? "" : key_of(option) + ".";
        for (const std::string& key : option.target.keys()) {
            if (!key.starts_with(kSystem)) {
                known.push_back(front + key);
                continue;
            }
            for (const std::string& name : study.own_names)
                known.push_back(fmt::format("{}{}.{}", kSystem, name, key.substr(kSystem.size())));
        }
    }
    return known;
}

/// "system.moe-hub.packet" of another system than the point's.
bool is_anothers(const std::string& key, const Study& study, const SweepPoint& point) {
    const std::string& own = study.own_names[point.number % study.systems.size()];
    return key.starts_with(kSystem) && !key.starts_with(fmt::format("{}{}.", kSystem, own));
}

/// "normal:0.1,transition:0.7" with one of its numbers replaced.
std::string with_part(const std::string& routing, std::string_view part, const std::string& value) {
    constexpr std::string_view kTransition = ",transition:";
    const std::size_t comma = std::min(routing.find(kTransition), routing.size());
    std::string shares = routing.substr(0, comma);
    std::string transition = routing.substr(comma);
    if (part == kRoutingParts[0]) shares = shares.substr(0, shares.find(':')) + ":" + value;
    if (part == kRoutingParts[1]) transition = std::string(kTransition) + value;
    return shares + transition;
}

/// The texts of an option, which is said from now on.
std::vector<std::string>& texts_of(Said& said, const std::string& key) {
    const auto found =
        std::find_if(said.begin(), said.end(), [&](const auto& one) { return one.key == key; });
    return found != said.end() ? found->texts : said.emplace_back(SaidOption{key, {}}).texts;
}

/// Whose key it is, "fix.tp" of --fix; null: none's. Keys of --set stand by themselves.
const Option* option_with_keys(const Options& options, const std::string& key) {
    const Option* const option = find_option(options, key.substr(0, key.find('.')));
    return option != nullptr && option->target.keys && key_of(*option) != "set" ? option : nullptr;
}

}  // namespace

StudyQuestion study_question(const std::string& kind, const std::string& where) {
    std::vector<std::string> known;
    for (Question& question : questions())
        for (const SweepKind& one : question.sweeps) {
            if (one.name == kind) return {question, one};
            known.push_back(one.name);
        }
    refuse_name(where, kind, known);
}

void check_keys(const Study& study, const StudyQuestion& asked) {
    const std::vector<std::string> known = known_keys(study, asked);
    const std::set<std::string> allowed(known.begin(), known.end());
    const auto require = [&](const std::string& key, const std::string& where) {
        if (allowed.contains(key)) return;
        if (key == "seed")
            throw InputError(where + ": seed: found as a key, allowed: seeds, of the whole study");
        if (key == asked.kind.systems)
            bad_input("{}: {}: found as a key, allowed: systems, of the whole study", where, key);
        bad_input("{}: unknown key {}{}", where, quoted(key), did_you_mean(key, known));
    };
    for (const StudySetting& setting : study.fixed) require(setting.key, setting.where);
    for (const SweepAxis& axis : study.axes)
        for (const std::string& key : axis.keys) require(key, axis.where);
}

Said said_at(const Study& study, const SweepPoint& point, const StudyQuestion& asked) {
    const Options options = asked.question.ask().options;
    Said said;
    for (const auto& [key, text] : asked.kind.said) texts_of(said, key) = {text};
    std::vector<std::pair<std::string, std::string>> settings;
    for (const StudySetting& setting : study.fixed)
        settings.emplace_back(setting.key, setting.value);
    const std::vector<std::string> keys = keys_of(study);
    for (std::size_t i = 0; i < keys.size(); ++i) settings.emplace_back(keys[i], point.values[i]);
    for (const auto& [key, value] : settings) {
        if (find_option(options, key) != nullptr)
            texts_of(said, key) = {value};
        else if (const Option* const option = option_with_keys(options, key))
            texts_of(said, key_of(*option))
                .push_back(fmt::format("{}={}", key.substr(key.find('.') + 1), value));
        else if (!key.starts_with("routing.") && !is_anothers(key, study, point))
            texts_of(said, "set").push_back(fmt::format("{}={}", key, value));
    }
    for (const auto& [key, value] : settings) {
        if (!key.starts_with("routing.")) continue;
        std::vector<std::string>& routing = texts_of(said, "routing");
        routing = {with_part(routing.empty() ? "uniform" : routing.back(), key, value)};
    }
    if (!point.seed.empty()) texts_of(said, "seed") = {point.seed};
    if (!point.system.empty()) texts_of(said, asked.kind.systems) = {point.system};
    if (find_option(options, "threads") != nullptr) texts_of(said, "threads") = {"1"};
    return said;
}

}  // namespace moehub
