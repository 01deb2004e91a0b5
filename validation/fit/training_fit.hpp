/// Fits constants of trainers (presets/trainers) to the published training runs that are theirs.
///
/// Minimised is the mean of |log(predicted / measured)|, cut at 0.5, over the rows, and a little
/// for every constant that leaves where it starts: rows alone do not tell a launch from a pass. One
/// constant at a time is moved by smaller and smaller factors. Layouts of empty cells are chosen
/// before, and again between rounds, because the planner's choice follows the constants.
#pragma once
#include <moehub/training_runs.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace moehub::fit {

/// Of a preset; holds for those that extend it, unless they, or a constant of theirs, say
/// otherwise.
struct TrainerConstant {
    std::string preset;
    std::string key;   ///< "hopper.launch"
    std::string unit;  ///< " us", or empty
    double start = 0;
    double least = 0;  ///< above 0
    double most = 0;
};

/// What `trainer` gets of the constants: "hopper.launch=8 us". Values stand as `constants` do.
std::vector<std::string> overrides_for(const std::string& trainer,
                                       const std::vector<TrainerConstant>& constants,
                                       const std::vector<double>& values);

struct TrainingFitRow {
    PublishedRun run;
    RunTrainer trainer;
    ParallelLayout layout;  ///< given or chosen
    bool held_out = false;  ///< does not count in the fit
    double predicted = 0;   ///< over measured
};

class TrainingFit {
  public:
    /// Rows that cannot be answered are left out. `hold_out` k: every k-th row of a source is held
    /// out; 0: none.
    TrainingFit(const std::string& path, std::vector<TrainerConstant> constants, int hold_out);

    /// Chooses layouts under the constants as they stand.
    void choose_layouts();
    /// One round of moves; returns the loss.
    double descend();

    double loss() const;  ///< of the rows that count, under the constants as they stand
    const std::vector<TrainerConstant>& constants() const { return constants_; }
    const std::vector<double>& values() const { return values_; }
    /// With predictions under the constants as they stand.
    std::vector<TrainingFitRow> rows() const;

  private:
    struct Timed {
        TrainingFitRow row;
        std::shared_ptr<TrainingClock> clock;  ///< whose communication others share
    };
    using Trainers = std::map<std::string, TrainerSpec>;
    /// Predicted over measured.
    static double ratio(const Timed& one, const Trainers& trainers);
    double loss(const std::vector<double>& values) const;
    Trainers trainers(const std::vector<double>& values) const;  ///< all that rows have

    std::vector<TrainerConstant> constants_;
    std::vector<double> values_;
    std::vector<Timed> rows_;
    RunAnswers answers_;
};

/// Three digits, as they are written.
double rounded(double value);

}  // namespace moehub::fit
