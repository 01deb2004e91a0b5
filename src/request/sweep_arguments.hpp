/// What `moehub sweep` is asked, and `moehub compare --sweep`.
#pragma once
#include "request/model_arguments.hpp"
#include "study/sweep/store.hpp"

namespace moehub {

struct SweepArguments {
    ModelArguments model;              ///< the usual options of layers and models; -o, --json
    std::optional<std::string> study;  ///< a file
    std::vector<std::string> sweep;    ///< KEY=VALUES
    std::vector<std::string> zip;      ///< the same; all go together
    std::optional<std::string> kind;
    std::optional<std::string> systems;
    std::optional<std::string> seeds;
    std::optional<std::string> baseline;
    std::optional<std::string> threads;
    std::optional<std::string> shard;
    std::string csv;
    bool dry_run = false;
};

/// `--sweep` and what stands beside it wherever it does, by these rules.
void add_sweep_options(std::vector<Option>& options, SweepArguments& arguments,
                       const OptionRules& beside = {});

/// The file's study with what was typed, or what was typed alone. Throws InputError.
Study study_of(const SweepArguments& arguments);
/// "2/4" as the second of four. Throws InputError.
SweepShard shard_of(const SweepArguments& arguments);
/// As typed, else by the study's name.
std::string database_of(const SweepArguments& arguments, const Study& study);

}  // namespace moehub
