/// What all nouns have in common: read from documents, checked, printed. Each noun's fields are in
/// a file of its own.
#include "model/records.hpp"

namespace moehub {
namespace {

template <class Noun>
constexpr std::string_view kWord = "";  ///< presets of it are in the folder of its plural
template <>
constexpr std::string_view kWord<Machine> = "machine";
template <>
constexpr std::string_view kWord<Model> = "model";
template <>
constexpr std::string_view kWord<Gpu> = "gpu";
template <>
constexpr std::string_view kWord<SystemSpec> = "system";
template <>
constexpr std::string_view kWord<EngineSpec> = "engine";
template <>
constexpr std::string_view kWord<TrainerSpec> = "trainer";

template <class Noun>
Noun noun_from(std::vector<Document> chain, const Overrides& overrides) {
    if constexpr (std::same_as<Noun, Machine>) {
        return machine_from(std::move(chain), overrides);
    } else if constexpr (std::same_as<Noun, Gpu>) {
        return gpu_from(std::move(chain), overrides);
    } else {
        Noun noun;
        noun.name = chain.back().name;
        const Given given = fill(fields_of(noun), chain, overrides);
        if constexpr (std::same_as<Noun, Model>) check(noun, given);
        return noun;
    }
}

template <class Noun>
Noun load(const std::string& name_or_path, const Overrides& overrides) {
    return noun_from<Noun>(load_chain(fmt::format("{}s", kWord<Noun>), name_or_path), overrides);
}

/// Checks the fields' limits; returns where errors of what they are together are to be found.
template <class Noun>
Given within_limits(Noun noun) {
    const Given given{fmt::format("{}{}{}", kWord<Noun>, noun.name.empty() ? "" : " ", noun.name)};
    require_limits(fields_of(noun), given);
    return given;
}

/// The fields that are shown: not the constants of kernels that a card does not have.
template <class Noun>
Fields shown_fields(Noun& noun) {
    return without_absent_kernels(fields_of(noun), std::same_as<Noun, Machine> ? "gpu." : "");
}

}  // namespace

Machine load_machine(const std::string& name_or_path, const Overrides& overrides) {
    return load<Machine>(name_or_path, overrides);
}
Model load_model(const std::string& name_or_path, const Overrides& overrides) {
    return load<Model>(name_or_path, overrides);
}
Gpu load_gpu(const std::string& name_or_path, const Overrides& overrides) {
    return load<Gpu>(name_or_path, overrides);
}
SystemSpec load_system(const std::string& name_or_path, const Overrides& overrides) {
    return load<SystemSpec>(name_or_path, overrides);
}
EngineSpec load_engine(const std::string& name_or_path, const Overrides& overrides) {
    return load<EngineSpec>(name_or_path, overrides);
}
TrainerSpec load_trainer(const std::string& name_or_path, const Overrides& overrides) {
    return load<TrainerSpec>(name_or_path, overrides);
}

template <Described Noun>
Noun parse(std::string_view text, const std::string& origin) {
    return noun_from<Noun>(parse_chain(fmt::format("{}s", kWord<Noun>), text, origin), {});
}

template <Described Noun>
std::string to_toml(const Noun& noun) {
    Noun copy = noun;
    std::string text;
    if constexpr (std::same_as<Noun, Gpu>)
        if (!noun.inherited.empty())
            text = fmt::format("# Inherited from the {} generation: {}\n", noun.generation,
                               fmt::join(noun.inherited, ", "));
    return text + print_toml(shown_fields(copy));
}

template <Described Noun>
std::string to_json(const Noun& noun) {
    Noun copy = noun;
    return print_json(shown_fields(copy));
}

void check(const Machine& machine) {
    check(machine, within_limits(machine));
}
void check(const Model& model) {
    check(model, within_limits(model));
}
void check(const SystemSpec& system) {
    within_limits(system);
}
void check(const EngineSpec& engine) {
    within_limits(engine);
}
void check(const TrainerSpec& trainer) {
    within_limits(trainer);
}

template Machine parse<Machine>(std::string_view, const std::string&);
template std::string to_toml(const Machine&);
template std::string to_json(const Machine&);
template Model parse<Model>(std::string_view, const std::string&);
template std::string to_toml(const Model&);
template std::string to_json(const Model&);
template Gpu parse<Gpu>(std::string_view, const std::string&);
template std::string to_toml(const Gpu&);
template std::string to_json(const Gpu&);
template SystemSpec parse<SystemSpec>(std::string_view, const std::string&);
template std::string to_toml(const SystemSpec&);
template std::string to_json(const SystemSpec&);
template EngineSpec parse<EngineSpec>(std::string_view, const std::string&);
template std::string to_toml(const EngineSpec&);
template std::string to_json(const EngineSpec&);
template TrainerSpec parse<TrainerSpec>(std::string_view, const std::string&);
template std::string to_toml(const TrainerSpec&);
template std::string to_json(const TrainerSpec&);

}  // namespace moehub
