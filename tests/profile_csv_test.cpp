// Is what the user writes of a profile understood, are CSV counts read, do parts and profiles fit
// together?
#include "error_of.hpp"
#include "recorded_files.hpp"

namespace moehub::profile_csv_test {
namespace {

using ProfileCsv = RecordedFiles;

std::string source_error(const std::string& text) {
    return error_of([&] { parse_profile_source(text); });
}

TEST(ProfileSource, has_a_file_a_part_and_a_weight) {
    const auto plain = parse_profile_source("a/law.npy");
    EXPECT_EQ(plain.path, "a/law.npy");
    EXPECT_EQ(plain.from, 0);
    EXPECT_EQ(plain.to, 1);
    EXPECT_EQ(plain.weight, 1);
    const auto full = parse_profile_source("law.npy:0.25-.5@2e1");
    EXPECT_EQ(full.path, "law.npy");
    EXPECT_EQ(full.from, 0.25);
    EXPECT_EQ(full.to, 0.5);
    EXPECT_EQ(full.weight, 20);
    EXPECT_EQ(full.text, "law.npy:0.25-.5@2e1");
    EXPECT_EQ(parse_profile_source("law.npy@2").weight, 2);
    EXPECT_EQ(parse_profile_source("statistics:0-0.5").path, "statistics");
}

TEST(ProfileSource, marks_may_stand_in_a_path) {
    EXPECT_EQ(parse_profile_source("run@2/a:b.npy").path, "run@2/a:b.npy");
    EXPECT_EQ(parse_profile_source("http:x@y.npy:0-1@3").path, "http:x@y.npy");
}

TEST(ProfileSource, refuses_other_parts_and_weights) {
    const std::string part = ", allowed: FROM-TO, 0 to 1, FROM below TO (e.g. 0-0.5)";
    for (const std::string bad :
         {"", "0", "0.5-0.5", "0.6-0.5", "-0.1-0.5", "0-1.5", "a-b", "0-1-", "0-nan", "0-1%"})
        EXPECT_EQ(source_error("a.npy:" + bad),
                  "profile \"a.npy:" + bad + "\": part: found \"" + bad + "\"" + part);
    for (const std::string bad : {"", "0", "-1", "x", "inf", "1e10", "2x"})
        EXPECT_EQ(source_error("a.npy@" + bad), "profile \"a.npy@" + bad + "\": weight: found \"" +
                                                    bad +
                                                    "\", allowed: a number above 0, at most 1e9");
    EXPECT_EQ(source_error(""), "profile \"\": file: found \"\", allowed: FILE[:from-to][@weight]");
}

TEST_F(ProfileCsv, reads_a_row_per_layer) {
    const auto profile = read("a.csv", "1,2.5,3\n\n4,5, 6 \r\n");
    EXPECT_EQ(profile.layers, 2);
    EXPECT_EQ(profile.experts, 3);
    EXPECT_EQ(profile.counts, (Counts{1, 2.5, 3, 4, 5, 6}));
    EXPECT_EQ(profile.layer_numbers, (Numbers{0, 1}));
    EXPECT_EQ(read("a.csv", "e0,e1\n\"1\",2\n").counts, (Counts{1, 2}));
    EXPECT_EQ(read("a.csv",
                   "\xEF\xBB\xBF"
                   "1,2")
                  .counts,
              (Counts{1, 2}));
}

TEST_F(ProfileCsv, a_first_column_may_number_the_layers) {
    const auto profile = read("a.csv", "layer,0,1\n3,7,8\n5,9,1\n");
    EXPECT_EQ(profile.experts, 2);
    EXPECT_EQ(profile.counts, (Counts{7, 8, 9, 1}));
    EXPECT_EQ(profile.layer_numbers, (Numbers{3, 5}));
    EXPECT_EQ(profile.model_layers, 6);
    EXPECT_EQ(read("a.csv", ",0,1\n0,7,8\n").experts, 2);  // as pandas writes
    EXPECT_EQ(error("a.csv", "layer,0\n3,7\n3,8\n"),
              "a.csv:3: layer: found \"3\", allowed: a whole number, ascending, 4 to 65534");
}

TEST_F(ProfileCsv, refuses_what_is_no_table_of_counts) {
    expect_errors([&](auto& text) { return error("a.csv", text + "\n"); }, R"(
1,2
3
    a.csv:2: found 1 fields, the first row has 2
1,2
x,3
    a.csv:2: column 1: found "x", allowed: a count, 0 to 2^53
1,x2
    a.csv:1: column 2: found "x2", allowed: a count, 0 to 2^53
1,-2
    a.csv:1: column 2: found "-2", allowed: a count, 0 to 2^53
1,nan
    a.csv:1: column 2: found "nan", allowed: a count, 0 to 2^53
1,1e300
    a.csv:1: column 2: found "1e300", allowed: a count, 0 to 2^53
a,b
    a.csv: found no row of counts, allowed: a row per layer, a column per expert
layer
1
    a.csv:2: found 0 columns of experts, allowed: 1 to 65534
)");
    EXPECT_EQ(error("a.csv", ""),
              "a.csv: found no row of counts, allowed: a row per layer, a column per expert");
}

/// Five tokens of one layer, top-1.
Profile five_tokens() {
    Profile profile;
    profile.name = "five";
    profile.layers = profile.top_k = 1;
    profile.experts = 3;
    profile.tokens = 5;
    profile.chosen = {0, 1, 1, 2, Profile::kNobody};
    count_choices(profile);
    return profile;
}

TEST(ProfileBlocks, are_runs_of_tokens_as_even_as_it_goes) {
    const auto profile = five_tokens();
    EXPECT_EQ(profile.counts, (Counts{1, 2, 1}));
    EXPECT_EQ(block_counts(profile, 1), (std::vector<Counts>{{1, 2, 1}}));
    EXPECT_EQ(block_counts(profile, 2), (std::vector<Counts>{{1, 1, 0}, {0, 1, 1}}));
    EXPECT_EQ(block_counts(profile, 9).size(), 5u);
    EXPECT_EQ(block_counts(profile, 0).size(), 1u);
}

TEST(ProfileBlocks, are_runs_of_steps_or_all_there_is) {
    Profile steps;
    steps.layers = 1;
    steps.experts = 2;
    steps.counts = {6, 4};
    EXPECT_EQ(block_counts(steps, 4), (std::vector<Counts>{{6, 4}}));
    steps.steps = 3;
    steps.step_counts = {1, 1, 2, 1, 3, 2};
    EXPECT_EQ(block_counts(steps, 2), (std::vector<Counts>{{1, 1}, {5, 3}}));
}

TEST_F(ProfileCsv, profiles_of_different_models_do_not_fit_together) {
    const auto check = [&](const std::string& a, const std::string& b, int dense) {
        return error_of([&] {
            check_together({read("a.csv", a), read("b.csv", b, {.dense_layers = dense})});
        });
    };
    EXPECT_EQ(check("1,2\n3,4\n", "5,6\n7,8\n", 0), "");
    EXPECT_EQ(check("1,2\n3,4\n", "5,6\n", 0), "b.csv: found 1 layers, allowed: 2, as in a.csv");
    EXPECT_EQ(check("1,2\n", "5,6,7\n", 0), "b.csv: found 3 experts, allowed: 2, as in a.csv");
    EXPECT_EQ(check("1,2\n3,4\n", "5,6\n7,8\n", 1),
              "b.csv: found layers 1 to 2 of the model, allowed: 0 to 1, as in a.csv (does one "
              "leave out dense layers?)");
    EXPECT_EQ(error_of([] { check_together({}); }), "profiles: found nothing, allowed: FILE");
}

}  // namespace
}  // namespace moehub::profile_csv_test
