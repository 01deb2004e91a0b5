/// Nouns as questions ask for them, by name or at hand already, and how they are loaded.
#pragma once
#include "report/answer.hpp"

#include <moehub/expert_layout.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/presets.hpp>
#include <moehub/routing.hpp>
#include <moehub/system.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// A noun that was loaded, and from what, which results repeat.
template <class Noun>
struct Loaded {
    Noun value;
    std::string name;         ///< preset or file, as asked for
    Overrides settings = {};  ///< "KEY=VALUE" that changed it
};
template <class Noun>
using Held = std::shared_ptr<const Loaded<Noun>>;

/// A routing that is at hand; its name is the generator, the file, or what its maker calls it.
struct NamedRouting {
    Routing value;
    std::optional<std::uint64_t> seed = {};  ///< generator's seed; none: no generator
};

/// A noun that a question asks for. Neither said: as usual.
template <class Noun>
struct Wanted {
    std::string name;       ///< preset or file
    Held<Noun> given = {};  ///< noun at hand, used instead of the name

    bool said() const { return given != nullptr || !name.empty(); }
    std::string name_or(const char* usual) const {
        return given != nullptr ? given->name : name.empty() ? usual : name;
    }
};

/// `--set KEY=VALUE`, sorted by whom it concerns, without its prefix.
struct Settings {
    Overrides typed;  ///< all, as they were typed
    Overrides machine;
    std::map<std::string, Overrides> others;  ///< by prefix: "model", "system", "trainer"

    Overrides of(const std::string& prefix) const {
        const auto found = others.find(prefix);
        return found == others.end() ? Overrides{} : found->second;
    }
};

/// The noun as given, else as named, with what `--set` changes. Throw InputError; `--set` beside a
/// noun that is given is refused.
Machine machine_of(const Wanted<Machine>& wanted, const Settings& settings, const char* usual = "");
Model model_of(const Wanted<Model>& wanted, const Settings& settings, const char* usual = "");

/// All settings that were changed: those of given nouns, then what `--set` says.
std::vector<std::string> settings_of(const Settings& settings, const Wanted<Machine>& machine,
                                     const Wanted<Model>& model = {});

/// ", with link.latency=1us"; nothing without settings.
std::string with_settings(const std::vector<std::string>& settings);

template <class Noun>
void add_configuration(Configuration& list, const char* kind, const Noun& noun) {
    list.emplace_back(std::string(kind) + ": " + noun.name, [noun] { return to_toml(noun); });
}

}  // namespace moehub
