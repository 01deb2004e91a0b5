#include "training_fit.hpp"

#include "base/portable_math.hpp"
#include "model/records.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

constexpr double kWorst = 0.5;   ///< of |log error|: one row that is far off does not decide
constexpr double kPull = 0.002;  ///< for a factor of e from where a constant starts
constexpr std::array<double, 5> kFactors = {2, 1.4, 1.15, 1.05, 1.02};

bool sets(const Document& document, const std::string& key) {
    return std::any_of(document.entries.begin(), document.entries.end(),
                       [&](const Entry& entry) { return entry.key == key; });
}

/// Which of the constants with this key holds at the end of the chain: the one whose preset is
/// nearest to it, when nothing nearer sets the key.
std::optional<std::size_t> holding(const std::vector<Document>& chain, const std::string& key,
                                   const std::vector<TrainerConstant>& constants) {
    for (auto document = chain.rbegin(); document != chain.rend(); ++document) {
        for (std::size_t i = 0; i < constants.size(); ++i)
            if (constants[i].key == key && constants[i].preset == document->name) return i;
        if (sets(*document, key)) return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

double rounded(double value) {
    return std::stod(fmt::format("{:.3g}", value));
}

std::vector<std::string> overrides_for(const std::string& trainer,
                                       const std::vector<TrainerConstant>& constants,
                                       const std::vector<double>& values) {
    const std::vector<Document> chain = load_chain("trainers", trainer);
    std::map<std::string, std::string> found;
    for (const TrainerConstant& one : constants)
        if (const auto held = holding(chain, one.key, constants))
            found[one.key] = fmt::format("{}={:.3g}{}", one.key, values[*held], one.unit);
    std::vector<std::string> overrides;
    for (const auto& [key, text] : found) overrides.push_back(text);
    return overrides;
}

TrainingFit::TrainingFit(const std::string& path, std::vector<TrainerConstant> constants,
                         int hold_out)
    : constants_(std::move(constants)) {
    for (const TrainerConstant& one : constants_) values_.push_back(rounded(one.start));
    std::map<std::string, int> seen;  // rows of each source
    for (const PublishedRun& run : read_published_runs(path)) {
        Timed timed{{run, trainer_of(run), {}, false, 0}, nullptr};
        timed.row.held_out = hold_out > 0 && seen[run.source]++ % hold_out == hold_out - 1;
        rows_.push_back(std::move(timed));
    }
    choose_layouts();
}

TrainingFit::Trainers TrainingFit::trainers(const std::vector<double>& values) const {
    Trainers found;
    for (const Timed& one : rows_) {
        const std::string& name = one.row.trainer.name;
        if (!found.contains(name))
            found[name] = load_trainer(name, overrides_for(name, constants_, values));
    }
    return found;
}

void TrainingFit::choose_layouts() {
    const Trainers all = trainers(values_);
    std::erase_if(rows_, [&](Timed& one) {
        const TrainerSpec& spec = all.at(one.row.trainer.name);
        try {
            one.row.layout = answers_.answer(one.row.run, one.row.trainer, spec).step.layout;
            one.clock = std::make_shared<TrainingClock>(answers_.clock(one.row.run, spec));
        } catch (const InputError& error) {
            fmt::print(stderr, "line {} is left out: {}\n", one.row.run.line, error.what());
            return true;
        }
        return false;
    });
}

double TrainingFit::ratio(const Timed& one, const Trainers& trainers) {
    TrainingClock clock(*one.clock, trainers.at(one.row.trainer.name));
    const PublishedAnswer answer{one.row.trainer, clock.step(one.row.layout)};
    return predicted_mfu(one.row.run, answer) / published_mfu(one.row.run, answer);
}

double TrainingFit::loss(const std::vector<double>& values) const {
    const Trainers all = trainers(values);
    double sum = 0;
    double count = 0;
    for (const Timed& one : rows_) {
        if (one.row.held_out) continue;
        sum += std::min(kWorst, std::abs(portable_log(ratio(one, all))));
        ++count;
    }
    double pull = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        pull += kPull * std::abs(portable_log(values[i] / constants_[i].start));
    return (count > 0 ? sum / count : 0) + pull;
}

double TrainingFit::loss() const {
    return loss(values_);
}

double TrainingFit::descend() {
    double best = loss(values_);
    for (const double factor : kFactors)
        for (std::size_t i = 0; i < values_.size(); ++i)
            for (const double move : {factor, 1 / factor}) {
                std::vector<double> moved = values_;
                moved[i] =
                    rounded(std::clamp(moved[i] * move, constants_[i].least, constants_[i].most));
                if (moved == values_) continue;
                const double found = loss(moved);
                if (found >= best) continue;
                best = found;
                values_ = moved;
            }
    return best;
}

std::vector<TrainingFitRow> TrainingFit::rows() const {
    const Trainers all = trainers(values_);
    std::vector<TrainingFitRow> found;
    for (const Timed& one : rows_) {
        found.push_back(one.row);
        found.back().predicted = ratio(one, all);
    }
    return found;
}

}  // namespace moehub::fit
