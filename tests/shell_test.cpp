// Do shells and man know the program? Does Ctrl-C end it well?
#include "cli_fixture.hpp"

#include <string>

namespace moehub::shell_test {
namespace {

using cli_test::Cli;

class ShellCli : public Cli {
  protected:
    /// What bash would offer for the last of the words.
    std::string completed(const std::string& words) const {
        const auto outcome =
            shell("moehub completion bash > '" + file("moehub.bash") +
                  "'; bash -c 'source \"$0\"; COMP_WORDS=(moehub " + words +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _moehub; echo \"${COMPREPLY[*]}\"' '" +
                  file("moehub.bash") + "'");
        EXPECT_EQ(outcome.err, "") << words;
        return outcome.out;
    }
    /// Sends SIGINT after a while; both outputs and the exit code.
    std::string interrupted(const std::string& arguments, const std::string& after) const {
        const auto outcome = shell("timeout --foreground --preserve-status -s INT -k 20 " + after +
                                   " '" MOEHUB_PROGRAM "' " + arguments + "; echo \"code $?\"");
        return outcome.out + outcome.err;
    }
};

TEST_F(ShellCli, bash_completes_commands_options_and_values) {
    const std::pair<std::string, std::string> typed[] = {
        {"compa", "compare"},
        {"compare --mach", "--machine"},
        {"compare --machine dgx-h", "dgx-h100 dgx-h200 dgx-h800"},
        {"compare --machine = dgx-h1", "dgx-h100"},
        {"compare --systems ideal,megat", "ideal,megatron-te"},
        {"compare --grain \"\"", "packet row"},
        {"predict mla", "mla-prefill mla-decode"},
        {"compare --tokens \"\"", ""}};
    for (const auto& [words, offered] : typed) EXPECT_EQ(completed(words), offered + "\n") << words;
    EXPECT_NE(completed("validate '" + file("moehub.b") + "'").find("moehub.bash"),
              std::string::npos);
}

TEST_F(ShellCli, every_shell_reads_its_completion) {
    EXPECT_EQ(shell("moehub completion bash | bash -n").code, 0);
    const auto zsh = moehub("completion zsh");
    EXPECT_TRUE(zsh.out.starts_with("#compdef moehub\n"));
    EXPECT_NE(moehub("completion fish").out.find("-l machine "), std::string::npos);
    const auto known = shell(
        "for one in zsh fish; do command -v $one > /dev/null || continue; "
        "moehub completion $one | $one -n /dev/stdin || echo $one; done");
    EXPECT_EQ(known.out + known.err, "");
    expect_refused("completion tcsh", "shell: found \"tcsh\", allowed: bash, zsh, fish");
}

TEST_F(ShellCli, manual_page_is_well_formed) {
    const auto lint = shell("moehub man > '" + file("moehub.1") + "'; mandoc -T lint -W warning '" +
                            file("moehub.1") + "'");
    EXPECT_EQ(lint.out + lint.err, "");
    const auto page = shell("mandoc -T utf8 '" + file("moehub.1") + "' | col -b");
    for (const char* words : {"moehub compare", "--tokens-per-gpu N", "EXIT STATUS", "COLUMNS"})
        EXPECT_NE(page.out.find(words), std::string::npos) << words;
}

TEST_F(ShellCli, ctrl_c_ends_at_once_and_leaves_nothing) {
    const auto output = file("out.txt");
    const std::string said =
        interrupted("compare --grain packet --tokens 200000 -o '" + output + "'", "0.5");
    EXPECT_EQ(said, "code 130\nmoehub: interrupted; nothing was written\n");
    for (const auto& one :
         cli_test::fs::directory_iterator(cli_test::fs::path(output).parent_path()))
        EXPECT_EQ(one.path().filename().string().find("out.txt"), std::string::npos) << one.path();
}

}  // namespace
}  // namespace moehub::shell_test
