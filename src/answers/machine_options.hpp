/// Machines, models and systems as questions ask for them, loaded.
#pragma once
#include "answers/nouns.hpp"
#include "report/answer.hpp"

#include <string>
#include <vector>

namespace moehub {

/// As given, else as named, with what `--set` changes. Throw InputError; `--set` beside a noun that
/// is given is refused.
Machine machine_of(const Wanted<Machine>& wanted, const Settings& settings, const char* usual = "");
Model model_of(const Wanted<Model>& wanted, const Settings& settings, const char* usual = "");

/// All that was changed: of nouns that are given, then by `--set`.
std::vector<std::string> settings_of(const Settings& settings, const Wanted<Machine>& machine,
                                     const Wanted<Model>& model = {});

/// ", with link.latency=1us"; nothing without settings.
std::string with_settings(const std::vector<std::string>& settings);

template <class Noun>
void add_configuration(Configuration& list, const char* kind, const Noun& noun) {
    list.emplace_back(std::string(kind) + ": " + noun.name, [noun] { return to_toml(noun); });
}

}  // namespace moehub
