#include "study/training_runs.hpp"
#include "study/validate_cases.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// What a row is compared by: the first number that it gives.
struct Quantity {
    double measured;
    const char* unit;
    double (*predicted)(const TrainingStep&);
};

Quantity quantity_of(const PublishedRun& run) {
    if (run.tokens_per_second > 0)
        return {run.tokens_per_second, "tokens/s",
                [](const TrainingStep& step) { return step.tokens_per_second; }};
    if (run.tflops > 0)
        return {run.tflops, "TFLOP/s", [](const TrainingStep& step) { return step.tflops(); }};
    if (run.mfu > 0)
        return {100 * run.mfu, "% MFU", [](const TrainingStep& step) { return 100 * step.mfu; }};
    return {run.step_seconds, "s", [](const TrainingStep& step) { return step.seconds; }};
}

/// "fits", or by how much it does not.
std::string memory_words(const TrainingStep& step) {
    if (step.fits) return "fits";
    return fmt::format("{:.1f} GB too large", (step.memory.sum() - step.capacity) / 1e9);
}

Prediction predict_run(const PublishedRun& run, const PredictContext& context) {
    try {
        const PublishedAnswer& answer = context.training->answer(run);
        const std::string trainer =
            answer.trainer.name + (answer.trainer.known ? "" : " (source unknown)");
        return {quantity_of(run).predicted(answer.step),
                {},
                {},
                {{"trainer", trainer},
                 {"layout", to_text(answer.step.layout)},
                 {"memory", memory_words(answer.step)}}};
    } catch (const InputError& error) {
        return skip(error.what(), fmt::format("{}: {}", run.source, run.model));
    }
}

}  // namespace

Cases training_run_cases(const CsvRow& row) {
    const PublishedRun run = parse_training_run(row);
    const Quantity quantity = quantity_of(run);
    return {{row.line(),
             {run.source,
              shape_of(row, {"model", "machine", "gpus", "precision", "global_batch", "sequence"}),
              quantity.measured, quantity.unit},
             [run](const PredictContext& context) { return predict_run(run, context); }}};
}

}  // namespace moehub
