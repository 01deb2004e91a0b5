// Runs `moehub reproduce`. Texts that hold simulated times are in tests/golden, the page in docs;
// golden.hpp says how they are written anew.
#include "cli_fixture.hpp"

#include <moehub/reproduce.hpp>

#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace reproduce_cli_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using nlohmann::json;

class ReproduceCli : public Cli {
  protected:
    /// Runs the program in a folder of its own.
    Outcome in_folder(const std::string& arguments) const {
        return shell("cd '" + file("") + "' && moehub " + arguments);
    }
};

class ReproduceGolden : public ReproduceCli {};

TEST_F(ReproduceGolden, quick) {
    const auto outcome = in_folder("reproduce moe-hub --quick");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    golden::expect_text(outcome.out, MOEHUB_SOURCE_DIR "/tests/golden/reproduce_quick.txt");
    EXPECT_FALSE(cli_test::fs::exists(file("docs"))) << "nothing is written";
}

#ifndef MOEHUB_SANITIZED  // the whole evaluation takes minutes there

TEST_F(ReproduceGolden, page_in_the_docs_with_every_difference_explained) {
    const auto outcome = in_folder("reproduce moe-hub --json --page moe-hub.md");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "moehub: wrote moe-hub.md\n");
    const json all = json::parse(outcome.out);
    for (const auto* kind : {"numbers", "claims"})
        for (const json& one : all[kind])
            EXPECT_EQ(one["explained"], true) << one["figure"] << ", " << one["what"];
    golden::expect_text(text_of(file("moe-hub.md")),
                        MOEHUB_SOURCE_DIR "/docs/reproduction/moe-hub.md");
}

#endif

TEST_F(ReproduceCli, a_page_is_written_where_the_user_says_and_nowhere_else) {
    const std::string docs = file("docs/reproduction");
    cli_test::fs::create_directories(docs);
    EXPECT_EQ(in_folder("reproduce pangu --figure parameters").code, 0);
    EXPECT_EQ(in_folder("reproduce moe-hub --quick --figure tokens").code, 0);
    EXPECT_TRUE(cli_test::fs::is_empty(docs));
    const auto asked = in_folder("reproduce moe-hub --quick --figure tokens --page mine.md");
    EXPECT_EQ(asked.code, 0) << asked.err;
    EXPECT_EQ(asked.err, "moehub: wrote mine.md\n");
    const auto page = text_of(file("mine.md"));
    EXPECT_NE(page.find("    moehub reproduce moe-hub --figure tokens --quick --page moe-hub.md\n"),
              std::string::npos);
    EXPECT_NE(page.find("Quick: a few cells"), std::string::npos);
    EXPECT_TRUE(cli_test::fs::is_empty(docs));
}

TEST_F(ReproduceCli, threads_give_the_same_json) {
    const auto one = in_folder("reproduce moe-hub --quick --figure ablation --json --threads 1");
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(in_folder("reproduce moe-hub --quick --figure ablation --json").out, one.out);
    const json all = json::parse(one.out);
    EXPECT_EQ(all["paper"], "moe-hub");
    EXPECT_EQ(all["quick"], true);
    EXPECT_EQ(all["numbers"].size(), 2u);
    EXPECT_EQ(all["cells"].size(), 16u) << "two readings, two models, four systems";
}

TEST_F(ReproduceCli, papers_are_listed) {
    const auto outcome = moehub("reproduce");
    EXPECT_EQ(outcome.code, 0);
    for (const auto* part : {"moe-hub", "end-to-end", "scaling"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
    EXPECT_NE(moehub("reproduce --help").out.find("Example:"), std::string::npos);
}

TEST_F(ReproduceCli, words_that_do_not_fit_are_refused) {
    expect_refused(
        "reproduce moehub",
        "paper: found \"moehub\", allowed: moe-hub, dysharp, cais, moetuner, pangu; did you "
        "mean \"moe-hub\"?");
    expect_refused(
        "reproduce moe-hub --figure ablaton",
        "figure: found \"ablaton\", allowed: layer, end-to-end, tokens, imbalance, ablation, "
        "scaling; did you mean \"ablation\"?");
    expect_refused_about("reproduce moe-hub --figure ''", "allowed: layer, end-to-end");
    for (const auto* option : {"--figure layer", "--quick", "--page x.md"})
        expect_refused_about(std::string("reproduce ") + option, "requires paper");
    expect_refused("reproduce moe-hub --quick --threads 0",
                   "--threads: found \"0\", allowed: a whole number from 1 to 4096");
    expect_refused("reproduce moe-hub --quick -o /no/such/out",
                   "/no/such/out: cannot be written: No such file or directory");
    expect_refused("reproduce moe-hub --quick --page /no/such/page",
                   "/no/such/page: cannot be written: No such file or directory");
}

}  // namespace
}  // namespace reproduce_cli_test
