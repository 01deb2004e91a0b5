// Are layouts written as serving engines load them, read back as written, and refused in one line
// when something is wrong?
#include "base/rng.hpp"

#include <moehub/error.hpp>
#include <moehub/expert_layout.hpp>

#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

namespace moehub::layout_formats_test {
namespace {

using nlohmann::json;

/// Layers 1 and 3 of a model of 4; GPU after GPU 0 3 | 1 2 and 2 3 | 0 1.
ExpertLayout small() {
    ExpertLayout layout = empty_layout({2, 4, {1, 3}, 4}, 2);
    layout.on = {{{0, 3}, {1, 2}}, {{2, 3}, {0, 1}}};
    return layout;
}

std::string error_of(const std::string& text, int gpus = 2,
                     const LayoutShape& shape = shape_of(small())) {
    try {
        parse_layout(text, "a.json", gpus, shape);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

ExpertLayout parsed(const std::string& text, int gpus = 2) {
    return parse_layout(text, "a", gpus, shape_of(small()));
}

TEST(LayoutFormats, have_names) {
    EXPECT_EQ(layout_formats(),
              (std::vector<std::string>{"sglang", "vllm", "vllm-ascend", "trtllm", "csv", "json"}));
    for (const std::string& name : layout_formats())
        EXPECT_EQ(to_string(parse_layout_format(name)), name);
    try {
        parse_layout_format("sglan");
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "format: found \"sglan\", allowed: sglang, vllm, vllm-ascend, trtllm, csv, "
                     "json; did you mean \"sglang\"?");
    }
}

TEST(LayoutFormats, sglang_has_a_row_for_every_layer_of_the_model_and_no_other_key) {
    EXPECT_EQ(json::parse(layout_text(small(), LayoutFormat::sglang)),
              json::parse(R"({"physical_to_logical_map":
                              [[0,1,2,3], [0,3,1,2], [0,1,2,3], [2,3,0,1]]})"));
}

TEST(LayoutFormats, sglang_fills_dense_layers_round_and_round) {
    ExpertLayout layout = empty_layout({1, 2, {1}, 2}, 2);
    layout.on = {{{0, 1}, {1, 0}}};
    EXPECT_EQ(json::parse(layout_text(layout, LayoutFormat::sglang))["physical_to_logical_map"],
              json::parse("[[0,1,0,1], [0,1,1,0]]"));
}

TEST(LayoutFormats, vllm_has_a_row_for_every_moe_layer) {
    EXPECT_EQ(json::parse(layout_text(small(), LayoutFormat::vllm)),
              json::parse("[[0,3,1,2], [2,3,0,1]]"));
}

TEST(LayoutFormats, vllm_ascend_lists_devices_and_counts_moe_layers_from_0) {
    EXPECT_EQ(json::parse(layout_text(small(), LayoutFormat::vllm_ascend)), json::parse(R"(
        {"moe_layer_count": 2, "layer_list": [
          {"layer_id": 0, "device_count": 2, "device_list": [
            {"device_id": 0, "device_expert": [0, 3]}, {"device_id": 1, "device_expert": [1, 2]}]},
          {"layer_id": 1, "device_count": 2, "device_list": [
            {"device_id": 0, "device_expert": [2, 3]}, {"device_id": 1, "device_expert": [0, 1]}]}
        ]})"));
}

TEST(LayoutFormats, trtllm_csv_and_json_name_the_models_layers) {
    EXPECT_EQ(layout_text(small(), LayoutFormat::trtllm),
              "num_slots: 4\n"
              "initial_global_assignments:\n"
              "  1: [0, 3, 1, 2]\n"
              "  3: [2, 3, 0, 1]\n"
              "layer_updates_per_iter: 0\n");
    EXPECT_EQ(layout_text(small(), LayoutFormat::csv),
              "layer,gpu,slot,expert\n"
              "1,0,0,0\n1,0,1,3\n1,1,0,1\n1,1,1,2\n"
              "3,0,0,2\n3,0,1,3\n3,1,0,0\n3,1,1,1\n");
    EXPECT_EQ(json::parse(layout_text(small(), LayoutFormat::json)),
              json::parse(R"({"gpus": 2, "experts": 4, "model_layers": 4, "layers": [
                  {"layer": 1, "gpus": [[0, 3], [1, 2]]}, {"layer": 3, "gpus": [[2, 3], [0, 1]]}]})"));
}

TEST(LayoutFormats, refuse_what_an_engine_cannot_load) {
    ExpertLayout unequal = small();
    unequal.on[1] = {{2, 3, 0}, {1}};
    for (const auto format : {LayoutFormat::sglang, LayoutFormat::vllm, LayoutFormat::vllm_ascend,
                              LayoutFormat::trtllm})
        try {
            layout_text(unequal, format);
            FAIL();
        } catch (const InputError& error) {
            EXPECT_EQ(error.what(), to_string(format) +
                                        ": found GPUs with 1 and with 3 experts, "
                                        "allowed: as many on every GPU");
        }
    for (const auto format : {LayoutFormat::csv, LayoutFormat::json})
        EXPECT_EQ(parse_layout(layout_text(unequal, format), "a", 2, shape_of(unequal)), unequal);
    ExpertLayout twins = small();
    twins.on[1] = {{2, 3, 2}, {0, 1, 3}};
    EXPECT_THROW(layout_text(twins, LayoutFormat::vllm_ascend), InputError);
    EXPECT_THROW(layout_text({}, LayoutFormat::json), InputError);
}

RC_GTEST_PROP(LayoutFormats, read_back_what_was_written, ()) {
    Rng rng(static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 30)));
    const int gpus = 1 + static_cast<int>(rng.below(5)), each = 1 + static_cast<int>(rng.below(5));
    const int experts = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus * each)));
    LayoutShape shape{0, experts, {}, 12};
    for (int number = 0; number < 12; ++number)
        if (rng.below(2) == 0) shape.layer_numbers.push_back(number);
    shape.layers = static_cast<int>(shape.layer_numbers.size());
    RC_PRE(shape.layers > 0);
    ExpertLayout layout = empty_layout(shape, gpus);
    std::vector<int> slots(static_cast<std::size_t>(gpus * each));
    for (std::size_t slot = 0; slot < slots.size(); ++slot)
        slots[slot] = static_cast<int>(slot) % experts;
    for (auto& on : layout.on) {
        rng.shuffle(slots);
        for (std::size_t slot = 0; slot < slots.size(); ++slot)
            on[slot / static_cast<std::size_t>(each)].push_back(slots[slot]);
    }
    for (const std::string& name : layout_formats()) {
        if (name == "vllm-ascend" && experts < gpus * each) continue;  // copies may meet
        const std::string text = layout_text(layout, parse_layout_format(name));
        RC_ASSERT(parse_layout(text, name, gpus, shape) == layout);
    }
}

TEST(LayoutFormats, read_other_ways_of_saying_it) {
    ExpertLayout same = small();
    same.on[1] = same.on[0];
    EXPECT_EQ(parsed("[0, 3, 1, 2]"), same);
    EXPECT_EQ(parsed(R"({"expert_to_ep_rank": [0, 1, 1, 0]})"), same);
    EXPECT_EQ(parsed(R"({"expert_to_ep_rank": [[0,1,1,0], [1,1,0,0]]})"), small());
    EXPECT_EQ(parsed(R"({"expert_to_ep_rank": [[0,1,1,0], [1,1,0,0]]})", 0), small());
    // Rows of a CSV in any order, blanks, CRLF, a byte order mark.
    EXPECT_EQ(
        parsed("\xEF\xBB\xBFlayer, gpu,slot,expert\r\n3,1,1,1\r\n3,0,0,2\r\n3,0,1,3\r\n3,1,0,0\r\n"
               "1,0,1,3\r\n1,0,0,0\r\n1,1,0,1\r\n1,1,1,2\r\n2,0,0,1\r\n",
               0),
        small());
    // YAML in block style, sorted keys, one list for two layers.
    EXPECT_EQ(parsed("initial_global_assignments:\n  1: &id001\n  - 0\n  - 3\n  - 1\n  - 2\n"
                     "  3: *id001\nlayer_updates_per_iter: 2\nnum_slots: 4\n"),
              same);
    // Layers that are not expected are skipped, GPUs as the file says.
    EXPECT_EQ(parsed(R"({"gpus": 2, "experts": 4, "model_layers": 4, "layers": [
                  {"layer": 0, "gpus": [[0, 1], [2, 3]]}, {"layer": 3, "gpus": [[2, 3], [0, 1]]},
                  {"layer": 1, "gpus": [[0, 3], [1, 2]]}]})",
                     0),
              small());
}

TEST(LayoutFormats, say_what_is_wrong_with_slots) {
    EXPECT_EQ(error_of("[[0,1,2,3]]"),
              "a.json: found a list of 1, allowed: a list for each of the 2 layers");
    EXPECT_EQ(error_of("[[0,1,2,3],[0,1,2,4]]"),
              "a.json: [1][3]: found 4, allowed: a whole number from 0 to 3");
    for (const std::string bad :
         {"-1", "1.0", "\"1\"", "null", "[1]", "1e99", "9223372036854775808"})
        EXPECT_TRUE(
            error_of("[[0,1,2,3],[0,1,2," + bad + "]]").starts_with("a.json: [1][3]: found"))
            << bad;
    EXPECT_EQ(error_of("[[0,1,2,3],[0,1,2,2]]"),
              "a.json: layer 3: found expert 3 on no GPU, allowed: each on at least one");
    EXPECT_EQ(error_of("[[0,1,2,3],[0,1,2,3,0,1]]"),
              "a.json: layer 3: found 6 slots, allowed: 4, as in the first layer");
    EXPECT_EQ(error_of("[[0,1,2,3],[0,1,2,3]]", 3),
              "a.json: layer 1: found 4 slots, allowed: a multiple of the 3 GPUs");
    EXPECT_EQ(error_of("[[0,1,2,3],[]]"), "a.json: layer 3: not found, allowed: all 2 layers");
    EXPECT_EQ(error_of("[[0,1,2,3],[0,1,2,3]]", 0),
              "a.json: does not say on how many GPUs; the number of GPUs is needed");
    EXPECT_EQ(error_of("[]"), "a.json: layer 1: not found, allowed: all 2 layers");
    EXPECT_EQ(error_of("[[0,1,2,3],7]"), "a.json: [1]: found 7, allowed: a list");
}

TEST(LayoutFormats, say_what_is_wrong_with_sglangs_file) {
    EXPECT_EQ(error_of(R"({"physical_to_logical_map": [[0,1,2,3],[0,1,2,3]]})"),
              "a.json: physical_to_logical_map: found a list of 2, allowed: a list for each of the "
              "model's 4 layers, dense ones included");
    EXPECT_EQ(error_of(R"({"physical_to_logical_map": [], "note": 1})"),
              "a.json: found key \"note\", allowed: physical_to_logical_map alone");
    EXPECT_EQ(error_of(R"({"physical_to_logical_map": [[0],[0,1,2,3],[0],[0,1,2,3]]})"),
              "a.json: physical_to_logical_map[1]: found a list of 4, allowed: 1 slots, as in the "
              "first layer");
    EXPECT_EQ(error_of(R"({"physical_to_logical_map": 3})"),
              "a.json: physical_to_logical_map: found 3, allowed: a list");
}

TEST(LayoutFormats, say_what_is_wrong_with_ranks_and_devices) {
    EXPECT_EQ(error_of(R"({"expert_to_ep_rank": [0, 1, 2, 0]})"),
              "a.json: expert_to_ep_rank[2]: found 2, allowed: a whole number from 0 to 1");
    EXPECT_EQ(error_of(R"({"expert_to_ep_rank": [0, 1, 1]})"),
              "a.json: layer 1: found the GPUs of 3 experts, allowed: of all 4");
    const auto one = [](const std::string& count, const std::string& layer) {
        return R"({"moe_layer_count": )" + count + R"(, "layer_list": [)" + layer + "]}";
    };
    EXPECT_EQ(error_of(one("2", "")),
              "a.json: moe_layer_count: found 2, allowed: 0, as many as in the list");
    EXPECT_EQ(error_of(one("0", "")), "a.json: layer_list: found a list of 0, allowed: 2 layers");
    const std::string devices = R"("device_list": [{"device_id": 0, "device_expert": [0,1,2,3]}]})";
    const std::string good = R"({"layer_id": 0, "device_count": 1, )" + devices;
    EXPECT_EQ(error_of(one("2", good + "," + good)),
              "a.json: layer_list[1].layer_id: found 0, allowed: 1, its index in the list");
    EXPECT_EQ(error_of(one("2", good + R"(,{"layer_id": 1, "device_count": 2, )" + devices)),
              "a.json: layer_list[1].device_count: found 2, allowed: 1, as many as in the list");
    EXPECT_EQ(error_of(one("2", good + R"(,{"layer_id": 1, "device_count": 1, )" + devices)),
              "a.json: found 1 GPUs, allowed: 2");
    EXPECT_EQ(error_of(one("2", good + R"(,{"layer_id": 1})")),
              "a.json: layer_list[1].device_list: not found, it is needed");
}

TEST(LayoutFormats, say_what_is_wrong_with_moehubs_json) {
    const auto with = [](const std::string& gpus, const std::string& experts,
                         const std::string& layers) {
        return R"({"gpus": )" + gpus + R"(, "experts": )" + experts +
               R"(, "model_layers": 4, "layers": [)" + layers + "]}";
    };
    const std::string first = R"({"layer": 1, "gpus": [[0, 3], [1, 2]]})";
    EXPECT_EQ(error_of(with("2", "4", first)), "a.json: layer 3: not found, allowed: all 2 layers");
    EXPECT_EQ(error_of(with("2", "8", first)),
              "a.json: experts: found 8, allowed: 4, as the model or the profile has");
    EXPECT_EQ(error_of(with("4", "4", first)), "a.json: gpus: found 4 GPUs, allowed: 2");
    EXPECT_EQ(error_of(with("2", "4", first + "," + first)),
              "a.json: layers[1].layer: found 1, allowed: each layer once");
    EXPECT_EQ(error_of(with("2", "4", R"({"layer": 4, "gpus": []})")),
              "a.json: layers[0].layer: found 4, allowed: a whole number from 0 to 3");
    EXPECT_EQ(error_of(with("2", "4", R"({"layer": 1, "gpus": [[0, 1, 2, 3]]})")),
              "a.json: layers[0].gpus: found a list of 1, allowed: a list for each of the 2 GPUs");
}

TEST(LayoutFormats, say_what_is_wrong_with_csv) {
    const std::string header = "layer,gpu,slot,expert\n";
    EXPECT_EQ(error_of("layer,expert\n1,2\n"),
              "a.json: found another header, allowed: layer,gpu,slot,expert");
    EXPECT_EQ(error_of(header + "1,2,0,0\n"),
              "a.json:2: gpu: found \"2\", allowed: a whole number from 0 to 1");
    EXPECT_EQ(error_of(header + "1,0,0,0\n1,0,0,1\n"),
              "a.json:3: slot: found \"0\", allowed: the slots of a GPU are 0, 1, 2, …, each once");
    EXPECT_EQ(error_of(header + "1,0,1000000000,0\n"),
              "a.json:2: slot: found \"1000000000\", allowed: the slots of a GPU are 0, 1, 2, …, "
              "each once");
    EXPECT_EQ(error_of(header + "1,0,0,0\n", 0),
              "a.json: layer 3: not found, allowed: all 2 layers");
    EXPECT_NE(error_of(header + "1,60000,0,0\n", 0), "");
    EXPECT_NE(error_of(header, 0), "");
}

TEST(LayoutFormats, say_what_is_wrong_with_yaml) {
    const std::string slots = "num_slots: 4\n", layers = "initial_global_assignments:\n";
    EXPECT_EQ(error_of(slots), "a.json: initial_global_assignments: not found, it is needed");
    EXPECT_EQ(error_of(layers + "  1: [0, 1, 2, 3]\n"),
              "a.json: num_slots: not found, it is needed");
    EXPECT_EQ(error_of(slots + layers + "  1: [0, 1, 2]\n"),
              "a.json: initial_global_assignments: layer 1: found 3 experts, allowed: a list of 4, "
              "as num_slots says");
    EXPECT_EQ(
        error_of(slots + layers + "  1: [0, 1, 2, x]\n"),
        "a.json: initial_global_assignments: layer 1: found \"x\", allowed: a whole number from 0 "
        "to 3");
    EXPECT_EQ(error_of(slots + layers + "  1: [0, 1, 2, 3]\n  1: [0, 1, 2, 3]\n"),
              "a.json: initial_global_assignments: layer 1: found twice, allowed: once");
    EXPECT_EQ(
        error_of(slots + layers + "  9: [0, 1, 2, 3]\n"),
        "a.json: initial_global_assignments: found \"9\", allowed: a whole number from 0 to 3");
    EXPECT_EQ(error_of("num_slot: 4\n"),
              "a.json: found key \"num_slot\", allowed: num_slots, initial_global_assignments and "
              "layer_updates_per_iter, each once");
    EXPECT_EQ(error_of("a: [1, 2\nb: 3\n"), "a.json: line 2: not valid YAML");
    EXPECT_EQ(error_of("hello"),
              "a.json: found none of the known formats (JSON, CSV, a YAML map), allowed: sglang, "
              "vllm, vllm-ascend, trtllm, csv, json");
}

TEST(LayoutFormats, refuse_broken_texts_in_one_line) {
    EXPECT_EQ(error_of(""),
              "a.json: the file is empty, allowed: sglang, vllm, vllm-ascend, trtllm, csv, json");
    EXPECT_EQ(error_of("[[0,1],\n[2,"), "a.json: line 2: not valid JSON");
    EXPECT_EQ(error_of("{\"layers\": [], \"layers\": []}"),
              "a.json: key \"layers\" stands twice, allowed: once");
    EXPECT_EQ(error_of(std::string(100000, '[')), "a.json: nested more than 16 deep, no layout is");
    EXPECT_EQ(error_of("{\"a\": 1e9999}"), "a.json: holds a number too large for JSON readers");
    EXPECT_EQ(error_of("\xff\xfe"), "a.json: found bytes that are not text, allowed: UTF-8");
    EXPECT_EQ(error_of("{}").substr(0, 34), "a.json: found an object, allowed: ");
    EXPECT_NE(error_of(std::string(100000, '-')), "");
    EXPECT_NE(error_of("a: " + std::string(100000, '[')), "");
}

TEST(LayoutFormats, do_not_ask_for_much_memory_for_small_files) {
    const LayoutShape large{1000, 65535};
    EXPECT_NE(error_of(R"({"expert_to_ep_rank": [65534]})", 0, large), "");
    EXPECT_NE(error_of("layer,gpu,slot,expert\n0,65534,65534,0\n", 0, large), "");
    EXPECT_NE(error_of("num_slots: 2000000000\ninitial_global_assignments: {0: [1]}\n", 8, large),
              "");
}

TEST(LayoutFormats, read_files_and_name_them) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "moehub_layout_test.json";
    std::ofstream(path, std::ios::binary) << layout_text(small(), LayoutFormat::sglang);
    EXPECT_EQ(read_layout(path, 2, shape_of(small())), small());
    std::filesystem::remove(path);
    EXPECT_THROW(read_layout(path, 2, shape_of(small())), InputError);
    EXPECT_THROW(read_layout(::testing::TempDir(), 2, shape_of(small())), InputError);
}

RC_GTEST_PROP(LayoutFormats, end_in_a_layout_or_in_one_line_when_bytes_are_changed, ()) {
    const auto formats = layout_formats();
    std::string text = layout_text(
        small(), parse_layout_format(formats[*rc::gen::inRange<std::size_t>(0, formats.size())]));
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
        text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    const std::string error = error_of(text, *rc::gen::element(0, 2));
    RC_ASSERT(error.empty() || error.starts_with("a.json:"));
    RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace moehub::layout_formats_test
