/// Published training runs: rows of validation/published_training.csv, and what the planner
/// answers.
///
/// A row gives a model, a machine, what is known of the parallel layout and what was measured. An
/// empty cell is the planner's choice: of the layouts that agree with the cells that are given, the
/// fastest that fits. How other cells are read:
///   - `etp` empty: the same as tp.
///   - `global_batch` empty: kMicroBatches of a pipeline.
///   - `micro_batch`, `recompute` empty: the trainer's, where it names one.
///   - `routing` empty: experts' shares differ as the trainer's `imbalance` says.
///   - `dispatcher` empty: the trainer's. Where GPUs share experts (etp above 1), rows move as
///     Megatron's own all-to-all does (megatron-te): other dispatchers know whole experts alone.
///   - `overlap` empty: what the trainer runs (its `overlaps`).
///   - "no MTP" in the note: multi-token prediction does not run.
///   - nothing waits in the host's memory, unless nothing fits without.
/// The trainer follows from source, model, machine, precision and note (trainer_of).
#pragma once
#include <moehub/presets.hpp>
#include <moehub/training.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Sequences that one pipeline takes in a step where a row does not give the global batch: the
/// order of what is usual at thousands of GPUs (DeepSeek-V3: 15,360 sequences over 128 pipelines).
constexpr std::int64_t kMicroBatches = 64;

/// A row. Names stay text: those that moehub does not know are refused when the run is made.
struct PublishedRun {
    int line = 0;  ///< line in the file, from 1
    std::string model;
    std::string machine;
    int gpus = 0;
    std::string precision;          ///< format of the run: bf16, fp8
    std::int64_t global_batch = 0;  ///< sequences of a step; 0: not published
    std::int64_t sequence = 0;      ///< tokens of a sequence; 0: the model's
    /// Cells of the parallel layout that are given, by the keys of parse_parallel_layout.
    std::map<std::string, std::string> cells;
    std::optional<RoutingSpec> routing;
    std::string source;
    std::string note;

    // Measured; 0: not published.
    double tokens_per_second = 0;  ///< rate of a GPU
    double tflops = 0;             ///< TFLOP/s of a GPU
    double mfu = 0;                ///< share of the peak, a fraction
    double step_seconds = 0;

    bool measured() const { return tokens_per_second + tflops + mfu + step_seconds > 0; }
};

/// Reads all rows with something measured. Throws InputError "file:line: …".
std::vector<PublishedRun> read_published_runs(const std::string& path);

struct RunTrainer {
    std::string name;    ///< name of a preset
    bool known = false;  ///< false: no trainer names the source, and the newest is taken
};

/// The trainer of a run: of the presets whose `sources` have a part in its source (the longest),
/// whose `notes` a part is in "MODEL MACHINE PRECISION NOTE" (the longest), or the one without
/// notes.
RunTrainer trainer_of(const PublishedRun& run);

/// The run of a row; `machine` changes the machine that the row names. Throws InputError: unknown
/// names, precision that is not known, impossible sizes.
TrainingRun training_run(const PublishedRun& run, const TrainerSpec& trainer,
                         const Overrides& machine = {});

/// The cells that are given, and what the trainer does where they are not. Throws InputError as
/// parse_partial_layout does.
PartialLayout fixed_layout(const PublishedRun& run, const TrainerSpec& trainer);

struct PublishedAnswer {
    RunTrainer trainer;
    TrainingStep step;  ///< under the layout that was given, or chosen where cells are empty
};

/// Answers rows. Equal rows are answered once; rows of the same model, machine, size and routing
/// share what is simulated.
class RunAnswers {
  public:
    RunAnswers() = default;
    explicit RunAnswers(Overrides machine) : machine_(std::move(machine)) {}

    /// The answer to a row. Throws InputError when the row is impossible.
    const PublishedAnswer& answer(const PublishedRun& run);
    /// The answer under a trainer that may differ from its preset.
    const PublishedAnswer& answer(const PublishedRun& run, const RunTrainer& named,
                                  const TrainerSpec& trainer);
    /// A clock of the row's run. Throws InputError when the row is impossible.
    TrainingClock clock(const PublishedRun& run, const TrainerSpec& trainer);

  private:
    Overrides machine_;
    std::map<std::string, PublishedAnswer> known_;
    std::map<std::string, std::shared_ptr<TrainingClock>> clocks_;
};

/// What was measured, on one scale: the share of the card's bf16 peak. Tokens per second become
/// FLOPs by the row's own count, where it gives both, or by the trainer's.
double published_mfu(const PublishedRun& run, const PublishedAnswer& answer);
/// The predicted share of the card's bf16 peak.
double predicted_mfu(const PublishedRun& run, const PublishedAnswer& answer);

}  // namespace moehub
