// Does a study say the points that were meant, and is what is wrong with it said?
#include "base/sqlite.hpp"
#include "error_of.hpp"
#include "own_folder.hpp"
#include "study/sweep/run.hpp"
#include "study/sweep/store.hpp"
#include "study/sweep/study.hpp"
#include "study/sweep/table.hpp"

#include <moehub/error.hpp>

#include <filesystem>

#include <gtest/gtest.h>

namespace moehub::sweep_test {
namespace {

using Texts = std::vector<std::string>;

std::string study_error(const std::string& text) {
    return error_of([&] { check(parse_study("systems = [\"a\"]\n" + text, "s.toml")); });
}

TEST(Sweep, a_range_ends_at_its_end_and_keeps_its_unit) {
    EXPECT_EQ(values_of({"0", "1", "0.25", ""}), (Texts{"0", "0.25", "0.5", "0.75", "1"}));
    EXPECT_EQ(values_of({"0.1", "0.35", "0.1", ""}), (Texts{"0.1", "0.2", "0.3"}));
    EXPECT_EQ(values_of({"100 ns", "1 us", "", "3"}), (Texts{"100 ns", "300 ns", "900 ns"}));
    EXPECT_EQ(values_of({"1024", "8192", "", "2"}), (Texts{"1024", "2048", "4096", "8192"}));
    EXPECT_EQ(values_of({"64 KiB", "128 KiB", "32 KiB", ""}),
              (Texts{"64 KiB", "96 KiB", "128 KiB"}));
    EXPECT_EQ(values_of({"200 GB/s", "450 GB/s", "125 GB/s", ""}),
              (Texts{"200 GB/s", "325 GB/s", "450 GB/s"}));
    EXPECT_EQ(values_of({"5", "5", "1", ""}), Texts{"5"});
}

TEST(Sweep, a_range_that_leads_nowhere_is_refused) {
    const auto error = [](const SweepRange& range) { return error_of([&] { values_of(range); }); };
    EXPECT_EQ(error({"1", "9", "0", ""}), "step: found \"0\", allowed: above 0");
    EXPECT_EQ(error({"1", "9", "", "1"}), "factor: found \"1\", allowed: above 1");
    EXPECT_EQ(error({"0", "9", "", "2"}), "from: found \"0\", allowed: above 0 with a factor");
    EXPECT_EQ(error({"9", "1", "1", ""}),
              "found from \"9\" to \"1\", allowed: from the smaller on");
    EXPECT_EQ(error({"1 ns", "9 B", "1 ns", ""}),
              "found \"9 B\" beside \"1 ns\", allowed: units of one kind");
    EXPECT_EQ(error({"0", "1", "1e-9", ""}), "more than 10000 values");
    EXPECT_EQ(error({"many", "9", "1", ""}),
              "expected a number, or one with a unit such as \"100 ns\", found \"many\"");
}

TEST(Sweep, values_on_the_command_line) {
    EXPECT_EQ(parse_axis_values("100ns, 250ns,1us"), (Texts{"100ns", "250ns", "1us"}));
    EXPECT_EQ(parse_axis_values("1..8*2"), (Texts{"1", "2", "4", "8"}));
    EXPECT_EQ(parse_axis_values("0..1+0.5"), (Texts{"0", "0.5", "1"}));
    EXPECT_EQ(parse_axis_values("zipf:1,transition:0.5;uniform"),
              (Texts{"zipf:1,transition:0.5", "uniform"}));
    EXPECT_EQ(parse_axis_values("../my.toml"), Texts{"../my.toml"});
    EXPECT_EQ(parse_axis_values("zipf:1,transition:0.5;"), Texts{"zipf:1,transition:0.5"});
}

TEST(Sweep, a_grid_is_all_combinations_and_a_zip_goes_together) {
    const Study study = parse_study(R"(
systems = ["a", "b"]
seeds = 2
[set]
tokens = 64
[grid]
link.latency = ["1 ns", "2 ns"]
[zip.size]
machine = ["small", "large"]
gpus = [8, 72]
)",
                                    "folder/my study.toml");
    check(study);
    EXPECT_EQ(study.name, "my study");
    EXPECT_EQ(keys_of(study), (Texts{"link.latency", "machine", "gpus"}));
    EXPECT_EQ(points_in(study), 2u * 2 * 2 * 2);
    std::set<std::string> all;
    for (std::size_t i = 0; i < points_in(study); ++i)
        all.insert(words_of(study, point_of(study, i)));
    EXPECT_EQ(all.size(), points_in(study));
    EXPECT_EQ(words_of(study, point_of(study, 0)),
              "link.latency=1 ns, machine=small, gpus=8, seed 1, a");
    EXPECT_EQ(words_of(study, point_of(study, 3)),
              "link.latency=1 ns, machine=small, gpus=8, seed 2, b");
    EXPECT_EQ(words_of(study, point_of(study, 15)),
              "link.latency=2 ns, machine=large, gpus=72, seed 2, b");
}

TEST(Sweep, a_definition_reads_back_as_the_same_study) {
    const Study study = parse_study(R"(
systems = ["a", "my \"b\".toml"]
seeds = [3, 5]
[set]
routing = "zipf:1,transition:0.5"
[grid]
"model" = ["x", "y | z"]
tokens = {from = 1, to = 4, factor = 2}
[zip.z]
a = [1, 2]
b = [true, false]
)",
                                    "s.toml");
    const std::string text = definition_of(study);
    const Study again = parse_study(text, "again");
    EXPECT_EQ(definition_of(again), text);
    ASSERT_EQ(points_in(again), points_in(study));
    for (std::size_t i = 0; i < points_in(study); ++i)
        EXPECT_EQ(words_of(again, point_of(again, i)), words_of(study, point_of(study, i)));
}

TEST(Sweep, what_is_wrong_with_a_file_is_said_with_its_line) {
    EXPECT_EQ(study_error("sytems = 1\n[grid]\na = 1"),
              "s.toml:2: sytems: unknown key; did you mean \"systems\"? (what is the same for all "
              "points stands in [set], what changes in [grid])");
    EXPECT_EQ(study_error("[grid]\na = []"), "s.toml:3: a: found no values, allowed: one at least");
    EXPECT_EQ(study_error("[grid]\na = [1, 1]"), "s.toml:3: a: found \"1\" twice, allowed: once");
    EXPECT_EQ(study_error("[grid]\na = [1, [2]]"),
              "s.toml:3: grid.a: expected text, a number, true or false, or a list of them, found "
              "an array");
    EXPECT_EQ(study_error("[set]\na = [1, 2]"),
              "s.toml:3: set.a: found a list or a table, allowed: one value");
    EXPECT_EQ(study_error("[set]\na = 1\n[grid]\na = [1]"), "s.toml:5: a: stands more than once");
    EXPECT_EQ(study_error("[zip.x]\na = [1, 2]\nb = [1]"),
              "s.toml:4: b: found 1 values beside 2 of a, allowed: as many, they go together");
    EXPECT_EQ(study_error("[zip]\na = [1, 2]"),
              "s.toml:3: zip.a: expected a table of lists such as [zip.size]");
    EXPECT_EQ(study_error("[grid]\na = {from = 1, to = 2}"),
              "s.toml:3: a: a range has from, to and one of step and factor");
    EXPECT_EQ(
        study_error("seeds = 0"),
        "s.toml:2: seeds: found \"0\", allowed: how many, up to 100000, or a list of different "
        "whole numbers");
    EXPECT_EQ(study_error("baseline = \"b\""),
              "s.toml: baseline: found \"b\", allowed: one of the systems a");
    EXPECT_EQ(study_error("seeds = 100000\n[grid]\na = {from = 1, to = 100, step = 1}"),
              "s.toml: more than 1000000 points");
    EXPECT_EQ(study_error("name = \"a/b\""),
              "s.toml:2: name: found \"a/b\", allowed: a name that a file can have");
}

Study three_by_two() {
    Study study = parse_study(
        "systems = [\"ideal\", \"megatron-te\"]\nseeds = 2\n[grid]\n"
        "tokens = [1, 2, 3]\n",
        "s.toml");
    study.measures = {{"time_us"}, {"packets", true}};
    return study;
}

SweepOutcome taking(double us) {
    SweepOutcome outcome;
    outcome.values = {us, 0};
    return outcome;
}

TEST(Sweep, means_and_speed_ups_over_seeds) {
    const Study study = three_by_two();
    SweepOutcomes outcomes(points_in(study));
    // tokens = 1: ideal 10 and 10, megatron-te 20 and 40.
    outcomes[0] = taking(10);
    outcomes[1] = taking(20);
    outcomes[2] = taking(10);
    outcomes[3] = taking(40);
    outcomes[5] = SweepOutcome{"too large", {}};
    const auto rows = sweep_rows(study, outcomes);
    EXPECT_EQ(rows[2].speedup, 4);
    EXPECT_EQ(rows[3].share_of_ideal, 0.25);
    EXPECT_EQ(rows[4].speedup, std::nullopt);
    const auto means = sweep_means(study, rows);
    ASSERT_EQ(means.size(), 6u);
    EXPECT_EQ(means[1].time_us, 30);
    EXPECT_NEAR(means[1].deviation, 14.142135623730951, 1e-9);
    EXPECT_NEAR(*means[0].speedup, 2.8284271247461903, 1e-9);  // mean of 2 and 4
    EXPECT_EQ(means[3].refused, "too large");
    EXPECT_EQ(means[3].runs, 0u);
    const auto axis = axis_summary(study, means, 0).values;
    ASSERT_EQ(axis.size(), 3u);
    EXPECT_NEAR(*axis[0].speedups[0], 2.8284271247461903, 1e-9);
    EXPECT_EQ(axis[2].speedups[0], std::nullopt);
}

TEST(SweepTable, means_by_axis_are_over_settings_that_all_can_run) {
    const Study study =
        parse_study("systems = [\"megatron-te\", \"b\"]\n[grid]\nx = [1, 2, 3]\ny = [1, 2]\n", "s");
    SweepOutcomes outcomes(points_in(study));
    // By x, y, system: b is 2 and 8 times as fast with x = 1, 4 times with x = 2 and one y alone.
    const double times[] = {80, 40, 80, 10, 80, 20, 80, 0, 80, 0, 80, 0};
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        outcomes[i] = times[i] > 0 ? taking(times[i]) : SweepOutcome{"too large", {}};
    const auto means = sweep_means(study, sweep_rows(study, outcomes));
    const AxisSummary x = axis_summary(study, means, 0);
    EXPECT_EQ(x.settings, 2u);
    EXPECT_EQ(x.shared, 1u);
    EXPECT_NEAR(*x.values[0].speedups[1], 2, 1e-9);  // not 4, the mean over both
    EXPECT_NEAR(*x.values[1].speedups[1], 4, 1e-9);
    EXPECT_EQ(x.values[2].speedups[1], std::nullopt);
    const AxisSummary y = axis_summary(study, means, 1);
    EXPECT_EQ(y.settings, 3u);
    EXPECT_EQ(y.shared, 1u);
    EXPECT_NEAR(*y.values[1].speedups[1], 8, 1e-9);
}

class SweepFiles : public ::testing::Test {
  protected:
    std::string file(const std::string& name) const { return folder_.file(name); }
    SweepIdentity identity(SweepShard shard = {}) const {
        return {"moehub test", definition_of(study_), "inputs", shard};
    }
    void save(const std::string& name, const std::vector<std::pair<std::size_t, double>>& points) {
        SweepStore store(file(name), study_, identity());
        for (const auto& [point, us] : points) store.save(point_of(study_, point), taking(us));
        store.close();
    }

    Study study_ = three_by_two();

  private:
    OwnFolder folder_;
};

TEST_F(SweepFiles, what_was_saved_is_read_back_exactly) {
    SweepOutcome odd = taking(0.1 + 0.2);
    odd.values.back() = 9007199254740991;  // the largest whole number that a double counts to
    {
        SweepStore store(file("a.sqlite"), study_, identity());
        store.save(point_of(study_, 7), odd);
        store.save(point_of(study_, 2), {"no, \"never\"", {}});
    }  // not closed: as when the process is killed
    const SweepStore store(file("a.sqlite"), study_, identity());
    EXPECT_EQ(store.saved(), 2u);
    EXPECT_EQ(store.outcomes()[7], odd);
    EXPECT_EQ(store.outcomes()[2]->refused, "no, \"never\"");
    EXPECT_EQ(store.outcomes()[0], std::nullopt);
}

TEST_F(SweepFiles, one_writer_at_a_time) {
    const SweepStore store(file("a.sqlite"), study_, identity());
    EXPECT_EQ(error_of([&] { SweepStore(file("a.sqlite"), study_, identity()); }),
              file("a.sqlite") + ": another moehub is writing to it");
    EXPECT_EQ(error_of([&] { merge_sweeps(file("m.sqlite"), {file("a.sqlite")}); }),
              file("a.sqlite") + ": another moehub is writing to it");
}

TEST_F(SweepFiles, merged_parts_are_the_whole) {
    save("whole.sqlite", {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
    save("a.sqlite", {{0, 1}, {2, 3}});
    save("b.sqlite", {{3, 4}, {1, 2}, {2, 3}});
    const MergedSweep merged = merge_sweeps(file("m.sqlite"), {file("a.sqlite"), file("b.sqlite")});
    EXPECT_EQ(merged.missing, points_in(study_) - 4);
    Database whole(file("whole.sqlite"), DatabaseMode::read);
    Database joined(file("m.sqlite"), DatabaseMode::read);
    EXPECT_EQ(read_outcomes(joined, study_), read_outcomes(whole, study_));
    EXPECT_EQ(error_of([&] { merge_sweeps(file("m.sqlite"), {file("a.sqlite")}); }),
              file("m.sqlite") + ": exists, allowed: a new file");
}

TEST_F(SweepFiles, parts_that_disagree_are_refused_and_nothing_is_left) {
    save("a.sqlite", {{0, 1}});
    save("b.sqlite", {{0, 2}});
    EXPECT_EQ(error_of([&] {
                  merge_sweeps(file("m.sqlite"), {file("a.sqlite"), file("b.sqlite")});
              }),
              file("b.sqlite") +
                  ": tokens=1, seed 1, ideal: differs from an earlier file's result, allowed: the "
                  "same");
    study_.axes[0].rows.pop_back();
    save("c.sqlite", {{0, 1}});
    EXPECT_EQ(error_of([&] {
                  merge_sweeps(file("m.sqlite"), {file("a.sqlite"), file("c.sqlite")});
              }),
              file("c.sqlite") + ": holds results of another study than " + file("a.sqlite") +
                  ", allowed: parts of one study");
    EXPECT_FALSE(std::filesystem::exists(file("m.sqlite")));
}

TEST(Sweep, messages_between_ranks_read_back) {
    SweepMessage message{
        SweepMessage::Kind::result, 7, "text", {"refused", {1.5, -0.25}}, {1, 2, 3}};
    const std::string bytes = to_bytes(message);
    const SweepMessage again = from_bytes(bytes);
    EXPECT_EQ(again.kind, message.kind);
    EXPECT_EQ(again.number, 7u);
    EXPECT_EQ(again.text, "text");
    EXPECT_EQ(again.outcome, message.outcome);
    EXPECT_EQ(again.points, message.points);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(from_bytes(std::string_view(bytes).substr(0, size)), std::runtime_error);
}

}  // namespace
}  // namespace moehub::sweep_test
