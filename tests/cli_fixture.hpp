/// For tests that run the program itself: exit codes, both outputs, files in a folder of their own.
#pragma once
#include "error_of.hpp"
#include "golden.hpp"
#include "own_folder.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace cli_test {

namespace fs = std::filesystem;

struct Outcome {
    int code = -1;
    std::string out;
    std::string err;
};

inline std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

class Cli : public ::testing::Test {
  protected:
    /// Runs a shell command line in which `moehub` is the built program.
    Outcome shell(const std::string& line) const {
        const std::string err = file("stderr");
        std::FILE* const pipe =
            popen(("moehub() { '" MOEHUB_PROGRAM "' \"$@\"; }; { " + line + "; } 2>'" + err + "'")
                      .c_str(),
                  "r");
        Outcome outcome;
        char block[4096];
        while (const auto got = std::fread(block, 1, sizeof block, pipe))
            outcome.out.append(block, got);
        const int status = pclose(pipe);
        outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        outcome.err = text_of(err);
        return outcome;
    }
    Outcome moehub(const std::string& arguments) const { return shell("moehub " + arguments); }
    nlohmann::json json_of(const std::string& arguments) const {
        const Outcome outcome = moehub(arguments + " --json");
        EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
        return nlohmann::json::parse(outcome.out);
    }

    /// Expects of a run's result that it is that of the second system compared, but for the lead.
    void expect_run_is_second_of(const std::string& run, const std::string& compare) const {
        nlohmann::json one = json_of(run)["results"][0];
        nlohmann::json row = json_of(compare)["results"][1];
        one.erase("speedup");
        row.erase("speedup");
        EXPECT_EQ(one, row);
    }

    std::string file(const std::string& name) const { return folder_.file(name); }
    std::string saved(const std::string& name, const std::string& text) const {
        return folder_.saved(name, text);
    }

    /// Ends well, and prints what this file of tests/golden holds.
    void expect_golden(const std::string& arguments, const std::string& name) const {
        const auto outcome = moehub(arguments);
        EXPECT_EQ(outcome.err, "");
        EXPECT_EQ(outcome.code, 0);
        golden::expect_text(outcome.out, MOEHUB_SOURCE_DIR "/tests/golden/" + name);
    }

    /// Bad input: this one line, code 2, nothing on standard output.
    void expect_refused(const std::string& arguments, const std::string& line) const {
        const auto outcome = moehub(arguments);
        EXPECT_EQ(outcome.err, "moehub: " + line + "\n") << arguments;
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
    }

    /// Bad input whose words are another room's: one line that contains `part`.
    void expect_refused_about(const std::string& arguments, const std::string& part) const {
        const auto outcome = moehub(arguments);
        EXPECT_TRUE(outcome.err.starts_with("moehub: ")) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
    }

    /// Expects of each refusal in a text (refusals_in) that `moehub` with `before` and its input
    /// says its line; where that ends in "…", that the line contains what stands before it.
    void expect_refusals(const std::string& before, const std::string& text) const {
        static const std::string kAndSoOn = "…";
        for (const auto& [input, line] : ::moehub::refusals_in(text)) {
            if (line.ends_with(kAndSoOn))
                expect_refused_about(before + input, line.substr(0, line.size() - kAndSoOn.size()));
            else
                expect_refused(before + input, line);
        }
    }

  private:
    ::moehub::OwnFolder folder_;
};

}  // namespace cli_test
