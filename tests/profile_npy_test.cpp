// Are ids and counts read from NumPy's files as they were recorded, told apart, cut and checked?
#include "base/rng.hpp"
#include "recorded_files.hpp"

#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

namespace moehub::profile_npy_test {
namespace {

using ProfileNpy = RecordedFiles;
using I4 = std::vector<std::int32_t>;
using U1 = std::vector<std::uint8_t>;

constexpr auto kNobody = Profile::kNobody;
const ProfileOptions kTokens{.kind = ArrayKind::tokens};
const ProfileOptions kCounts{.kind = ArrayKind::counts};

std::string shape(std::int64_t a, std::int64_t b, std::int64_t c) {
    return fmt::format("({}, {}, {})", a, b, c);
}

/// Random distinct ids, [tokens][layers][top_k].
U1 random_ids(int tokens, int layers, int top_k, int experts) {
    Rng rng(1);
    std::vector<std::uint8_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    U1 ids;
    for (int row = 0; row < tokens * layers; ++row) {
        rng.shuffle(order);
        ids.insert(ids.end(), order.begin(), order.begin() + top_k);
    }
    return ids;
}

/// [steps][layers][experts]: `tokens` of a step choose `top_k` each.
I4 random_counts(int steps, int layers, int experts, int chosen) {
    Rng rng(2);
    I4 counts;
    for (int row = 0; row < steps * layers; ++row) {
        I4 one(static_cast<std::size_t>(experts), 0);
        for (int i = 0; i < chosen; ++i)
            ++one[static_cast<std::size_t>(rng.below(static_cast<std::uint64_t>(experts)))];
        counts.insert(counts.end(), one.begin(), one.end());
    }
    return counts;
}

TEST_F(ProfileNpy, reads_ids_layer_by_layer_and_counts_them) {
    const auto profile = read("a.npy", npy("|u1", shape(3, 2, 2),
                                           bytes_of(U1{0, 1, 2, 3,  //
                                                       1, 2, 0, 3,  //
                                                       5, 0, 1, 4})));
    EXPECT_EQ(profile.layers, 2);
    EXPECT_EQ(profile.tokens, 3);
    EXPECT_EQ(profile.top_k, 2);
    EXPECT_EQ(profile.experts, 6);
    EXPECT_EQ(profile.steps, 0);
    EXPECT_EQ(profile.chosen, (Ids{0, 1, 1, 2, 5, 0, 2, 3, 0, 3, 1, 4}));
    EXPECT_EQ(profile.counts, (Counts{2, 2, 1, 0, 0, 1, 1, 1, 1, 2, 1, 0}));
    EXPECT_EQ(profile.layer_numbers, (Numbers{0, 1}));
    EXPECT_EQ(profile.model_layers, 2);
    EXPECT_EQ(profile.weight, 1);
}

TEST_F(ProfileNpy, every_integer_type_reads_the_same) {
    const U1 ids = random_ids(70, 3, 2, 100);
    const auto as = [&](auto value, const std::string& dtype) {
        const std::vector<decltype(value)> values(ids.begin(), ids.end());
        return read("a.npy", npy(dtype, shape(70, 3, 2), bytes_of(values))).chosen;
    };
    const Ids expected = as(std::uint8_t{}, "|u1");
    EXPECT_EQ(as(std::uint16_t{}, "<u2"), expected);
    EXPECT_EQ(as(std::uint32_t{}, "<u4"), expected);
    EXPECT_EQ(as(std::uint64_t{}, "<u8"), expected);
    EXPECT_EQ(as(std::int8_t{}, "|i1"), expected);
    EXPECT_EQ(as(std::int32_t{}, "<i4"), expected);
    EXPECT_EQ(as(std::int64_t{}, "<i8"), expected);
}

TEST_F(ProfileNpy, transposing_in_blocks_loses_nothing) {
    const int tokens = 201, layers = 5, top_k = 3;  // no multiple of the block
    const U1 ids = random_ids(tokens, layers, top_k, 40);
    const auto profile = read("a.npy", npy("|u1", shape(tokens, layers, top_k), bytes_of(ids)));
    for (int layer = 0; layer < layers; ++layer)
        for (int token = 0; token < tokens; ++token)
            for (int slot = 0; slot < top_k; ++slot)
                ASSERT_EQ(profile.chosen_by(layer, token)[static_cast<std::size_t>(slot)],
                          ids[static_cast<std::size_t>((token * layers + layer) * top_k + slot)]);
}

TEST_F(ProfileNpy, minus_one_is_nobody_in_the_last_slots_only) {
    const auto three = [](const I4& ids) { return npy("<i4", shape(3, 1, 3), bytes_of(ids)); };
    const auto profile = read("a.npy", three({0, 2, -1, -1, -1, -1, 1, -1, -1}));
    EXPECT_EQ(profile.tokens, 2);  // the second was nobody
    EXPECT_EQ(profile.top_k, 2);   // the third choice was never used
    EXPECT_EQ(profile.chosen, (Ids{0, 2, 1, kNobody}));
    EXPECT_EQ(profile.counts, (Counts{1, 1, 1}));
    EXPECT_EQ(error("a.npy", three({0, 2, 1, 0, -1, 1, 1, 2, 3}), kTokens),
              "a.npy: token 1, layer 0: found expert 1 after -1, allowed: -1 only after all "
              "experts");
    EXPECT_EQ(error("a.npy", three({0, 2, 1, 0, 1, -2, 1, 2, 3}), kTokens),
              "a.npy: token 1, layer 0: found expert -2, allowed: 0 to 65533");
    EXPECT_EQ(error("a.npy", three(I4(9, -1))), "a.npy: found no token that chose an expert");
}

TEST_F(ProfileNpy, refuses_ids_that_cannot_be) {
    const auto two = [](const I4& ids) { return npy("<i4", shape(2, 2, 2), bytes_of(ids)); };
    EXPECT_EQ(error("a.npy", two({0, 1, 2, 3, 4, 5, 6, 8}), {.experts = 8}),
              "a.npy: token 1, layer 1: found expert 8, allowed: 0 to 7");
    EXPECT_EQ(error("a.npy", two({0, 1, 2, 3, 4, 4, 6, 8}), kTokens),
              "a.npy: token 1, layer 0: found expert 4 twice, allowed: once");
    EXPECT_EQ(error("a.npy", two({0, 1, 2, 3, 4, 4, 6, 8})),
              "a.npy: token 1, layer 0: found expert 4 twice, allowed: once (if these are counts: "
              "--profile-kind counts)");
    EXPECT_EQ(error("a.npy", npy("<u2", shape(1, 1, 1), "\xff\xff"), kTokens),
              "a.npy: token 0, layer 0: found expert 65535, allowed: 0 to 65533");
    EXPECT_EQ(error("a.npy", npy("<u8", shape(1, 1, 1), std::string(8, '\xff')), kTokens),
              "a.npy: token 0, layer 0: found expert 18446744073709551615, allowed: 0 to 65533");
    EXPECT_EQ(error("a.npy", two({0, 1, 2, 3, 4, 5, 6, 8}), {.experts = 1}),
              "a.npy: found shape (2, 2, 2), allowed: (tokens, layers, top_k), top_k at most the 1 "
              "experts");
    EXPECT_EQ(error("a.npy", npy("|u1", "(0, 2, 2)", "")),
              "a.npy: found shape (0, 2, 2), allowed: (tokens, layers, top_k), layers 1 to 65535, "
              "top_k 1 to 65534, tokens 1 to 2^31 - 1");
    EXPECT_EQ(error("a.npy", npy("|u1", "(4,)", "abcd")),
              "a.npy: found shape (4), allowed: (tokens, layers, top_k), (layers, experts) or "
              "(steps, layers, experts)");
    EXPECT_EQ(error("a.npy", npy("|u1", "(2, 2)", "abcd"), kTokens),
              "a.npy: found shape (2, 2), allowed: (tokens, layers, top_k)");
}

TEST_F(ProfileNpy, layers_of_zeros_are_dense_and_keep_their_numbers) {
    // What servers return of a model whose layers 0 and 2 have no experts.
    const auto dense = npy("|u1", shape(2, 4, 2),
                           bytes_of(U1{0, 0, 1, 2, 0, 0, 0, 3,  //
                                       0, 0, 0, 1, 0, 0, 2, 0}));
    const auto profile = read("a.npy", dense);
    EXPECT_EQ(profile.layer_numbers, (Numbers{1, 3}));
    EXPECT_EQ(profile.model_layers, 4);
    EXPECT_EQ(profile.chosen, (Ids{1, 2, 0, 1, 0, 3, 2, 0}));
    EXPECT_EQ(read("a.npy", dense, {.dense_layers = 1}).layer_numbers, (Numbers{1, 3}));
    EXPECT_EQ(error("a.npy", dense, {.dense_layers = 3}),
              "a.npy: found 1 layers before the first with experts, allowed: 3, as asked for");
    // Top-1 of expert 0 is a choice.
    EXPECT_EQ(read("a.npy", npy("|u1", shape(2, 2, 1), bytes_of(U1{0, 1, 0, 2}))).layers, 2);
}

TEST_F(ProfileNpy, dense_layers_shift_the_numbers_where_the_file_does_not_say) {
    const auto profile =
        read("a.npy", npy("|u1", shape(1, 2, 2), bytes_of(U1{0, 1, 2, 3})), {.dense_layers = 3});
    EXPECT_EQ(profile.layer_numbers, (Numbers{3, 4}));
    EXPECT_EQ(profile.model_layers, 5);
}

TEST_F(ProfileNpy, reads_counts_with_and_without_steps) {
    const auto flat = read("a.npy", npy("<i4", "(2, 3)", bytes_of(I4{1, 2, 3, 4, 5, 6})));
    EXPECT_FALSE(flat.has_tokens());
    EXPECT_EQ(flat.steps, 0);
    EXPECT_EQ(flat.experts, 3);
    EXPECT_EQ(flat.counts, (Counts{1, 2, 3, 4, 5, 6}));
    const auto bytes = npy("<i4", shape(3, 3, 2),
                           bytes_of(I4{0, 0, 1, 3, 2, 2,  //
                                       0, 0, 0, 0, 0, 0,  //
                                       0, 0, 5, 1, 3, 3}));
    const auto steps = read("a.npy", bytes);
    EXPECT_EQ(steps.steps, 2);  // nothing was counted in the second
    EXPECT_EQ(steps.counts, (Counts{6, 4, 5, 5}));
    EXPECT_EQ(steps.step_counts, (Counts{1, 3, 2, 2, 5, 1, 3, 3}));
    EXPECT_EQ(steps.layer_numbers, (Numbers{1, 2}));
    EXPECT_EQ(steps.model_layers, 3);
    EXPECT_EQ(read("a.npy", bytes, {}, ":0.5-1").counts, (Counts{5, 1, 3, 3}));
    EXPECT_EQ(error("a.npy", npy("<i4", "(1, 2)", bytes_of(I4{1, -2}))),
              "a.npy: step 0, layer 0, expert 1: found -2, allowed: 0 to 2^53");
    EXPECT_EQ(error("a.npy", npy("<i4", "(1, 2)", bytes_of(I4{0, 0}))),
              "a.npy: found no count above 0");
    EXPECT_EQ(error("a.npy", npy("<i4", "(1, 2)", bytes_of(I4{1, 2})), {.experts = 4}),
              "a.npy: found counts of 2 experts, allowed: 4, as asked for");
}

TEST_F(ProfileNpy, takes_parts_of_tokens_that_add_up) {
    const auto bytes = npy("|u1", shape(7, 2, 2), bytes_of(random_ids(7, 2, 2, 10)));
    const auto all = read("a.npy", bytes), front = read("a.npy", bytes, {}, ":0-0.5"),
               back = read("a.npy", bytes, {}, ":0.5-1@3");
    EXPECT_EQ(front.tokens, 3);
    EXPECT_EQ(back.tokens, 4);
    EXPECT_EQ(back.weight, 3);
    EXPECT_TRUE(back.name.ends_with("a.npy:0.5-1@3"));
    EXPECT_EQ(front.experts, all.experts);  // the whole file's experts
    for (std::size_t at = 0; at < all.counts.size(); ++at)
        EXPECT_EQ(front.counts[at] + back.counts[at], all.counts[at]);
    EXPECT_EQ(error("a.npy", bytes, {}, ":0.01-0.02"),
              "a.npy: part 0.01-0.02 of 7 tokens has none");
    EXPECT_EQ(error("a.npy", npy("|u1", "(1, 2)", "ab"), {}, ":0-0.5"),
              "a.npy: found counts that were not recorded by step, of which no part can be taken");
}

TEST_F(ProfileNpy, tells_ids_from_counts) {
    const auto tokens = [&](const U1& ids, int n, int layers, int top_k) {
        return read("a.npy", npy("|u1", shape(n, layers, top_k), bytes_of(ids))).has_tokens();
    };
    EXPECT_TRUE(tokens(random_ids(50, 58, 8, 250), 50, 58, 8));    // DeepSeek
    EXPECT_TRUE(tokens(random_ids(1, 58, 8, 250), 1, 58, 8));      // one token
    EXPECT_TRUE(tokens(random_ids(200, 32, 2, 8), 200, 32, 2));    // Mixtral
    EXPECT_TRUE(tokens(random_ids(100, 24, 1, 128), 100, 24, 1));  // top-1
    const auto counts = [&](int steps, int layers, int experts, int chosen) {
        const auto bytes = bytes_of(random_counts(steps, layers, experts, chosen));
        return read("a.npy", npy("<i4", shape(steps, layers, experts), bytes)).steps == steps;
    };
    EXPECT_TRUE(counts(10, 32, 8, 2000));   // Mixtral
    EXPECT_TRUE(counts(1, 32, 8, 100000));  // one step, rows are distinct
    EXPECT_TRUE(counts(10, 32, 8, 2));      // steps of one token
    EXPECT_TRUE(counts(3, 58, 256, 800));
}

TEST_F(ProfileNpy, refuses_to_guess) {
    const std::string say =
        ", which may be (tokens, layers, top_k) or (steps, layers, experts): "
        "say --profile-kind tokens|counts";
    const auto either = npy("|u1", shape(2, 2, 2), bytes_of(U1{0, 3, 1, 2, 4, 2, 1, 5}));
    EXPECT_EQ(error("a.npy", either), "a.npy: found shape (2, 2, 2)" + say);
    EXPECT_TRUE(read("a.npy", either, kTokens).has_tokens());
    EXPECT_EQ(read("a.npy", either, kCounts).steps, 2);
    EXPECT_TRUE(read("a.npy", either, {.experts = 6}).has_tokens());
    EXPECT_EQ(read("a.npy", either, {.experts = 2}).steps, 2);
    // One layer: sums say nothing.
    EXPECT_EQ(error("a.npy", npy("|u1", shape(9, 1, 6), bytes_of(random_ids(9, 1, 6, 64)))),
              "a.npy: found shape (9, 1, 6)" + say);
    // Numbers that no model's experts have, top_k that none has: counts whose sums differ.
    EXPECT_EQ(error("a.npy", npy("<i4", shape(1, 2, 2), bytes_of(I4{5000, 1, 2, 3}))),
              "a.npy: found 5000, which may be an expert or a count: say --profile-kind "
              "tokens|counts");
    I4 many(130);
    std::iota(many.begin(), many.end(), 0);
    EXPECT_EQ(error("a.npy", npy("<i4", shape(1, 2, 65), bytes_of(many))),
              "a.npy: found shape (1, 2, 65)" + say);
}

TEST_F(ProfileNpy, names_endings_and_options_that_are_not_allowed) {
    EXPECT_EQ(error("a.npz", ""),
              "a.npz: found ending \".npz\", allowed: .npy, .csv, .jsonl, .json, .pt, "
              ".safetensors, or a folder of dumps");
    EXPECT_EQ(error("a.npy", "", {.experts = 65535}),
              "experts: found 65535, allowed: 0 (not said) to 65534");
    EXPECT_EQ(error("a.npy", "", {.dense_layers = -1}),
              "dense layers: found -1, allowed: 0 (not said) to 65535");
    EXPECT_EQ(error_of([] { read_profile(parse_profile_source("/nowhere/a.csv")); }),
              "/nowhere/a.csv: no such file");
    EXPECT_EQ(error_of([] { read_profile(parse_profile_source("/nowhere/a.npy")); }),
              "/nowhere/a.npy: no such file");
}

TEST(ProfileReal, recorded_routing_is_read_as_ids) {
    const char* given = std::getenv("MOEHUB_ROUTING_DIR");
    const std::filesystem::path folder =
        given != nullptr ? given : MOEHUB_SOURCE_DIR "/../shared/data/routing";
    const auto path = folder / "dsv2lite-law.npy";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "no " << path << ": set MOEHUB_ROUTING_DIR to recorded routing";
    const auto profile = read_profile(parse_profile_source(path.string()), {.dense_layers = 1});
    EXPECT_EQ(profile.layers, 26);
    EXPECT_EQ(profile.experts, 64);
    EXPECT_EQ(profile.top_k, 6);
    EXPECT_EQ(profile.layer_numbers.back(), 26);
    for (int layer = 0; layer < profile.layers; ++layer) {
        const auto row = profile.counts_of(layer);
        EXPECT_EQ(std::accumulate(row.begin(), row.end(), 0.0),
                  static_cast<double>(profile.tokens * 6));
    }
}

}  // namespace
}  // namespace moehub::profile_npy_test
