// Does what is printed fit the terminal?
#include "base/utf8.hpp"
#include "cli_fixture.hpp"
#include "hidden_topics.hpp"
#include "report/text_style.hpp"

#include <sstream>
#include <vector>

namespace moehub::width_test {
namespace {

using cli_test::Cli;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

void expect_width(const std::string& text, std::size_t width, const std::string& what) {
    EXPECT_FALSE(text.empty()) << what;
    for (const std::string& line : lines_of(text))
        EXPECT_LE(display_width(line), width) << what << "\n" << line;
}

TextTable wide_table() {
    TextTable table({{"system", TextTable::Align::left},
                     {"exposed communication"},
                     {"why", TextTable::Align::text},
                     {"busy", TextTable::Align::bar},
                     {"SM busy", TextTable::Align::right, 1},
                     {"packets", TextTable::Align::right, 2}});
    table.add({"moe-hub", "12.5", "rows go where they are needed, and nowhere else", bar(1.0, 40),
               "66.8 %", "1,234"});
    table.add({"ideal", "0.0", "no packets", bar(0.5, 40), "99.0 %", "0"});
    return table;
}

TEST(TableWidth, fits_any_width_and_names_what_is_missing) {
    const TextTable table = wide_table();
    for (const int width : {200, 120, 100, 80, 60, 40, 20, 9}) {
        const std::string text = table.text({false, width});
        expect_width(text, static_cast<std::size_t>(width), std::to_string(width));
        EXPECT_NE(text.find("moe-hub"), std::string::npos) << width;
        const bool has_packets = lines_of(text)[0].find("packets") != std::string::npos ||
                                 lines_of(text)[1].find("packets") != std::string::npos;
        EXPECT_EQ(text.find("Not in") == std::string::npos, has_packets) << text;
    }
}

TEST(TableWidth, gives_up_titles_then_bars_then_text_then_columns_by_rank) {
    const TextTable table = wide_table();
    const std::string all = table.text();
    EXPECT_EQ(lines_of(all).size(), 4u);
    const std::string titles = table.text({false, 138});
    EXPECT_EQ(lines_of(titles).size(), 5u) << titles;  // "exposed / communication"
    EXPECT_NE(titles.find(bar(1.0, 40)), std::string::npos) << titles;
    const std::string bars = table.text({false, 118});
    EXPECT_EQ(bars.find(bar(1.0, 40)), std::string::npos) << bars;
    EXPECT_NE(bars.find("and nowhere else"), std::string::npos) << bars;
    const std::string narrow = table.text({false, 60});
    EXPECT_NE(narrow.find("Not in 60 columns: SM busy, packets;"), std::string::npos) << narrow;
}

TEST(TableWidth, shorter_bars_keep_their_shares) {
    TextTable table({{"a", TextTable::Align::left}, {"", TextTable::Align::bar}});
    table.add({"x", bar(1.0, 40)});
    table.add({"y", bar(0.5, 40)});
    EXPECT_EQ(table.text({false, 23}),
              "a\n─  ────────────────────\nx  " + bar(1.0, 20) + "\ny  " + bar(0.5, 20) + "\n");
}

TEST(Fitted, breaks_at_blanks_under_the_lines_own_words) {
    EXPECT_EQ(fitted("- one two three four five\n", 20), "- one two three four\n  five\n");
    EXPECT_EQ(fitted("  name  what is meant by this name\n", 26),
              "  name  what is meant by\n        this name\n");
    EXPECT_EQ(fitted("short\nlines\n", 10), "short\nlines\n");
    EXPECT_EQ(fitted("tp=2,pp=8,ep=8", 10), "tp=2,pp=8,\nep=8\n");
    EXPECT_EQ(fitted("\x1b[1mone two\x1b[0m\n", 7), "\x1b[1mone two\x1b[0m\n");
}

TEST(Fitted, takes_the_rest_of_a_sentence_along) {
    EXPECT_EQ(fitted("one two three four\nfive. Six.\nSeven.\n", 15),
              "one two three\nfour five. Six.\nSeven.\n");
}

class WidthCli : public Cli {
  protected:
    void expect_fits(const std::string& arguments) const {
        for (const std::size_t width : {60U, 80U, 200U}) {
            const auto outcome = shell("COLUMNS=" + std::to_string(width) + " moehub " + arguments);
            EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
            expect_width(outcome.out, width, arguments);
        }
    }
};

TEST_F(WidthCli, layers_and_models_fit) {
    const std::string small = "--gpus 2 --tokens 64 ";
    expect_fits("compare " + small);
    expect_fits("compare --layer-type tp --sublayer all " + small);
    expect_fits("run " + small);
    expect_fits("run --layer-type tp " + small);
    expect_fits("gain --models mixtral-8x7b " + small);
    expect_fits("model --training " + small);
    expect_fits("model --model llama-7b " + small);
}

TEST_F(WidthCli, serving_fits) {
    expect_fits("model --decode --model qwen3-30b-a3b --gpus 1 --context 500 --batch-per-gpu 8");
    expect_fits("model --decode --model qwen3-30b-a3b --gpus 1 --context 500 --batch-per-gpu 8,16");
}

TEST_F(WidthCli, plans_fit) {
    const std::string plan =
        "plan --model mixtral-8x7b --machine dgx-h100 --gpus 8 --sequence 1024 --global-batch 32 "
        "--set model.layers=8 --set model.hidden=1024 ";
    expect_fits(plan + "--fix etp=1,mb=1,tp=1,sharding=zero1 --top 3");
    expect_fits(plan + "--fix tp=1,mb=1,ep=8 --system all-to-all,moe-hub");
    expect_fits(plan + "--explain pp=4,ep=2,recompute=norms+activations,offload=activations");
    const std::string axes = saved("axes.toml", "layers = '6..10'\nhidden = '1024, 2048'\n");
    expect_fits(plan +
                "--fix tp=2,pp=2,ep=4,mb=1 --search-model --params 14e9±80% --active 4e9±90% "
                "--shapes " +
                axes);
}

TEST_F(WidthCli, what_there_is_fits) {
    for (const std::string command : {"", "--help", "compare --help", "plan --help", "area",
                                      "lines", "list", "reproduce", "collective --bytes 64K"})
        expect_fits(command);
    expect_fits("predict gemm m=4096 n=7168 k=2048 --explain");
    expect_fits("validate " MOEHUB_SOURCE_DIR "/validation/h200/gemm_beside_copy.csv");
}

TEST_F(WidthCli, recorded_routing_fits) {
    const auto file =
        saved("routing.npy",
              npy_of(topic_profile({.layers = 4, .experts = 16, .topics = 4, .tokens = 300}, 1)));
    expect_fits("profile " + file);
    expect_fits("profile --layer 1 " + file);
    expect_fits("place --gpus 4 --time-limit 0.1 --profile " + file);
    expect_fits("place --gpus 4 --dense-layers 0 --time-limit 0.2 --pareto --profile " + file +
                " -o " + this->file("a.json"));
}

TEST_F(WidthCli, prints_the_golden_comparison_in_eighty_columns) {
    const auto outcome = shell(
        "COLUMNS=80 moehub compare --gpus 4 --tokens 256 --systems "
        "ideal,megatron-te,deepep,moe-hub");
    golden::expect_text(outcome.out, MOEHUB_SOURCE_DIR "/tests/golden/compare_80.txt");
}

TEST_F(WidthCli, files_and_pipes_get_everything) {
    const std::string compare = "moehub compare --gpus 4 --tokens 256 --systems ideal,moe-hub";
    const auto pipe = shell(compare + " | cat");
    shell("COLUMNS=60 " + compare + " -o " + file("a.txt"));
    EXPECT_EQ(cli_test::text_of(file("a.txt")), pipe.out);
    EXPECT_NE(pipe.out.find("SM busy"), std::string::npos);
    for (const std::string columns : {"0", "-3", "many", ""})
        EXPECT_EQ(shell("COLUMNS=" + columns + " " + compare).out, pipe.out) << columns;
}

}  // namespace
}  // namespace moehub::width_test
