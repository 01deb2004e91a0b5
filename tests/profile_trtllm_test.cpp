// Are TensorRT-LLM's expert statistics read, all ranks added up, holes found?
#include "recorded_files.hpp"

namespace moehub::profile_trtllm_test {
namespace {

using ProfileTrtllm = RecordedFiles;
using I4 = std::vector<std::int32_t>;

struct Tensor {
    std::string name;
    I4 values;
    int columns = 0;  ///< columns; 0: there is one dimension
};

std::string shape_of(const Tensor& tensor) {
    const auto size = static_cast<int>(tensor.values.size());
    if (tensor.columns == 0) return std::to_string(size);
    return std::to_string(size / tensor.columns) + "," + std::to_string(tensor.columns);
}

std::string safetensors(const std::vector<Tensor>& tensors) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}", data;
    for (const auto& tensor : tensors) {
        const std::size_t from = data.size();
        data += bytes_of(tensor.values);
        header += ",\"" + tensor.name + "\":{\"dtype\":\"I32\",\"shape\":[" + shape_of(tensor) +
                  "],\"data_offsets\":[" + std::to_string(from) + "," +
                  std::to_string(data.size()) + "]}";
    }
    header += "}";
    return little_endian(header.size(), 8) + header + data;
}

std::string with_header(const std::string& header, const std::string& data) {
    return little_endian(header.size(), 8) + header + data;
}

TEST_F(ProfileTrtllm, iterations_become_steps_and_layers_keep_their_numbers) {
    const auto profile = read(
        "rank0.safetensors",
        safetensors({{"100_4", {5, 6}}, {"99_4", {1, 2}}, {"99_3", {3, 4}}, {"100_3", {7, 8}}}));
    EXPECT_EQ(profile.steps, 2);
    EXPECT_EQ(profile.layer_numbers, (Numbers{3, 4}));
    EXPECT_EQ(profile.model_layers, 5);
    EXPECT_EQ(profile.step_counts, (Counts{3, 4, 1, 2, 7, 8, 5, 6}));
    EXPECT_EQ(profile.counts, (Counts{10, 12, 6, 8}));
}

TEST_F(ProfileTrtllm, ranks_of_a_folder_add_up) {
    write("s/rank0.safetensors", safetensors({{"0_1", {1, 2}}}));
    write("s/rank10.safetensors", safetensors({{"0_1", {10, 20}}}));
    write("s/cooccurrence_rank0.safetensors", "not asked for");
    write("s/meta_info.json", R"({"num_experts": 2, "num_experts_per_token": 1})");
    const auto folder = (folder_ / "s").string();
    EXPECT_EQ(read_profile(parse_profile_source(folder)).counts, (Counts{11, 22}));
    write("s/meta_info.json", R"({"num_experts": 4})");
    EXPECT_EQ(error_of([&] { read_profile(parse_profile_source(folder)); }),
              "s: found counts of 2 experts, meta_info.json speaks of 4");
    write("s/meta_info.json", R"({"num_experts": -4})");
    EXPECT_EQ(error_of([&] { read_profile(parse_profile_source(folder)); }),
              "s/meta_info.json: num_experts: found \"-4\", allowed: 1 to 65534");
    std::filesystem::create_directories(folder_ / "empty");
    EXPECT_EQ(error_of([&] { read_profile(parse_profile_source((folder_ / "empty").string())); }),
              "empty: found a folder without dumps, allowed: SGLang's .pt, TensorRT-LLM's "
              "rank<N>.safetensors, or .npy, .jsonl, .csv, one a rank");
}

TEST_F(ProfileTrtllm, raw_ids_are_every_tokens_experts) {
    // Iteration 7 has two tokens on rank 0 and one on rank 1, iteration 8 one on rank 0.
    for (const auto* const name :
         {"rank%_raw.safetensors", "token_selected_experts_rank%.safetensors"}) {
        const auto rank = [name](const std::string& number) {
            std::string one = name;
            return "s/" + one.replace(one.find('%'), 1, number);
        };
        std::filesystem::remove_all(folder_ / "s");
        write(rank("0"), safetensors({{"7_3", {0, 1, 2, 3}, 2},
                                      {"7_4", {4, 5, 5, 0}, 2},
                                      {"8_3", {1, 2}, 2},
                                      {"8_4", {3, 4}, 2}}));
        write(rank("1"), safetensors({{"7_3", {3, 0}, 2}, {"7_4", {0, 2}, 2}}));
        write("s/rank0.safetensors", safetensors({{"7_3", {1, 1, 1, 1, 0, 0, 0, 0}}}));
        write("s/meta_info.json", R"({"num_experts": 8, "num_experts_per_token": 2})");
        const auto profile = read_profile(parse_profile_source((folder_ / "s").string()));
        EXPECT_EQ(profile.tokens, 4) << "ids before counts";
        EXPECT_EQ(profile.top_k, 2);
        EXPECT_EQ(profile.experts, 8);
        EXPECT_EQ(profile.layer_numbers, (Numbers{3, 4}));
        // Rank 1's only token stands in the middle of rank 0's.
        EXPECT_EQ(profile.chosen, (Ids{0, 1, 2, 3, 3, 0, 1, 2, 4, 5, 5, 0, 0, 2, 3, 4}));
    }
    const auto alone = read("a.safetensors", safetensors({{"1_0", {6, 2}, 2}}));
    EXPECT_EQ(alone.chosen, (Ids{6, 2}));
    EXPECT_EQ(error("a.safetensors", safetensors({{"1_3", {0, 1}, 2}, {"1_4", {0, 1, 2, 3}, 2}})),
              "a.safetensors: \"1_4\": found 2 tokens, allowed: 1, as in \"1_3\"");
    EXPECT_EQ(error("a.safetensors", safetensors({{"1_3", {0, 1}, 2}, {"1_4", {0, 1}}})),
              "a.safetensors: \"1_4\": found shape (2), allowed: (tokens, top_k), 1 to 65534");
    EXPECT_EQ(error("a.safetensors", safetensors({{"1_3", {0, 1}, 2}, {"1_4", {0, 1}, 1}})),
              "a.safetensors: \"1_4\": found 1 experts a token, others have 2");
    EXPECT_EQ(error("a.safetensors", safetensors({{"1_3", {1, 1}, 2}})),
              "a.safetensors: token 0, layer 3: found expert 1 twice, allowed: once");
}

TEST_F(ProfileTrtllm, ranks_that_disagree_are_both_named) {
    write("s/rank0.safetensors", safetensors({{"0_1", {1, 2}}}));
    const auto refused = [&](const std::vector<Tensor>& tensors) {
        write("s/rank1.safetensors", safetensors(tensors));
        return error_of([&] { read_profile(parse_profile_source((folder_ / "s").string())); });
    };
    EXPECT_EQ(refused({{"0_1", {1, 2, 3}}}),
              "s/rank1.safetensors: found 3 experts, allowed: 2, as in s/rank0.safetensors (dumps "
              "of one recording)");
    EXPECT_EQ(refused({{"0_1", {1, 2}}, {"0_2", {1, 2}}}),
              "s/rank1.safetensors: found 2 layers, allowed: 1, as in s/rank0.safetensors (dumps "
              "of one recording)");
    EXPECT_EQ(refused({{"0_2", {1, 2}}}),
              "s/rank1.safetensors: found layers 2 to 2, allowed: 1 to 1, as in "
              "s/rank0.safetensors (dumps of one recording)");
}

TEST_F(ProfileTrtllm, refuses_holes_and_ragged_counts) {
    const auto refused = [&](const std::vector<Tensor>& tensors) {
        return error("a.safetensors", safetensors(tensors));
    };
    EXPECT_EQ(refused({{"1_3", {1}}, {"2_4", {1}}}),
              "a.safetensors: iteration 1 has no layer 4, others have");
    EXPECT_EQ(refused({{"1_3", {1, 2}}, {"1_4", {1}}}),
              "a.safetensors: \"1_4\": found counts of 1 experts, others have 2");
    EXPECT_EQ(refused({{"1_3", {1, -2}}}),
              "a.safetensors: \"1_3\": found count -2, allowed: 0 to 2^53");
    EXPECT_EQ(refused({{"1_3", {}}}),
              "a.safetensors: \"1_3\": found shape (0), allowed: (experts), 1 to 65534");
    EXPECT_EQ(refused({}), "a.safetensors: found no tensor, allowed: counts by expert");
    for (const char* name : {"weight", "1_", "_1", "1_2_3", "-1_2", "1_None", "99999999999_1"})
        EXPECT_EQ(refused({{name, {1}}}), std::string("a.safetensors: found tensor \"") + name +
                                              "\", allowed: names as \"<iteration>_<layer>\"");
}

TEST_F(ProfileTrtllm, refuses_broken_safetensors) {
    const auto refused = [&](const std::string& bytes) { return error("a.safetensors", bytes); };
    const auto good = safetensors({{"1_3", {1, 2}}});
    ASSERT_EQ(refused(good), "");
    EXPECT_EQ(refused("abc"), "a.safetensors: ends within its header");
    EXPECT_EQ(refused(std::string(8, '\xff')),
              "a.safetensors: found a header of 18446744073709551615 bytes, allowed: at most "
              "100000000 and within the file (is it a .safetensors?)");
    EXPECT_EQ(refused(good.substr(0, good.size() - 1)),
              "a.safetensors: header: \"1_3\": found no data_offsets within the 7 bytes of values");
    EXPECT_EQ(refused(good + "x"), "a.safetensors: header: 1 bytes of values belong to no tensor");
    EXPECT_EQ(refused(with_header("[]", "")),
              "a.safetensors: header: found something else, allowed: a JSON object");
    EXPECT_EQ(refused(with_header(R"({"1_3":{"dtype":"I32","shape":[3],"data_offsets":[0,8]}})",
                                  "12345678")),
              "a.safetensors: header: \"1_3\": found 8 bytes, its shape (3) of I32 needs 12");
    EXPECT_EQ(
        refused(with_header(R"({"1_3":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234")),
        "a.safetensors: \"1_3\": found values of type F32, allowed: integers of up to 32 "
        "bits, I64");
    for (const char* header :
         {R"({"1_3":7})", R"({"1_3":{"dtype":"I32"}})",
          R"({"1_3":{"dtype":"I32","shape":[-1],"data_offsets":[0,4]}})",
          R"({"1_3":{"dtype":"I32","shape":[1],"data_offsets":[4,0]}})",
          R"({"1_3":{"dtype":"I32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
          R"({"1_3":{"dtype":"X","shape":[1],"data_offsets":[0,4]}})"})
        EXPECT_NE(refused(with_header(header, "1234")), "") << header;
}

}  // namespace
}  // namespace moehub::profile_trtllm_test
