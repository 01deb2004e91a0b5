#include "study/validate_training_runs.hpp"

#include "study/training_runs.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

/// What a row is compared by.
enum class Quantity { tokens, tflops, mfu, seconds };

Quantity quantity_of(const PublishedRun& run) {
    if (run.tokens_per_second > 0) return Quantity::tokens;
    if (run.tflops > 0) return Quantity::tflops;
    return run.mfu > 0 ? Quantity::mfu : Quantity::seconds;
}

double predicted(const TrainingStep& step, Quantity quantity) {
    switch (quantity) {
        case Quantity::tokens:
            return step.tokens_per_second;
        case Quantity::tflops:
            return step.tflops();
        case Quantity::mfu:
            return 100 * step.mfu;
        case Quantity::seconds:
            break;
    }
    return step.seconds;
}

/// "fits", or by how much it does not.
std::string memory_words(const TrainingStep& step) {
    if (step.fits) return "fits";
    return fmt::format("{:.1f} GB too large", (step.memory.sum() - step.capacity) / 1e9);
}

}  // namespace

std::vector<TrainingRunCase> parse_training_case(const CsvRow& row) {
    TrainingRunCase parsed{{}, parse_training_run(row)};
    const PublishedRun& run = parsed.run;
    Measurement& measurement = parsed.measurement;
    measurement.name = run.source;
    measurement.shape =
        shape_of(row, {"model", "machine", "gpus", "precision", "global_batch", "sequence"});
    switch (quantity_of(run)) {
        case Quantity::tokens:
            measurement.value = run.tokens_per_second;
            measurement.unit = "tokens/s";
            break;
        case Quantity::tflops:
            measurement.value = run.tflops;
            measurement.unit = "TFLOP/s";
            break;
        case Quantity::mfu:
            measurement.value = 100 * run.mfu;
            measurement.unit = "% MFU";
            break;
        case Quantity::seconds:
            measurement.value = run.step_seconds;
            measurement.unit = "s";
            break;
    }
    return {parsed};
}

Prediction predict_training_run(const TrainingRunCase& what, const PredictContext& context) {
    try {
        const PublishedAnswer& answer = context.training->answer(what.run);
        const std::string trainer =
            answer.trainer.name + (answer.trainer.known ? "" : " (source unknown)");
        return {predicted(answer.step, quantity_of(what.run)),
                {},
                {},
                {{"trainer", trainer},
                 {"layout", to_text(answer.step.layout)},
                 {"memory", memory_words(answer.step)}}};
    } catch (const InputError& error) {
        return {std::nullopt, error.what(), fmt::format("{}: {}", what.run.source, what.run.model)};
    }
}

}  // namespace moehub
