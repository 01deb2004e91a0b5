// Are the routed experts that SGLang and vLLM return with their answers read?
#include "base/base64.hpp"
#include "recorded_files.hpp"

#include <rapidcheck/gtest.h>

namespace moehub::profile_routed_test {
namespace {

using ProfileRouted = RecordedFiles;
using I4 = std::vector<std::int32_t>;

std::string base64(const std::string& bytes) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i)
            bits =
                bits << 8 | (at + i < bytes.size() ? static_cast<std::uint8_t>(bytes[at + i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i)
            text += at + i <= bytes.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

std::string raw(const I4& ids) {
    return std::string("\"") + base64(bytes_of(ids)) + "\"";
}

const ProfileOptions kTwoByTwo{.layers = 2, .top_k = 2};

TEST(Base64, decodes_what_the_standard_says) {
    for (const auto& [code, text] : std::map<std::string, std::string>{{"", ""},
                                                                       {"Zg==", "f"},
                                                                       {"Zm8=", "fo"},
                                                                       {"Zm8", "fo"},
                                                                       {"Zm9v", "foo"},
                                                                       {"Zm9vYmFy", "foobar"}})
        EXPECT_EQ(base64_decoded(code), text);
    for (const char* bad : {"Z", "Zm9v=", "Zm=v", "Zm9*", "====", "Zm 9"})
        EXPECT_EQ(base64_decoded(bad), std::nullopt) << bad;
}

RC_GTEST_PROP(Base64, decodes_what_was_encoded, (const std::string& bytes)) {
    RC_ASSERT(base64_decoded(base64(bytes)) == bytes);
}

TEST_F(ProfileRouted, reads_sglangs_lines_in_order) {
    const std::string lines = R"({"text": "a", "meta_info": {"id": "1", "routed_experts": )" +
                              raw({0, 1, 2, 3, 1, 0, 3, 2}) + "}}\n\n" + R"({"routed_experts": )" +
                              raw({5, 4, 1, 2}) + "}\n";
    const auto profile = read("a.jsonl", lines, kTwoByTwo);
    EXPECT_EQ(profile.tokens, 3);
    EXPECT_EQ(profile.experts, 6);
    EXPECT_EQ(profile.chosen, (Ids{0, 1, 1, 0, 5, 4, 2, 3, 3, 2, 1, 2}));
    EXPECT_EQ(error("a.jsonl", lines),
              "a.jsonl:1: routed_experts does not say its layers: say "
              "--layers");
    EXPECT_EQ(error("a.jsonl", lines, {.layers = 2}),
              "a.jsonl:1: routed_experts does not say its top_k: say --top-k");
    EXPECT_EQ(error("a.jsonl", lines, {.layers = 3, .top_k = 2}),
              "a.jsonl:1: routed_experts: found 32 bytes, allowed: a multiple of 3 layers x 2 x 4 "
              "bytes");
}

TEST_F(ProfileRouted, reads_choices_of_chat_answers) {
    const std::string choice =
        R"({"index": 0, "sgl_ext": {"routed_experts": )" + raw({0, 1, 2, 3}) + "}}";
    const auto profile =
        read("a.jsonl", R"({"choices": [)" + choice + "," + choice + "]}", kTwoByTwo);
    EXPECT_EQ(profile.tokens, 2);
    EXPECT_EQ(profile.counts, (Counts{2, 2, 0, 0, 0, 0, 2, 2}));
}

TEST_F(ProfileRouted, reads_vllms_base64_of_a_numpy_file) {
    const auto array = npy("<u2", "(1, 2, 2)", bytes_of(std::vector<std::uint16_t>{0, 1, 2, 3}));
    const auto profile =
        read("a.jsonl", R"({"choices": [{"routed_experts": ")" + base64(array) + "\"}]}");
    EXPECT_EQ(profile.chosen, (Ids{0, 1, 2, 3}));
    EXPECT_EQ(
        error("a.jsonl", R"({"routed_experts": ")" + base64(npy("<f4", "(1,)", "abcd")) + "\"}"),
        "a.jsonl:1: found values of type \"<f4\", allowed: |u1, <u2, <u4, <u8, |i1, <i2, "
        "<i4, <i8 (integers, little endian)");
}

TEST_F(ProfileRouted, takes_the_shape_where_the_answer_says_it) {
    const std::string ids = raw({0, 1, 2, 3});
    for (const std::string shape : {R"("shape": [1, 2, 2])", R"("layers": 2, "top_k": 2)"})
        EXPECT_EQ(read("a.jsonl", std::string("{") + shape + R"(, "routed_experts": )" + ids + "}")
                      .layers,
                  2);
    EXPECT_EQ(
        read("a.jsonl",
             R"({"routed_experts": {"dtype": "int32", "shape": [1, 1, 4], "data": )" + ids + "}}")
            .top_k,
        4);
    EXPECT_EQ(error("a.jsonl", R"({"shape": [2, 2, 2], "routed_experts": )" + ids + "}"),
              "a.jsonl:1: routed_experts: found 16 bytes, allowed: a multiple of 2 layers x 2 x 4 "
              "bytes, as the shape says");
    EXPECT_EQ(error("a.jsonl", R"({"layers": -1, "routed_experts": )" + ids + "}"),
              "a.jsonl:1: layers: found \"-1\", allowed: a size");
}

TEST_F(ProfileRouted, reads_nested_lists_and_documents_over_many_lines) {
    const std::string lists = "{\"routed_experts\": [[[0, 1], [2, 3]],\n [[1, 0], [-1, -1]]]}";
    const auto profile = read("a.json", lists);
    EXPECT_EQ(profile.tokens, 2);
    EXPECT_EQ(profile.chosen, (Ids{0, 1, 1, 0, 2, 3, Profile::kNobody, Profile::kNobody}));
    EXPECT_EQ(read("a.json", std::string("[") + lists + ",\n" + lists + "]").tokens, 4);
    EXPECT_EQ(error("a.json", R"({"routed_experts": [[[0, 1], [2]]]})"),
              "a.json:1: routed_experts: found lists that differ, allowed: [tokens][layers][top_k] "
              "ids");
    EXPECT_EQ(error("a.json", R"({"routed_experts": [[[0, 1.5]]]})"),
              "a.json:1: routed_experts: found lists that differ, allowed: [tokens][layers][top_k] "
              "ids");
}

TEST_F(ProfileRouted, refuses_other_lines_and_names_them) {
    const std::string good = R"({"routed_experts": [[[0, 1]]]})"
                             "\n";
    EXPECT_EQ(error("a.jsonl", good + "{"),
              "a.jsonl:2: found text that is no JSON, allowed: an object");
    EXPECT_EQ(error("a.jsonl", good + "7"),
              "a.jsonl:2: found JSON that is no object, allowed: a server's answer");
    EXPECT_EQ(error("a.jsonl", good + R"({"meta_info": {"routed_experts": null}})"),
              "a.jsonl:2: found no \"routed_experts\", allowed: at the top, in meta_info, in "
              "sgl_ext or in choices");
    EXPECT_EQ(error("a.jsonl", good + R"({"routed_experts": [[[0, 1, 2]]]})"),
              "a.jsonl:2: found 1 layers and top_k 3, answers before have 1 and 2");
    EXPECT_EQ(error("a.jsonl", good + R"({"routed_experts": "a*"})", kTwoByTwo),
              "a.jsonl:2: routed_experts: found \"a*\", allowed: base64");
    EXPECT_EQ(error("a.jsonl", good + R"({"routed_experts": [[[0, 9]]]})", {.experts = 8}),
              "a.jsonl:2: token 0, layer 0: found expert 9, allowed: 0 to 7");
    EXPECT_EQ(error("a.jsonl", ""), "a.jsonl: found no token that chose an expert");
    EXPECT_NE(error("a.jsonl", std::string(100000, '[')), "");
    EXPECT_NE(error("a.jsonl", std::string(100000, '[') + std::string(100000, ']')), "");
}

}  // namespace
}  // namespace moehub::profile_routed_test
