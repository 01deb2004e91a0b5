// Does a pipeline take the time that closed forms say, as long as its slowest stage makes it, and
// does adding rounds give what running them gives?
#include "plan/pipeline/pipeline.hpp"

#include "error_of.hpp"
#include "pipeline_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace moehub::pipeline_test {
namespace {

constexpr PieceTime kPiece{1, 2.25, 0.75, 0};

TEST(Pipeline, takes_the_time_of_plain_1f1b) {
    for (const int p : {1, 2, 3, 4, 7, 16})
        for (const std::int64_t m : {1, 2, 3, 5, 8, 16, 37, 1000}) {  // m < p too
            const PipelineResult result = run_pipeline(even_stages(p, 1, m, kPiece));
            const double work = static_cast<double>(m) * 3.25;
            EXPECT_NEAR(result.seconds, work + (p - 1) * 3.25, 1e-9 * work) << p << " " << m;
            for (const double busy : result.busy) EXPECT_NEAR(busy, work, 1e-9 * work);
        }
}

TEST(Pipeline, interleaving_divides_the_bubble) {
    for (const int p : {1, 2, 3, 4, 8, 16})
        for (const int v : {2, 3, 5})
            for (const std::int64_t groups : {1, 2, 3, 40}) {  // m = p too
                const std::int64_t m = p * groups;
                const PipelineResult result = run_pipeline(even_stages(p, v, m, kPiece));
                const double stage = 3.25 * v;  // forward and backward of all pieces
                const double expected = static_cast<double>(m) * stage + (p - 1) * stage / v;
                EXPECT_NEAR(result.seconds, expected, 1e-9 * expected) << p << " " << v << " " << m;
            }
}

/// DeepSeek's formula, exact where forward, weights and the rest of backward take equally long:
/// (p / 2 - 1) * (pair + backward - 3 * weights).
TEST(Pipeline, has_dual_pipes_bubble) {
    for (const int p : {2, 4, 8, 16})
        for (const std::int64_t m : {2 * p, 2 * p + 2, 50 * p})
            for (const double pair : {3.0, 2.5, 2.0}) {
                const PieceTime time{1, 2, 1, pair};
                const PipelineResult result = run_pipeline(even_dualpipe(p, m, time));
                const auto middle = static_cast<std::size_t>(p / 2);
                EXPECT_NEAR(result.seconds - result.busy[middle], (p / 2 - 1) * (pair + 2 - 3),
                            1e-9 * result.seconds)
                    << p << " " << m << " " << pair;
            }
}

TEST(Pipeline, of_one_stage_is_its_work) {
    const PieceTime saves{1, 2, 0, 2.5};
    EXPECT_NEAR(run_pipeline(even_stages(1, 1, 10, saves)).seconds, 1 + 9 * 2.5 + 2, 1e-12);
    PipelineInput input = even_stages(1, 3, 7, kPiece);
    input.send = 5;  // nothing is sent
    EXPECT_NEAR(run_pipeline(input).seconds, 7 * 3 * 3.25, 1e-9);
}

// A micro-batch goes round p stages and back: 2(p - 1) sends for p micro-batches under way.
TEST(Pipeline, plain_schedule_shows_its_sends) {
    PipelineInput input = even_stages(4, 1, 4000, kPiece);
    input.send = 0.25;
    const double shorter = run_pipeline(input).seconds;
    input.micro_batches += 400;
    EXPECT_NEAR(run_pipeline(input).seconds - shorter, 400 * (3.25 + 2.0 * 3 / 4 * 0.25), 1e-6);
}

TEST(Pipeline, interleaving_hides_its_sends) {
    PipelineInput input = even_stages(4, 2, 4000, kPiece);
    const double without = run_pipeline(input).seconds;
    input.send = 0.25;
    // Filling and draining alone take longer, by a few sends for each stage and piece.
    EXPECT_GT(run_pipeline(input).seconds, without);
    EXPECT_LT(run_pipeline(input).seconds, without + 20 * 0.25);
}

TEST(Pipeline, slowest_stage_sets_the_period) {
    const auto seconds_of = [](PipelineInput input, std::int64_t micro_batches) {
        input.micro_batches = micro_batches;
        return run_pipeline(input).seconds;
    };
    for (const int slow : {0, 3, 7}) {
        PipelineInput plain = even_stages(8, 1, 1, kPiece);
        plain.times[static_cast<std::size_t>(slow)] = {1.5, 3, 1, 0};
        EXPECT_NEAR(seconds_of(plain, 8000) - seconds_of(plain, 800), 7200 * 4.5, 1e-6) << slow;
        // In an interleaved pipeline that stage has a piece more, of the common length.
        PipelineInput interleaved = plain;
        interleaved.pieces = 2;
        interleaved.times.insert(interleaved.times.end(), 8, kPiece);
        EXPECT_NEAR(seconds_of(interleaved, 8000) - seconds_of(interleaved, 800),
                    7200 * (4.5 + 3.25), 1e-6);
        // Pairs: each piece saves a fifth.
        for (PieceTime& time : interleaved.times) time.pair = 0.8 * (time.forward + time.backward);
        EXPECT_NEAR(seconds_of(interleaved, 8000) - seconds_of(interleaved, 800),
                    7200 * 0.8 * (4.5 + 3.25), 1e-6);
        // DualPipe: the stage and its mirror hold both pieces, of half of the micro-batches each.
        PipelineInput dualpipe = plain;
        dualpipe.schedule = PipelineInput::Schedule::dualpipe;
        EXPECT_NEAR(seconds_of(dualpipe, 8000) - seconds_of(dualpipe, 800), 3600 * (4.5 + 3.25),
                    1e-6);
    }
}

TEST(Pipeline, added_rounds_are_the_rounds_that_would_run) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        PipelineInput input = random_pipeline(seed, Unevenness::none, 60);
        if (seed % 2 == 0) input.send *= 30;  // longer than tasks: messages set the pace
        const PipelineResult run = run_pipeline(input, true);
        const PipelineResult added = run_pipeline(input);
        EXPECT_NEAR(added.seconds, run.seconds, 1e-9 * run.seconds) << described(input, seed);
        EXPECT_EQ(added.held, run.held) << described(input, seed);
        for (std::size_t s = 0; s < run.busy.size(); ++s)
            EXPECT_NEAR(added.busy[s], run.busy[s], 1e-9 * run.seconds) << described(input, seed);
    }
}

// Stages that are nearly as slow as the slowest fall back too late for what was run; the rest is
// then an estimate: of 3000 pipelines like these two needed one and were 8e-6 off at most.
TEST(Pipeline, added_rounds_of_uneven_stages_are_nearly_so) {
    for (const Unevenness unevenness : {Unevenness::ends, Unevenness::slight, Unevenness::any})
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            const PipelineInput input = random_pipeline(seed, unevenness, 60);
            const double run = run_pipeline(input, true).seconds;
            EXPECT_NEAR(run_pipeline(input).seconds, run, 1e-4 * run) << described(input, seed);
        }
}

TEST(Pipeline, is_never_faster_with_longer_times) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        PipelineInput input = random_pipeline(seed, Unevenness::any, 30);
        const double before = run_pipeline(input).seconds;
        const auto no_faster = [&](const char* what) {
            EXPECT_GE(run_pipeline(input).seconds, before * (1 - 1e-4))
                << what << ", " << described(input, seed);
        };
        PipelineInput kept = input;
        input.send += 0.1;
        no_faster("send");
        input = kept;
        PieceTime& piece = input.times[seed % input.times.size()];
        piece.forward += 0.3;
        piece.pair += 0.3;
        no_faster("forward");
        piece.backward += 0.3;
        piece.pair += 0.3;
        no_faster("backward");
        input = kept;
        input.micro_batches += 2 * input.stages;
        no_faster("micro-batches");
    }
}

TEST(Pipeline, refuses_what_cannot_run) {
    const auto error = [](const PipelineInput& input) {
        return error_of([&input] { run_pipeline(input); });
    };
    EXPECT_EQ(
        error(even_stages(4, 2, 10, kPiece)),
        "interleaving needs a multiple of its 4 stages as micro-batches, not 10; 12 would do");
    EXPECT_EQ(error(even_dualpipe(3, 8, kPiece)), "dualpipe needs an even number of stages, not 3");
    for (const std::int64_t m : {6, 9})
        EXPECT_EQ(error(even_dualpipe(4, m, kPiece)),
                  fmt::format("dualpipe of 4 stages needs an even number of micro-batches from 8 "
                              "on, not {}",
                              m));
    PipelineInput input = even_dualpipe(4, 8, kPiece);
    input.pieces = 2;
    input.times.resize(8);
    EXPECT_EQ(error(input), "dualpipe takes 1 piece a stage, not 2");
    input = even_stages(4, 1, 0, kPiece);
    EXPECT_EQ(error(input), "a pipeline of 0 micro-batches: 1 to 1000000000 are possible");
    input = even_stages(4, 1, 8, kPiece);
    input.times.pop_back();
    EXPECT_EQ(error(input), "a pipeline of 4 stages with 1 pieces each takes 4 piece times, not 3");
    input = even_stages(4, 1, 8, {1, -2, 0, 0});
    EXPECT_EQ(error(input),
              "piece 0 of a pipeline takes 1 s forward, -2 s backward, of it 0 s for weights, 0 s "
              "as a pair: all are 0 or more, weights at most backward");
    EXPECT_NE(error(even_stages(4, 1, 8, {1, 2, 3, 0})), "accepted");
    input = even_stages(4, 1, 8, kPiece);
    input.send = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(error(input), "a pipeline's send time is nan s: 0 or more is possible");
    input = even_stages(1, 1, 8, kPiece);
    input.stages = 0;
    EXPECT_NE(error(input), "accepted");
    input.stages = input.pieces = 1 << 16;  // their product overflows
    EXPECT_NE(error(input), "accepted");
}

}  // namespace
}  // namespace moehub::pipeline_test
