// Are a pipeline's tasks those of the published schedules, in an order that can run, and does the
// picture show them?
#include "base/utf8.hpp"
#include "error_of.hpp"
#include "pipeline_cases.hpp"
#include "plan/pipeline/pipeline.hpp"

#include <map>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>

namespace moehub::pipeline_order_test {
namespace {

using Key = std::tuple<int, int, std::int64_t>;  ///< stage, piece, micro-batch

/// "F0.1" is micro-batch 0 forward in the stage's piece 1; of a pair the backward follows "&".
std::string order_of(const PipelineResult& result, int stage) {
    std::string text;
    for (const PipelineTask& task : result.tasks) {
        if (task.stage != stage) continue;
        if (!text.empty()) text += ' ';
        const char* kind = is_backward(task.work)           ? "B"
                           : task.work == TaskWork::weights ? "W"
                                                            : "F";
        text += fmt::format("{}{}.{}", kind, task.micro_batch, task.piece);
        if (task.work == TaskWork::pair)
            text += fmt::format("&B{}.{}", task.other, task.other_piece);
    }
    return text;
}

constexpr PieceTime kPiece{1, 2, 0.5, 0};
constexpr PieceTime kOverlapped{1, 2, 0.5, 2.5};

TEST(PipelineOrder, is_plain_1f1b) {
    const PipelineResult result = run_pipeline(even_stages(3, 1, 4, kPiece), true);
    EXPECT_EQ(order_of(result, 0), "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0");
    EXPECT_EQ(order_of(result, 2), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
}

// Warm-up of 2(p - s - 1) + (v - 1)p: 4 and 2 forwards; one more in pairs.
TEST(PipelineOrder, is_megatrons_interleaved) {
    const PipelineResult result = run_pipeline(even_stages(2, 2, 4, kPiece), true);
    EXPECT_EQ(order_of(result, 0),
              "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
    EXPECT_EQ(order_of(result, 1),
              "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
    const PipelineResult pairs = run_pipeline(even_stages(2, 2, 4, kOverlapped), true);
    EXPECT_EQ(order_of(pairs, 1),
              "F0.0 F1.0 F0.1 F1.1&B0.1 F2.0&B1.1 F3.0&B0.0 F2.1&B1.0 F3.1&B2.1 B3.1 B2.0 B3.0");
}

// DeepSeek's steps with 4 stages and 4 micro-batches from each end: 0 to 3 and 4 to 7.
TEST(PipelineOrder, is_dual_pipes) {
    const PipelineResult result = run_pipeline(even_dualpipe(4, 8, kOverlapped), true);
    EXPECT_EQ(order_of(result, 0),
              "F0.0 F1.0 F2.0 F4.1 B4.1 W4.1 F5.1 F3.0&B5.1 F6.1&B0.0 B6.1 F7.1&B1.0 B7.1 B2.0 "
              "W2.0 B3.0 W3.0");
    EXPECT_EQ(order_of(result, 1),
              "F0.0 F4.1 F1.0 F5.1 F2.0 B4.1 F6.1&B0.0 F3.0&B5.1 F7.1&B1.0 B6.1 B2.0 B7.1 B3.0 "
              "W7.1 W3.0");
    EXPECT_EQ(order_of(result, 3),
              "F4.1 F5.1 F6.1 F0.0 B0.0 W0.0 F1.0 F7.1&B1.0 F2.0&B4.1 B2.0 F3.0&B5.1 B3.0 B6.1 "
              "W6.1 B7.1 W7.1");
}

TEST(PipelineOrder, holds_what_its_warm_up_leaves) {
    const auto held = [](const PipelineInput& input) { return run_pipeline(input).held; };
    using Counts = std::vector<std::int64_t>;
    EXPECT_EQ(held(even_stages(4, 1, 100, kPiece)), (Counts{4, 3, 2, 1}));
    EXPECT_EQ(held(even_stages(4, 1, 2, kPiece)), (Counts{2, 2, 2, 1}));
    EXPECT_EQ(held(even_stages(4, 2, 100, kPiece)), (Counts{11, 9, 7, 5}));
    EXPECT_EQ(held(even_stages(4, 2, 4, kPiece)), (Counts{8, 8, 7, 5}));
    EXPECT_EQ(held(even_stages(4, 2, 100, kOverlapped)), (Counts{12, 10, 8, 6}));
    EXPECT_EQ(held(even_dualpipe(4, 100, kOverlapped)), (Counts{5, 5, 5, 5}));
}

/// Ends of forwards and backwards; a task that is there twice is a failure.
struct Ends {
    std::map<Key, double> forward;
    std::map<Key, double> backward;
    std::map<Key, double> weights;
};

Ends ends_of(const PipelineResult& result) {
    Ends ends;
    const auto put = [](std::map<Key, double>& where, const Key& key, double end) {
        EXPECT_TRUE(where.emplace(key, end).second) << "twice";
    };
    for (const PipelineTask& task : result.tasks) {
        const Key one{task.stage, task.piece, task.micro_batch};
        const Key other{task.stage, task.other_piece, task.other};
        if (task.work == TaskWork::forward || task.work == TaskWork::pair)
            put(ends.forward, one, task.end);
        if (is_backward(task.work) || task.work == TaskWork::pair)
            put(ends.backward, other, task.end);
        if (task.work == TaskWork::weights) put(ends.weights, one, task.end);
    }
    return ends;
}

/// The pieces before and after one in the model, as (stage, piece in the stage).
struct Way {
    explicit Way(const PipelineInput& given) : input(given) {}
    const PipelineInput& input;

    /// `by` -1 or 1; false: there is none.
    bool next(int& stage, int& piece, int by) const {
        if (input.schedule == PipelineInput::Schedule::dualpipe) {
            stage += piece == 0 ? by : -by;
            return stage >= 0 && stage < input.stages;
        }
        const int model = piece * input.stages + stage + by;
        if (model < 0 || model >= input.stages * input.pieces) return false;
        stage = model % input.stages;
        piece = model / input.stages;
        return true;
    }
};

/// When all that a task needs is there.
double inputs_there(const PipelineInput& input, const PipelineTask& task, const Ends& ends) {
    const Way way(input);
    double there = 0;
    const auto needs = [&](const std::map<Key, double>& made, const Key& key) {
        const double sent = std::get<0>(key) == task.stage ? 0 : input.send;
        there = std::max(there, made.at(key) + sent);
    };
    int stage = task.stage;
    int piece = task.piece;
    if (task.work == TaskWork::forward || task.work == TaskWork::pair)
        if (way.next(stage, piece, -1)) needs(ends.forward, {stage, piece, task.micro_batch});
    stage = task.stage;
    piece = task.other_piece;
    if (is_backward(task.work) || task.work == TaskWork::pair) {
        needs(ends.forward, {stage, piece, task.other});
        if (way.next(stage, piece, 1)) needs(ends.backward, {stage, piece, task.other});
    }
    if (task.work == TaskWork::weights) needs(ends.backward, {stage, piece, task.micro_batch});
    return there;
}

/// Forwards begun less backwards ended, counted from the tasks.
std::vector<std::int64_t> held_by(const PipelineResult& result, const Ends& ends) {
    std::vector<std::int64_t> most(result.held.size());
    std::vector<std::int64_t> now(most.size());
    for (const PipelineTask& task : result.tasks) {
        const auto s = static_cast<std::size_t>(task.stage);
        if (task.work == TaskWork::forward || task.work == TaskWork::pair)
            most[s] = std::max(most[s], ++now[s]);
        const bool waits = is_backward(task.work) &&
                           ends.weights.contains({task.stage, task.other_piece, task.other});
        if (task.work != TaskWork::forward && !waits) --now[s];
    }
    return most;
}

TEST(PipelineOrder, runs_each_task_once_after_what_it_needs) {
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
        const PipelineInput input = random_pipeline(seed, Unevenness::any, 5);
        SCOPED_TRACE(described(input, seed));
        const PipelineResult result = run_pipeline(input, true);
        const Ends ends = ends_of(result);
        const bool dualpipe = input.schedule == PipelineInput::Schedule::dualpipe;
        const auto passes =
            static_cast<std::size_t>(input.micro_batches * input.stages * input.pieces);
        EXPECT_EQ(ends.forward.size(), passes);
        EXPECT_EQ(ends.backward.size(), passes);
        EXPECT_EQ(ends.weights.empty(), !dualpipe);
        std::vector<double> free(result.busy.size());
        std::vector<double> busy(result.busy.size());
        double last = 0;
        for (const PipelineTask& task : result.tasks) {
            const auto s = static_cast<std::size_t>(task.stage);
            // As soon as it can, and no sooner.
            EXPECT_EQ(task.begin, std::max(free[s], inputs_there(input, task, ends)));
            EXPECT_GE(task.end, task.begin);
            free[s] = task.end;
            busy[s] += task.end - task.begin;
            last = std::max(last, task.end);
        }
        EXPECT_EQ(result.seconds, last);
        EXPECT_EQ(result.held, held_by(result, ends));
        for (std::size_t s = 0; s < busy.size(); ++s)
            EXPECT_NEAR(busy[s], result.busy[s], 1e-9 * last);
        if (HasFailure()) break;
    }
}

TEST(PipelineOrder, picture_shows_tasks) {
    EXPECT_EQ(
        draw_pipeline(run_pipeline(even_stages(4, 1, 8, kPiece), true), 100),
        "stage 0  0░1░2░3░············a▓▓▓4░b▓▓▓5░c▓▓▓6░d▓▓▓7░e▓▓▓··f▓▓▓··g▓▓▓··h▓▓▓  72.7 %\n"
        "stage 1  ··0░1░2░········a▓▓▓3░b▓▓▓4░c▓▓▓5░d▓▓▓6░e▓▓▓7░f▓▓▓··g▓▓▓··h▓▓▓····  72.7 %\n"
        "stage 2  ····0░1░····a▓▓▓2░b▓▓▓3░c▓▓▓4░d▓▓▓5░e▓▓▓6░f▓▓▓7░g▓▓▓··h▓▓▓········  72.7 %\n"
        "stage 3  ······0░a▓▓▓1░b▓▓▓2░c▓▓▓3░d▓▓▓4░e▓▓▓5░f▓▓▓6░g▓▓▓7░h▓▓▓············  72.7 %\n"
        "0-9 ░ forward, a-j ▓ backward, · waits; % busy\n");
    EXPECT_NE(draw_pipeline(run_pipeline(even_dualpipe(2, 4, kOverlapped), true), 100)
                  .find("0a ▒ both, w ▓ weights"),
              std::string::npos);
    // Too many for their numbers: shades alone.
    const std::string many = draw_pipeline(run_pipeline(even_stages(2, 1, 60, kPiece), true), 72);
    EXPECT_NE(many.find("\n░ forward, ▓ backward, · waits"), std::string::npos) << many;
    EXPECT_NE(many.find("stage 0  ░"), std::string::npos) << many;
}

TEST(PipelineOrder, picture_keeps_its_width) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const PipelineInput input = random_pipeline(seed, Unevenness::any, 9);
        const PipelineResult result = run_pipeline(input, true);
        for (const int width : {72, 100, 181}) {
            std::istringstream text(draw_pipeline(result, width));
            std::string line;
            int lines = 0;
            for (; std::getline(text, line); ++lines)
                EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
            EXPECT_EQ(lines, input.stages + 1);
        }
    }
    const PipelineResult without = run_pipeline(even_stages(2, 1, 2, kPiece));
    EXPECT_EQ(error_of([&] { draw_pipeline(without, 100); }),
              "a pipeline without tasks kept cannot be drawn");
    const PipelineResult with = run_pipeline(even_stages(2, 1, 2, kPiece), true);
    EXPECT_EQ(error_of([&] { draw_pipeline(with, 71); }),
              "a pipeline is drawn in 72 columns or more, not 71");
}

}  // namespace
}  // namespace moehub::pipeline_order_test
