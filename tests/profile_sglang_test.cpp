// Are dumps of SGLang's recorder read: counts by step, tokens, passes; slots mapped to experts?
#include "torch_writer.hpp"

#include <rapidcheck/gtest.h>

namespace moehub::profile_sglang_test {
namespace {

using ProfileSglang = RecordedFiles;
using I4 = std::vector<std::int32_t>;
using I8 = std::vector<std::int64_t>;

/// Two layers, the first dense; five slots of four experts.
const I8 kMap = {0, 1, 2, 3, 0, 3, 2, 1, 0, 3};

std::string corpus(const std::string& name) {
    return std::string(MOEHUB_SOURCE_DIR) + "/tests/corpus/sglang/" + name;
}

std::string per_token(TorchWriter& torch, const std::vector<I4>& records) {
    std::vector<std::string> list;
    for (const I4& ids : records)
        list.push_back(
            pickled_dict({{"forward_pass_id", pickled(std::int64_t{7})},
                          {"topk_ids_of_layer",
                           torch.tensor(ids, {2, static_cast<std::int64_t>(ids.size() / 6), 3})}}));
    return pickled_dict({{"records", pickled_list(list)},
                         {"last_physical_to_logical_map", torch.tensor(kMap, {2, 5})}});
}

TEST_F(ProfileSglang, reads_counts_by_step) {
    TorchWriter torch;
    const auto pickle = pickled_dict({{"rank", pickled(std::int64_t{0})},
                                      {"logical_count", torch.tensor(I4{0, 0, 1, 2, 3, 0,  //
                                                                        0, 0, 4, 4, 6, 2,  //
                                                                        0, 0, 0, 0, 0, 0},
                                                                     {3, 3, 2})},
                                      {"average_utilization_rate_over_window", "N"}});
    for (const bool zip64 : {false, true}) {
        const auto profile = read("a.pt", torch.file(pickle, zip64));
        EXPECT_EQ(profile.steps, 2);  // the buffer's third was never filled
        EXPECT_EQ(profile.counts, (Counts{5, 6, 9, 2}));
        EXPECT_EQ(profile.layer_numbers, (Numbers{1, 2}));  // 0 is dense
        EXPECT_EQ(profile.model_layers, 3);
    }
    EXPECT_EQ(error("a.pt", torch.file(pickle), {.dense_layers = 2}),
              "a.pt: found 1 layers before the first with experts, allowed: 2, as asked for");
}

TEST_F(ProfileSglang, reads_tokens_through_the_slot_map) {
    TorchWriter torch;
    const I4 none(6, -1);
    const auto with_dense = [](I4 ids) {
        ids.insert(ids.begin(), ids.size(), -1);
        return ids;
    };
    const auto file = torch.file(
        per_token(torch, {with_dense({0, 1, -1, 4, 2, -1}), with_dense({3, 0, -1, -1, -1, -1})}));
    const auto profile = read("a.pt", file);
    EXPECT_EQ(profile.tokens, 3);
    EXPECT_EQ(profile.top_k, 2);  // SGLang writes more slots than the model uses
    EXPECT_EQ(profile.experts, 4);
    EXPECT_EQ(profile.layer_numbers, (Numbers{1}));
    EXPECT_EQ(profile.chosen, (Ids{3, 2, 3, 1, 0, 3}));
    EXPECT_EQ(error("a.pt", file, {.experts = 8}),
              "a.pt: last_physical_to_logical_map: found 4 experts, allowed: 8, as asked for");
    // Slots 0 and 4 of layer 1 hold the same expert.
    EXPECT_EQ(error("a.pt", torch.file(per_token(torch, {with_dense({0, 4, -1})}))),
              "a.pt: token 0, layer 1: found expert 3 twice, allowed: once");
    EXPECT_EQ(error("a.pt", torch.file(per_token(torch, {with_dense({0, 5, -1})}))),
              "a.pt: record 0: token 0, layer 1: found slot 5, allowed: -1 to 4");
}

TEST_F(ProfileSglang, adds_passes_up_by_expert) {
    TorchWriter torch;
    const auto pass = [&](const I4& counts) {
        return pickled_dict({{"global_physical_count", torch.tensor(counts, {2, 5})}});
    };
    const std::vector<std::string> records = {pass({0, 0, 0, 0, 0, 1, 2, 3, 4, 5}),
                                              pass({0, 0, 0, 0, 0, 1, 0, 0, 0, 0})};
    const auto profile = read(
        "a.pt",
        torch.file(pickled_dict({{"records", pickled_list(records)},
                                 {"last_physical_to_logical_map", torch.tensor(kMap, {2, 5})}})));
    EXPECT_EQ(profile.steps, 2);
    EXPECT_EQ(profile.counts, (Counts{4, 3, 2, 7}));
}

TEST_F(ProfileSglang, dumps_of_ranks_are_one_profile) {
    const auto dump = [](const std::vector<I4>& records) {
        TorchWriter torch;
        const auto pickle = per_token(torch, records);
        return torch.file(pickle);
    };
    // Layer 0 is dense; three tokens of rank 0, one of rank 1, and rank 2 saw what rank 0 did.
    const I4 none(6, -1);
    const I4 first = {-1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, -1, 1, 2, -1, 2, 3, -1};
    const I4 second = {-1, -1, -1, 3, 0, -1};
    const auto a = write("d/r_0.pt", dump({first}));
    const auto b = write("d/r_1.pt", dump({second}));
    const auto c = write("d/r_2.pt", dump({first}));
    const std::vector sources{parse_profile_source(a), parse_profile_source(b)};
    const auto two = read_profile(sources);
    EXPECT_EQ(two.tokens, 4);
    EXPECT_EQ(two.name, a + " and 1 more");
    EXPECT_EQ(two.layer_numbers, (Numbers{1}));
    const auto folder = read_profile(parse_profile_source((folder_ / "d").string()));
    EXPECT_EQ(folder.chosen, two.chosen) << "what two ranks saw alike counts once";
    const auto half = read_profile(parse_profile_source((folder_ / "d").string() + ":0.5-1"));
    EXPECT_EQ(half.tokens, 2);
    write("d/r_3.pt", [] {
        TorchWriter torch;
        return torch.file(pickled_dict({{"logical_count", torch.tensor(I4{1, 2}, {1, 1, 2})}}));
    }());
    EXPECT_EQ(error_of([&] { read_profile(parse_profile_source((folder_ / "d").string())); }),
              "d/r_3.pt: found counts, allowed: tokens, as in d/r_0.pt (dumps of one recording)");
    write("d/notes.npy", "x");
    EXPECT_EQ(error_of([&] { read_profile(parse_profile_source((folder_ / "d").string())); }),
              "d: found notes.npy and r_0.pt, allowed: dumps of one recording, all of one kind");
}

TEST_F(ProfileSglang, counts_of_ranks_add_up) {
    const auto counts = [](const I4& values, std::int64_t steps) {
        TorchWriter torch;
        return torch.file(pickled_dict({{"logical_count", torch.tensor(values, {steps, 1, 2})}}));
    };
    const std::vector same{parse_profile_source(write("a.pt", counts({1, 0, 2, 0}, 2))),
                           parse_profile_source(write("b.pt", counts({0, 5, 0, 7}, 2)))};
    const auto by_step = read_profile(same);
    EXPECT_EQ(by_step.steps, 2);
    EXPECT_EQ(by_step.step_counts, (Counts{1, 5, 2, 7}));
    const std::vector other{same[0], parse_profile_source(write("c.pt", counts({0, 5}, 1)))};
    const auto together = read_profile(other);
    EXPECT_EQ(together.steps, 0) << "steps that differ are no steps";
    EXPECT_EQ(together.counts, (Counts{3, 5}));
}

TEST_F(ProfileSglang, reads_what_pythons_own_pickle_and_zip_write) {
    const auto stat = read_profile(parse_profile_source(corpus("stat.pt")));
    EXPECT_EQ(stat.steps, 2);
    EXPECT_EQ(stat.counts, (Counts{3, 4, 3, 2, 4, 2, 2, 4}));
    const auto tokens = read_profile(parse_profile_source(corpus("per_token.pt")));
    EXPECT_EQ(tokens.chosen, (Ids{3, 2, 3, 1, 0, 3}));
    const auto passes = read_profile(parse_profile_source(corpus("per_pass.pt")));
    EXPECT_EQ(passes.counts, (Counts{4, 3, 2, 6}));
    const auto view = read_profile(parse_profile_source(corpus("view.pt")));
    EXPECT_EQ(view.counts, (Counts{1, 3, 5, 2, 4, 6}));
}

TEST_F(ProfileSglang, honours_strides_and_offsets_and_stays_within_the_storage) {
    TorchWriter torch;
    const auto counts = [&](const TorchWriter::View& view) {
        return torch.file(
            pickled_dict({{"logical_count", torch.view(I4{9, 1, 2, 3, 4, 5, 6}, view)}}));
    };
    EXPECT_EQ(read("a.pt", counts({{1, 2, 3}, {77, 1, 2}, 1})).counts, (Counts{1, 3, 5, 2, 4, 6}));
    EXPECT_EQ(error("a.pt", counts({{1, 2, 3}, {6, 1, 2}, 2})),
              "a.pt: logical_count: found shape (1, 2, 3), more than its 28 bytes of values");
    EXPECT_NE(error("a.pt", counts({{1, 2, 3}, {6, -1, 2}, 2})), "");
    EXPECT_NE(error("a.pt", counts({{1, 2, 3}, {6, 1}, 0})), "");
    EXPECT_NE(error("a.pt", counts({{1, 2, 3}, {6, 1, 2}, -1})), "");
    // Expanded without bytes behind it, or so large that products overflow.
    EXPECT_NE(error("a.pt", counts({{1000000, 1000, 100}, {0, 0, 0}, 0})), "");
    EXPECT_NE(error("a.pt", counts({{INT64_MAX, INT64_MAX, 2}, {1, 1, 1}, 0})), "");
    EXPECT_NE(error("a.pt", counts({{2, 1, 2}, {INT64_MAX, 1, 1}, 1})), "");
}

TEST_F(ProfileSglang, refuses_other_contents) {
    TorchWriter torch;
    const auto refused = [&](const std::string& pickle) {
        return error("a.pt", torch.file(pickle));
    };
    const std::string allowed =
        ", allowed: a dictionary with logical_count, or with records and "
        "last_physical_to_logical_map, as SGLang's recorder writes";
    EXPECT_EQ(refused("]"), "a.pt: found something else" + allowed);
    EXPECT_EQ(refused(pickled_dict({{"records", "]"}})), "a.pt: found something else" + allowed);
    EXPECT_EQ(refused(pickled_dict({{"logical_count", "N"}})),
              "a.pt: logical_count: found no tensor, allowed: one of integers");
    EXPECT_EQ(refused(pickled_dict({{"logical_count", torch.tensor(I4{1, -2}, {1, 1, 2})}})),
              "a.pt: logical_count: found -2, allowed: 0 to 2^53");
    EXPECT_EQ(refused(pickled_dict({{"logical_count", torch.tensor(I4{1, 2}, {2})}})),
              "a.pt: logical_count: found shape (2), allowed: (steps, layers, experts)");
    EXPECT_EQ(refused(per_token(torch, {})), "a.pt: found no token in its records");
    EXPECT_EQ(error_of([] {
                  read_profile(parse_profile_source(corpus("float.pt")));
              }).find("logical_count: found values of torch.FloatStorage, allowed: integers") !=
                  std::string::npos,
              true);
}

RC_GTEST_PROP(ProfileSglangBytes, end_in_a_profile_or_in_one_line_when_changed, ()) {
    TorchWriter torch;
    std::string pickle = "\x80\x02" + per_token(torch, {I4{-1, -1, -1, 0, 1, 2}}) + ".";
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i)
        pickle[*rc::gen::inRange<std::size_t>(0, pickle.size())] = *rc::gen::arbitrary<char>();
    const auto path = std::filesystem::path(::testing::TempDir()) / "moehub_changed.pt";
    std::ofstream(path, std::ios::binary) << torch.file(pickle);
    try {
        RC_ASSERT(read_profile(parse_profile_source(path.string())).layers > 0);
    } catch (const InputError& error) {
        RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace moehub::profile_sglang_test
