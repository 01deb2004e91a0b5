// Are published training runs read as they were meant, answered every one, and ranked?
#include "study/training_runs.hpp"

#include "answers/plan_answers.hpp"
#include "error_of.hpp"
#include "own_folder.hpp"
#include "report/answer_forms.hpp"

#include <moehub/plan.hpp>
#include <moehub/presets.hpp>
#include <moehub/validate.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace moehub::training_runs_test {
namespace {

const std::string kPublished =
    std::string(MOEHUB_SOURCE_DIR) + "/validation/published_training.csv";

/// Cells of a row by column; what is not there is empty.
using Cells = std::map<std::string, std::string>;

/// A run that is quick to time.
Cells small_run() {
    return {{"model", "mixtral-8x7b"},
            {"machine", "h100-cluster"},
            {"gpus", "16"},
            {"precision", "bf16"},
            {"global_batch", "64"},
            {"sequence", "4096"},
            {"tp", "2"},
            {"pp", "2"},
            {"cp", "1"},
            {"ep", "4"},
            {"mfu", "40"},
            {"source", "MoE ModelZoo"},
            {"sharding", "zero1"},
            {"routing", "balanced"}};
}

std::string csv_of(const std::vector<Cells>& rows) {
    std::string text = std::string(kTrainingRunColumns) + "\n";
    for (const Cells& row : rows) {
        const std::string columns = std::string(kTrainingRunColumns) + ",";
        for (std::size_t at = 0; at < columns.size();) {
            const std::size_t end = columns.find(',', at);
            const auto cell = row.find(columns.substr(at, end - at));
            if (cell != row.end()) text += cell->second;
            at = end + 1;
            text += at < columns.size() ? "," : "\n";
        }
    }
    return text;
}

PublishedRun parsed(const Cells& cells) {
    const CsvTable table = CsvTable::parse(csv_of({cells}), "runs.csv");
    return parse_training_run(table[0]);
}

Cells with(Cells cells, const Cells& changes) {
    for (const auto& [column, value] : changes) cells[column] = value;
    return cells;
}

class RunsFile : public OwnFolder {
  public:
    explicit RunsFile(const std::string& text) : path(saved("runs.csv", text)) {}
    const std::string path;
};

TEST(TrainingRuns, empty_cells_stay_open_and_given_ones_are_fixed) {
    const PublishedRun run = parsed(with(small_run(), {{"recompute", "full"}}));
    const Cells fixed{{"cp", "1"}, {"ep", "4"},           {"etp", "2"},         {"pp", "2"},
                      {"tp", "2"}, {"sharding", "zero1"}, {"recompute", "full"}};
    EXPECT_EQ(run.cells, fixed);  // etp is tp's; vpp, micro-batch, overlap, system are open
    TrainerSpec trainer = load_trainer("megatron-26.04");
    const ParallelLayout layout = completed(fixed_layout(run, trainer));
    EXPECT_EQ(layout.etp, 2);
    EXPECT_TRUE(layout.recompute.all);
    EXPECT_EQ(layout.system, "megatron-te");  // GPUs share experts
    // A trainer's own micro-batch stands for an empty cell, not for a given one.
    EXPECT_FALSE(fixed_layout(run, trainer).micro_batch);
    trainer.micro_batch = 4;
    EXPECT_EQ(fixed_layout(run, trainer).micro_batch, 4);
    const PublishedRun given = parsed(with(small_run(), {{"micro_batch", "2"}}));
    EXPECT_EQ(fixed_layout(given, trainer).micro_batch, 2);
    EXPECT_EQ(parsed(with(small_run(), {{"etp", "1"}})).cells.at("etp"), "1");
    EXPECT_DOUBLE_EQ(run.mfu, 0.4);
    EXPECT_EQ(run.tokens_per_second, 0);
}

TEST(TrainingRuns, a_batch_that_is_not_published_is_so_many_micro_batches_of_a_pipeline) {
    const TrainerSpec trainer = load_trainer("megatron-26.04");
    const Cells open = with(small_run(), {{"global_batch", ""}, {"micro_batch", "2"}});
    EXPECT_EQ(training_run(parsed(open), trainer).global_batch, kMicroBatches * 2 * 16 / 4);
    EXPECT_EQ(training_run(parsed(small_run()), trainer).global_batch, 64);
}

TEST(TrainingRuns, notes_and_routing_reach_the_run) {
    TrainerSpec trainer = load_trainer("megatron-26.04");
    trainer.imbalance = 0.25;
    EXPECT_TRUE(training_run(parsed(small_run()), trainer).mtp);
    EXPECT_FALSE(training_run(parsed(with(small_run(), {{"note", "no MTP; old"}})), trainer).mtp);
    EXPECT_EQ(to_string(training_run(parsed(small_run()), trainer).routing), "balanced");
    EXPECT_EQ(
        to_string(training_run(parsed(with(small_run(), {{"routing", ""}})), trainer).routing),
        "lognormal:0.25");
    trainer.imbalance = 0;
    EXPECT_EQ(
        to_string(training_run(parsed(with(small_run(), {{"routing", ""}})), trainer).routing),
        "balanced");
}

/// Expects each change of the small run to make `read` say something with those words, all on one
/// line.
template <class Read>
void expect_each_refused(const Read& read,
                         const std::vector<std::pair<Cells, std::string>>& changes) {
    for (const auto& [change, words] : changes) {
        const Cells cells = with(small_run(), change);
        const std::string error = error_of([&] { read(cells); });
        EXPECT_NE(error, "accepted") << change.begin()->second;
        EXPECT_NE(error.find(words), std::string::npos) << error;
    }
}

TEST(TrainingRuns, rows_that_do_not_parse_are_refused_in_one_line) {
    expect_each_refused(
        [](const Cells& cells) { parsed(cells); },
        {{{{"model", ""}}, "runs.csv:2: model"},
         {{{"gpus", "0"}}, "runs.csv:2: gpus: found \"0\""},
         {{{"gpus", "many"}}, "runs.csv:2: gpus: found \"many\""},
         {{{"tp", "0"}}, "runs.csv:2: tp: found \"0\""},
         {{{"tp", "2.5"}}, "runs.csv:2: tp: found \"2.5\""},
         {{{"sharding", "zero3"}},
          "runs.csv:2: sharding: found \"zero3\", allowed: none, zero1, zero2, fsdp"},
         {{{"overlap", "all"}},
          "runs.csv:2: overlap: found \"all\", allowed: none, 1f1b, dualpipe"},
         {{{"mfu", "-1"}}, "runs.csv:2: mfu: found \"-1\""},
         {{{"source", ""}}, "runs.csv:2: source"},
         {{{"global_batch", "0"}}, "runs.csv:2: global_batch: found \"0\""}});
    EXPECT_FALSE(parsed(with(small_run(), {{"mfu", ""}})).measured());
}

TEST(TrainingRuns, names_and_sizes_that_cannot_be_are_refused_in_one_line) {
    RunAnswers answers;
    expect_each_refused([&](const Cells& cells) { answers.answer(parsed(cells)); },
                        {{{{"model", "mixtral-8x9b"}}, "unknown model \"mixtral-8x9b\""},
                         {{{"machine", "h100-clutter"}}, "unknown machine \"h100-clutter\""},
                         {{{"precision", "fp4"}}, "precision fp4: known are bf16, fp8"},
                         {{{"tp", "3"}}, ""},
                         {{{"dispatcher", "pigeons"}}, "pigeons"},
                         {{{"recompute", "some"}}, "some"},
                         {{{"routing", "fair"}}, "fair"}});
}

TEST(TrainingRuns, the_trainer_follows_from_source_and_note) {
    const auto trainer = [](const Cells& cells) {
        return trainer_of(parsed(with(small_run(), cells)));
    };
    const std::vector<std::pair<Cells, std::string>> cases = {
        {{{"source", "Megatron-Bridge 26.04.01"}}, "megatron-26.04"},
        {{{"source", "Megatron-Bridge 26.04.01"}, {"model", "qwen3-235b-a22b"}},
         "megatron-26.04-nccl"},
        {{{"source", "arXiv 2504.14960"}, {"note", "FSDP+EP"}}, "megatron-folding"},
        {{{"source", "arXiv 2603.07685"}}, "megatron-2603"},
        {{{"source", "MoE ModelZoo"}}, "megatron-modelzoo"},
        {{{"source", "Megatron-LM discussion"}, {"note", "no MTP; baseline NCCL A2A"}},
         "megatron-gb200-eager"},
        {{{"source", "Megatron-LM discussion"}, {"note", "no MTP; +CUDA graphs"}},
         "megatron-gb200-graphs"},
        {{{"source", "Megatron-LM discussion"}, {"note", "no MTP; HybridEP"}},
         "megatron-gb200-hybrid-ep"},
        {{{"source", "DeepSeek-V3 report"}}, "hai-llm"},
        {{{"source", "Pangu Ultra MoE"}, {"note", "1.46M tok/s total"}}, "mindspeed"},
        {{{"source", "Pangu Ultra MoE"}, {"note", "0.61M tok/s total"}}, "mindspeed-base"},
    };
    for (const auto& [cells, name] : cases) {
        EXPECT_EQ(trainer(cells).name, name);
        EXPECT_TRUE(trainer(cells).known) << name;
    }
    EXPECT_EQ(trainer({{"source", "a blog"}}).name, "megatron-26.04");
    EXPECT_FALSE(trainer({{"source", "a blog"}}).known);
}

TEST(TrainingRuns, of_open_cells_the_fastest_that_fits_is_chosen) {
    RunAnswers answers;
    const TrainingStep open = answers.answer(parsed(small_run())).step;
    EXPECT_TRUE(open.fits);
    EXPECT_EQ(open.layout.tp, 2);
    EXPECT_EQ(open.layout.pp, 2);
    EXPECT_EQ(open.layout.etp, 2);
    EXPECT_EQ(open.layout.offload, Offload{});
    for (const std::string batch : {"1", "2"})
        for (const std::string recompute : {"none", "selective", "full"}) {
            const Cells fixed{{"micro_batch", batch}, {"recompute", recompute}};
            const TrainingStep one = answers.answer(parsed(with(small_run(), fixed))).step;
            EXPECT_EQ(std::to_string(one.layout.micro_batch), batch);
            if (!one.fits) continue;
            EXPECT_LE(open.seconds, one.seconds) << batch << " " << recompute;
        }
}

TEST(TrainingRuns, what_fits_nowhere_is_answered_and_says_so) {
    const Cells large =
        with(small_run(),
             {{"model", "mixtral-8x22b"}, {"gpus", "8"}, {"pp", "1"}, {"micro_batch", "1"}});
    RunAnswers answers;
    const PublishedAnswer& answer = answers.answer(parsed(large));
    EXPECT_FALSE(answer.step.fits);
    EXPECT_GT(answer.step.seconds, 0);
    const RunsFile file(csv_of({large}));
    const Validation found = validate(file.path);
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_NE(found.rows[0].shape.back().second.find("GB too large"), std::string::npos);
}

TEST(TrainingRuns, a_row_is_compared_by_the_first_quantity_that_it_gives) {
    const RunsFile file(csv_of({
        with(small_run(), {{"tokens_per_s_per_gpu", "5000"}, {"tflops_per_gpu", "400"}}),
        with(small_run(), {{"tflops_per_gpu", "400"}}),
        small_run(),
        with(small_run(), {{"mfu", ""}, {"step_s", "3"}}),
    }));
    const Validation found = validate(file.path);
    ASSERT_EQ(found.rows.size(), 4u);
    EXPECT_EQ(found.kind, "training");
    EXPECT_EQ(found.rows[0].unit, "tokens/s");
    EXPECT_EQ(found.rows[1].unit, "TFLOP/s");
    EXPECT_EQ(found.rows[2].unit, "% MFU");
    EXPECT_EQ(found.rows[3].unit, "s");
    const double tokens = 64.0 * 4096 / 16;
    EXPECT_NEAR(found.rows[0].predicted * found.rows[3].predicted / tokens, 1, 1e-9);
    EXPECT_NEAR(found.rows[1].predicted / found.rows[2].predicted, 9.894, 0.01);
    const std::map<std::string, std::string> columns(found.rows[0].shape.begin(),
                                                     found.rows[0].shape.end());
    EXPECT_EQ(columns.at("trainer"), "megatron-modelzoo");
    EXPECT_NE(columns.at("layout").find("tp=2"), std::string::npos);
}

TEST(TrainingRuns, published_and_predicted_meet_on_one_scale) {
    RunAnswers answers;
    const PublishedRun by_mfu = parsed(small_run());
    const PublishedAnswer& answer = answers.answer(by_mfu);
    EXPECT_DOUBLE_EQ(published_mfu(by_mfu, answer), 0.4);
    EXPECT_DOUBLE_EQ(predicted_mfu(by_mfu, answer), answer.step.mfu);
    // The row's own count of FLOPs holds for both sides.
    const PublishedRun both = parsed(with(
        small_run(), {{"tokens_per_s_per_gpu", "5000"}, {"tflops_per_gpu", "400"}, {"mfu", ""}}));
    EXPECT_NEAR(published_mfu(both, answer), 400 / 989.4, 1e-3);
    EXPECT_NEAR(predicted_mfu(both, answer) / published_mfu(both, answer),
                answer.step.tokens_per_second / 5000, 1e-9);
    // Seconds of a step become MFU by the trainer's count.
    const PublishedRun timed = parsed(
        with(small_run(), {{"mfu", ""}, {"step_s", fmt::format("{}", 2 * answer.step.seconds)}}));
    EXPECT_NEAR(published_mfu(timed, answer), answer.step.mfu / 2, 1e-9);
}

/// The cells that are given leave a layout, under a trainer that names the source.
TEST(TrainingRuns, every_published_row_is_possible) {
    const std::vector<PublishedRun> runs = read_published_runs(kPublished);
    EXPECT_EQ(runs.size(), 46u);
    for (const PublishedRun& row : runs) {
        const RunTrainer trainer = trainer_of(row);
        EXPECT_TRUE(trainer.known) << row.source;
        const TrainerSpec spec = load_trainer(trainer.name);
        const TrainingRun run = training_run(row, spec);
        EXPECT_EQ(why_not(run, completed(fixed_layout(row, spec))), "") << row.line;
    }
}

#ifndef MOEHUB_SANITIZED  // layers of large models take long there
/// One of each software that is quick to simulate; all of them: moehub validate.
TEST(TrainingRuns, published_rows_are_answered) {
    const CsvTable table = CsvTable::read(kPublished);
    RunAnswers answers;
    std::set<std::string> trainers;
    for (const int line : {3, 12, 39}) {
        const PublishedAnswer& answer =
            answers.answer(parse_training_run(table[static_cast<std::size_t>(line - 2)]));
        EXPECT_GT(answer.step.mfu, 0.02) << line;
        EXPECT_LT(answer.step.mfu, 1) << line;
        trainers.insert(answer.trainer.name);
    }
    EXPECT_EQ(trainers.size(), 3u);
}
#endif

RankedRun ranked(int line, double published, double predicted) {
    RankedRun one;
    one.run.line = line;
    one.published = published;
    one.predicted = predicted;
    return one;
}

TEST(RankRuns, says_correlation_and_swapped_pairs) {
    const RankGroup same =
        ranked_group({ranked(2, 0.1, 0.3), ranked(3, 0.3, 0.5), ranked(4, 0.2, 0.4)});
    EXPECT_DOUBLE_EQ(same.correlation, 1);
    EXPECT_EQ(same.pairs, 3u);
    EXPECT_TRUE(same.swapped.empty());
    EXPECT_EQ(same.runs.front().run.line, 3);  // best published first

    const RankGroup turned =
        ranked_group({ranked(2, 0.1, 0.5), ranked(3, 0.3, 0.3), ranked(4, 0.2, 0.4)});
    EXPECT_DOUBLE_EQ(turned.correlation, -1);
    ASSERT_EQ(turned.swapped.size(), 3u);
    // The largest difference comes first: 0.3 against 0.1.
    EXPECT_EQ(turned.runs[turned.swapped[0].first].run.line, 3);
    EXPECT_EQ(turned.runs[turned.swapped[0].second].run.line, 2);

    // One neighbouring pair of four the wrong way round: 1 - 6 · 2 / (4 · 15) = 0.8. Runs that were
    // published alike are no pair.
    const RankGroup near = ranked_group(
        {ranked(2, 0.4, 0.4), ranked(3, 0.3, 0.2), ranked(4, 0.2, 0.3), ranked(5, 0.1, 0.1)});
    EXPECT_NEAR(near.correlation, 0.8, 1e-12);
    EXPECT_EQ(near.swapped.size(), 1u);
    EXPECT_EQ(ranked_group({ranked(2, 0.4, 0.4), ranked(3, 0.4, 0.2), ranked(4, 0.2, 0.3)}).pairs,
              2u);
}

TEST(RankRuns, groups_by_model_and_source) {
    std::vector<Cells> rows;
    for (const std::string source : {"MoE ModelZoo", "a blog"})
        for (const std::string tp : {"1", "2", "4"})
            rows.push_back(with(small_run(), {{"tp", tp}, {"etp", "1"}, {"source", source}}));
    rows.push_back(with(small_run(), {{"source", "third"}}));
    rows.push_back(with(small_run(), {{"source", "third"}, {"model", "nothing"}}));
    const RunsFile file(csv_of(rows));
    const RunRanking ranking = rank_runs(file.path);
    ASSERT_EQ(ranking.groups.size(), 3u);  // two sources of three rows, and all
    EXPECT_EQ(ranking.groups[0].source, "MoE ModelZoo");
    EXPECT_EQ(ranking.groups[1].source, "a blog");
    EXPECT_EQ(ranking.groups[2].source, "");
    EXPECT_EQ(ranking.groups[2].runs.size(), 7u);
    ASSERT_EQ(ranking.left_out.size(), 1u);
    EXPECT_EQ(ranking.left_out[0].line, 9);
    const Answer answer = ranked_answer(ranking);
    const auto json = nlohmann::json::parse(json_text(answer));
    EXPECT_EQ(json["groups"].size(), 3u);
    EXPECT_EQ(json["groups"][0]["runs"], 3);
    EXPECT_EQ(json["groups"][2]["source"], nullptr);
    EXPECT_EQ(json["runs"].size(), 7u);  // each once, though in two groups
    EXPECT_EQ(json["left_out"][0]["line"], 9);
    EXPECT_NE(text_of(answer, {}).find("all sources"), std::string::npos);
}

TEST(RankRuns, other_files_are_refused_in_one_line) {
    const std::string error = error_of(
        [] { rank_runs(std::string(MOEHUB_SOURCE_DIR) + "/validation/h200/training_ops.csv"); });
    EXPECT_NE(error.find("allowed: training runs"), std::string::npos) << error;
}

}  // namespace
}  // namespace moehub::training_runs_test
