#include "request/sweep_arguments.hpp"

#include "base/crc32.hpp"
#include "request/point_arguments.hpp"
#include "request/values.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr const char* kUsualSystems = "ideal,megatron-te,moe-hub";
constexpr const char* kUsualDenseSystems = "ideal,tp-nvls,cais";

/// "KEY=VALUES".
SweepAxis axis_of(std::string_view option, const std::string& text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    if (equals == 0 || equals == text.size())
        throw InputError(
            fmt::format("{}: found {}, allowed: KEY=VALUE,VALUE,… such as link.latency=100ns,1us",
                        option, moehub::quoted(text)));
    const std::string key = text.substr(0, equals);
    SweepAxis axis{{key}, {}, std::string(option)};
    try {
        for (std::string& value : parse_axis_values(std::string_view(text).substr(equals + 1)))
            axis.rows.push_back({std::move(value)});
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}: {}", option, key, error.what()));
    }
    return axis;
}

void add_axes(const SweepArguments& arguments, Study& study) {
    for (const std::string& text : arguments.sweep) study.axes.push_back(axis_of("--sweep", text));
    std::vector<SweepAxis> together;
    for (const std::string& text : arguments.zip) together.push_back(axis_of("--zip", text));
    if (!together.empty()) study.axes.push_back(zipped(together));
}

/// What was typed stands before what the file says.
void add_settings(const SweepArguments& arguments, Study& study) {
    for (StudySetting& typed : typed_settings(arguments.model)) {
        const auto found = std::find_if(study.fixed.begin(), study.fixed.end(),
                                        [&](const auto& one) { return one.key == typed.key; });
        if (found == study.fixed.end())
            study.fixed.push_back(std::move(typed));
        else
            *found = std::move(typed);
    }
}

void add_seeds(const SweepArguments& arguments, Study& study) {
    const std::optional<std::string>& one = arguments.model.layer.seed;
    if (one && arguments.seeds)
        throw InputError("--seed: found with --seeds, allowed: one of the two");
    try {
        if (arguments.seeds) study.seeds = parse_seeds(*arguments.seeds);
        if (one) study.seeds = parse_seeds(*one + ",");
    } catch (const InputError& error) {
        throw InputError(fmt::format("--{}", error.what()));
    }
}

bool dense(const Study& study) {
    if (study.kind != StudyKind::model) return study.kind == StudyKind::tp;
    for (const StudySetting& setting : study.fixed)
        if (setting.key == "model") return load_model(setting.value).experts == 0;
    return false;
}

}  // namespace

Study study_of(const SweepArguments& arguments) {
    Study study;
    study.origin = "--sweep";
    if (arguments.study) study = load_study(*arguments.study);
    if (arguments.kind)
        study.kind = named("--kind", *arguments.kind, study_kind_named(*arguments.kind),
                           {"layer", "tp", "model"});
    add_axes(arguments, study);
    add_settings(arguments, study);
    add_seeds(arguments, study);
    if (arguments.systems) study.systems = listed(*arguments.systems);
    if (arguments.baseline) study.baseline = *arguments.baseline;
    if (study.systems.empty())
        study.systems = listed(dense(study) ? kUsualDenseSystems : kUsualSystems);
    if (study.axes.empty())
        throw InputError(
            arguments.study ? study.origin + ": nothing is swept, allowed: [grid], [zip.NAME]"
                            : std::string("sweep: found neither a study nor --sweep, allowed: "
                                          "moehub sweep STUDY.toml, moehub sweep --sweep KEY=A,B"));
    // The same question, the same file: asked again it goes on, and another is not in its way.
    if (study.name.empty()) study.name = fmt::format("sweep-{:08x}", crc32(definition_of(study)));
    return study;
}

SweepShard shard_of(const SweepArguments& arguments) {
    constexpr std::int64_t kMostShards = 1000000;
    if (!arguments.shard) return {};
    const std::string& text = *arguments.shard;
    const std::size_t slash = text.find('/');
    try {
        if (slash != std::string::npos) {
            const std::int64_t index = parse_count(text.substr(0, slash));
            const std::int64_t of = parse_count(text.substr(slash + 1));
            if (index >= 1 && index <= of && of <= kMostShards)
                return {static_cast<std::size_t>(index - 1), static_cast<std::size_t>(of)};
        }
    } catch (const InputError&) {
        // Said better below.
    }
    throw InputError(fmt::format("--shard: found {}, allowed: I/N with I from 1 to N, as in 2/4",
                                 moehub::quoted(text)));
}

std::string database_of(const SweepArguments& arguments, const Study& study) {
    if (!arguments.model.layer.output.empty()) return arguments.model.layer.output;
    const SweepShard shard = shard_of(arguments);
    if (!arguments.shard) return study.name + ".sqlite";
    return fmt::format("{}-{}-of-{}.sqlite", study.name, shard.index + 1, shard.of);
}

void add_sweep_options(std::vector<Option>& options, SweepArguments& arguments,
                       const OptionRules& beside) {
    options.push_back({"--sweep", &arguments.sweep,
                       "simulate with each of these values: a list, or 1024..8192*2, 0..1+0.25; "
                       "keys are options without dashes or what --set takes; repeatable, all "
                       "combinations",
                       "KEY=A,B"});
    options.push_back({"--zip", &arguments.zip,
                       "as --sweep, but all --zip go together: first with first, …", "KEY=A,B",
                       beside});
    options.push_back({"--seeds", &arguments.seeds,
                       "of generated routings: how many, from 1 on, or a list with commas", "N|A,B",
                       beside});
    options.push_back({"--csv", &arguments.csv, "the table, one row a point; - is standard output",
                       "FILE", beside});
}

}  // namespace moehub
