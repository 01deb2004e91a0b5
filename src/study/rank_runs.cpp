#include "study/training_runs.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/error.hpp>
#include <moehub/plan.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Different keys, in order of first appearance.
template <class Key>
std::vector<std::string> distinct(const std::vector<RankedRun>& runs, const Key& key) {
    std::vector<std::string> names;
    for (const RankedRun& one : runs)
        if (std::find(names.begin(), names.end(), key(one)) == names.end())
            names.push_back(key(one));
    return names;
}

std::vector<RankedRun> of_model(const std::vector<RankedRun>& runs, const std::string& model) {
    std::vector<RankedRun> found;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(found),
                 [&](const RankedRun& one) { return one.run.model == model; });
    return found;
}

void add_group(RunRanking& ranking, std::vector<RankedRun> runs, const std::string& source) {
    if (!source.empty())
        std::erase_if(runs, [&](const RankedRun& one) { return one.run.source != source; });
    if (runs.size() < kFewestRanked) return;
    ranking.groups.push_back(ranked_group(std::move(runs)));
    ranking.groups.back().source = source;
}

/// Adds a group for each source of a model, then one for all where they are several.
void add_model(RunRanking& ranking, const std::vector<RankedRun>& runs) {
    const auto sources = distinct(runs, [](const RankedRun& one) { return one.run.source; });
    for (const std::string& source : sources) add_group(ranking, runs, source);
    if (sources.size() > 1) add_group(ranking, runs, "");
}

void find_swapped(RankGroup& group) {
    const auto& runs = group.runs;
    for (std::size_t better = 0; better < runs.size(); ++better)
        for (std::size_t worse = better + 1; worse < runs.size(); ++worse) {
            if (runs[better].published == runs[worse].published) continue;
            ++group.pairs;
            if (runs[better].predicted < runs[worse].predicted)
                group.swapped.emplace_back(better, worse);
        }
    std::stable_sort(group.swapped.begin(), group.swapped.end(), [&](auto one, auto other) {
        const auto apart = [&](auto pair) {
            return runs[pair.first].published / runs[pair.second].published;
        };
        return apart(one) > apart(other);
    });
}

}  // namespace

RankGroup ranked_group(std::vector<RankedRun> runs) {
    RankGroup group;
    group.runs = std::move(runs);
    if (!group.runs.empty()) group.model = group.runs.front().run.model;
    std::stable_sort(group.runs.begin(), group.runs.end(), [](const auto& one, const auto& other) {
        return one.published > other.published;
    });
    std::vector<double> published, predicted;
    for (const RankedRun& one : group.runs) {
        published.push_back(one.published);
        predicted.push_back(one.predicted);
    }
    group.correlation = rank_correlation(published, predicted);
    find_swapped(group);
    return group;
}

RunRanking rank_runs(const std::string& path,
                     const std::function<void(std::size_t, std::size_t)>& progress) {
    const std::vector<PublishedRun> rows = read_published_runs(path);
    RunAnswers answers;
    RunRanking ranking;
    std::vector<RankedRun> runs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        try {
            const PublishedAnswer& answer = answers.answer(rows[i]);
            runs.push_back({rows[i], to_text(answer.step.layout), published_mfu(rows[i], answer),
                            predicted_mfu(rows[i], answer), answer.step.fits});
        } catch (const InputError& error) {
            ranking.left_out.push_back({rows[i].line, error.what()});
        }
        if (progress) progress(i + 1, rows.size());
    }
    for (const std::string& model : distinct(runs, [](const auto& one) { return one.run.model; }))
        add_model(ranking, of_model(runs, model));
    return ranking;
}

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

/// A step's memory in words: "fits", or by how much it does not.
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
    Shape shape;
    for (const char* column : {"model", "machine", "gpus", "precision", "global_batch", "sequence"})
        shape.emplace_back(column, row.field(column));
    return {{{run.source, shape, quantity.measured, quantity.unit},
             [run](const PredictContext& context) { return predict_run(run, context); }}};
}

}  // namespace moehub
