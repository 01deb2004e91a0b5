// Fits constants of trainers to validation/published_training.csv and prints errors before and
// after, and the lines of presets/trainers/*.toml. validation/fit_training calls it.
#include "training_fit.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

constexpr int kRounds = 3;    ///< of choosing layouts and moving constants
constexpr int kDescents = 4;  ///< of a round, at most

/// All that may be fitted, with where it starts and what is possible.
const std::vector<TrainerConstant>& fittable() {
    static const std::vector<TrainerConstant> all = {
        {"", "hopper.launch", " us", 60, 1, 400},     {"", "hopper.graphs", "", 0.3, 0.01, 1},
        {"", "hopper.tensor", "", 0.85, 0.3, 1.2},    {"", "hopper.memory", "", 0.85, 0.3, 1.2},
        {"", "blackwell.launch", " us", 60, 1, 400},  {"", "blackwell.graphs", "", 0.6, 0.01, 1},
        {"", "blackwell.tensor", "", 0.85, 0.3, 1.2}, {"", "blackwell.memory", "", 0.85, 0.3, 1.2},
        {"", "fsdp_overlap", "", 0.5, 0.01, 1},       {"", "passes", "", 4, 0.1, 60},
        {"", "row_passes", "", 2, 0.1, 30},           {"", "imbalance", "", 0.1, 0.01, 1},
        {"", "step_host", " us", 20000, 100, 1e6},
    };
    return all;
}

/// "megatron-26.04:hopper.launch,passes" names constants of a preset.
std::vector<TrainerConstant> constants_of(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos)
        throw InputError(fmt::format("found {}, allowed: PRESET:KEY,KEY,…", text));
    std::vector<TrainerConstant> found;
    for (std::size_t at = colon + 1; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const std::string key = text.substr(at, end - at);
        std::string known;
        for (TrainerConstant one : fittable()) {
            known += (known.empty() ? "" : ", ") + one.key;
            if (one.key != key) continue;
            one.preset = text.substr(0, colon);
            found.push_back(one);
        }
        if (found.empty() || found.back().key != key)
            throw InputError(fmt::format("key {}: allowed are {}", key, known));
        at = end + 1;
    }
    return found;
}

struct Errors {
    double sum = 0;
    int rows = 0;
    std::string text() const {
        return rows == 0 ? std::string(12, ' ')
                         : fmt::format("{:>4} {:>6.1f}%", rows, 100 * sum / rows);
    }
    void add(double ratio) {
        sum += std::abs(ratio - 1);
        ++rows;
    }
};

/// Of fitted and of held-out rows.
using SourceErrors = std::map<std::string, std::array<Errors, 2>>;

SourceErrors errors_of(const TrainingFit& fit) {
    SourceErrors errors;
    for (const TrainingFitRow& row : fit.rows()) {
        errors[row.run.source][row.held_out ? 1 : 0].add(row.predicted);
        errors["all"][row.held_out ? 1 : 0].add(row.predicted);
    }
    return errors;
}

void print_errors(const SourceErrors& before, const SourceErrors& after) {
    fmt::print("{:<28}{:>14}{:>14}{:>14}{:>14}\n", "rows, mean |error|", "fitted: was", "is",
               "held out: was", "is");
    for (const auto& [source, now] : after) {
        const auto& was = before.at(source);
        fmt::print("{:<28}  {}  {}  {}  {}\n", source, was[0].text(), now[0].text(), was[1].text(),
                   now[1].text());
    }
}

void print_rows(const TrainingFit& fit) {
    for (const TrainingFitRow& row : fit.rows())
        fmt::print("{:>4} {:+7.1f}%{} {:<16} {:<20} {:>5} {:<10} {}\n", row.run.line,
                   100 * (row.predicted - 1), row.held_out ? "*" : " ", row.run.model,
                   row.run.machine, row.run.gpus, row.trainer.name, to_text(row.layout));
}

void print_toml(const TrainingFit& fit) {
    std::string preset;
    for (std::size_t i = 0; i < fit.constants().size(); ++i) {
        const TrainerConstant& one = fit.constants()[i];
        if (one.preset != preset) fmt::print("\n# presets/trainers/{}.toml\n", one.preset);
        preset = one.preset;
        const std::string value = fmt::format("{:.3g}", fit.values()[i]);
        fmt::print("{} = {}\n", one.key,
                   one.unit.empty() ? value : fmt::format("\"{}{}\"", value, one.unit));
    }
}

int run(const std::string& folder, const std::vector<TrainerConstant>& constants, int hold_out) {
    const std::string rows = folder + "/validation/published_training.csv";
    const SourceErrors before = errors_of(TrainingFit(rows, {}, hold_out));  // presets as they are
    TrainingFit fit(rows, constants, hold_out);
    double best = fit.loss();
    fmt::print("loss {:.4f}\n", best);
    for (int round = 0; round < kRounds && !constants.empty(); ++round) {
        for (int i = 0; i < kDescents; ++i) {
            const double found = fit.descend();
            if (found > 0.999 * best) break;
            best = found;
        }
        fit.choose_layouts();
        best = fit.loss();
        fmt::print("loss {:.4f}\n", best);
    }
    print_errors(before, errors_of(fit));
    print_rows(fit);
    print_toml(fit);
    return 0;
}

}  // namespace
}  // namespace moehub::fit

/// fit_training FOLDER [--hold-out K] PRESET:KEY,KEY,… …: FOLDER of the repository; without
/// constants errors alone.
int main(int argc, char** argv) {
    using namespace moehub::fit;
    try {
        const std::vector<std::string> words(argv + 1, argv + argc);
        std::vector<TrainerConstant> constants;
        int hold_out = 0;
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (words[i] == "--hold-out" && i + 1 < words.size()) {
                hold_out = std::stoi(words[++i]);
                continue;
            }
            for (const TrainerConstant& one : constants_of(words[i])) constants.push_back(one);
        }
        return run(words.empty() ? "." : words[0], constants, hold_out);
    } catch (const moehub::InputError& error) {
        fmt::print(stderr, "fit_training: {}\n", error.what());
        return 2;
    }
}
