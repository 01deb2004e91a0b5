/// Machines, models, GPUs, systems, serving engines and trainers by name or from TOML files.
///
/// A name that contains '/' or ends in ".toml" is a file; any other is a preset of the binary
/// (presets/). A file may start from another: `extends = "dgx-h100"`. Overrides are `--set`
/// arguments, "link.latency=300 ns", applied in order. Bad input throws InputError: one line with
/// the file, its line, the key, what was found and what is allowed.
#pragma once
#include <moehub/engine.hpp>
#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/system.hpp>
#include <moehub/trainer.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

using Overrides = std::vector<std::string>;

Machine load_machine(const std::string& name_or_path, const Overrides& overrides = {});
Model load_model(const std::string& name_or_path, const Overrides& overrides = {});
Gpu load_gpu(const std::string& name_or_path, const Overrides& overrides = {});
SystemSpec load_system(const std::string& name_or_path, const Overrides& overrides = {});
EngineSpec load_engine(const std::string& name_or_path, const Overrides& overrides = {});
TrainerSpec load_trainer(const std::string& name_or_path, const Overrides& overrides = {});

template <class Noun>
concept Described = std::same_as<Noun, Machine> || std::same_as<Noun, Model> ||
    std::same_as<Noun, Gpu> || std::same_as<Noun, SystemSpec> || std::same_as<Noun, EngineSpec> ||
    std::same_as<Noun, TrainerSpec>;

/// A noun from TOML text; `origin` stands for the file in errors.
template <Described Noun>
Noun parse(std::string_view text, const std::string& origin);

/// TOML text of a noun, with units and a comment per key; reads back equal.
template <Described Noun>
std::string to_toml(const Noun& noun);

/// JSON of a noun; quantities are plain numbers: picoseconds, bytes, per second.
template <Described Noun>
std::string to_json(const Noun& noun);

/// Names of a kind's presets in alphabetical order. Kinds: "machines", "models", "gpus",
/// "systems", "engines", "trainers".
std::vector<std::string> preset_names(std::string_view kind);

/// The preset's one-line title.
std::string preset_title(std::string_view kind, std::string_view name);

/// The kind of a preset, or of a file by its keys.
std::string kind_of(const std::string& name_or_path);

/// The files behind a preset or file as they were written, with the source of every number: its
/// own, what it extends, and a machine's GPU.
std::string sources_of(const std::string& name_or_path);

/// The machine with this many GPUs. A cluster (nic.bandwidth above 0) takes part of one node or
/// any number of whole nodes; a single node takes any number up to its limit. Start from the
/// machine as loaded: sizing down forgets how large a node was.
Machine with_gpus(const Machine& machine, int gpus);

}  // namespace moehub
