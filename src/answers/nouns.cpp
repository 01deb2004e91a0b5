#include "answers/nouns.hpp"

#include "answers/option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// A noun that is given has its settings already.
void refuse_settings(const Overrides& settings, std::string_view noun) {
    if (settings.empty()) return;
    bad_input(
        "--set: found {} beside a {} that is given, allowed: where it is "
        "made",
        moehub::quoted(settings.front()), noun);
}

}  // namespace

Machine machine_of(const Wanted<Machine>& wanted, const Settings& settings, const char* usual) {
    if (wanted.given == nullptr) return load_machine(wanted.name_or(usual), settings.machine);
    refuse_settings(settings.machine, "machine");
    return wanted.given->value;
}

Model model_of(const Wanted<Model>& wanted, const Settings& settings, const char* usual) {
    if (wanted.given == nullptr) return load_model(wanted.name_or(usual), settings.of("model"));
    refuse_settings(settings.of("model"), "model");
    return wanted.given->value;
}

std::vector<std::string> settings_of(const Settings& settings, const Wanted<Machine>& machine,
                                     const Wanted<Model>& model) {
    std::vector<std::string> all;
    if (machine.given != nullptr) all = machine.given->settings;
    if (model.given != nullptr)
        for (const std::string& one : model.given->settings) all.push_back("model." + one);
    all.insert(all.end(), settings.typed.begin(), settings.typed.end());
    return all;
}

std::string with_settings(const std::vector<std::string>& settings) {
    return settings.empty() ? "" : fmt::format(", with {}", fmt::join(settings, ", "));
}

}  // namespace moehub
