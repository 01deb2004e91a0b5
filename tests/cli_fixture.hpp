/// For tests that run the program itself: exit codes, both outputs, files in a folder of their own.
#pragma once
#include "golden.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
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

class Cli : public testing::Test {
  protected:
    Cli() {
        std::string name = (fs::temp_directory_path() / "moehub-cli-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        folder_ = name;
    }
    ~Cli() override { fs::remove_all(folder_); }

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

    std::string file(const std::string& name) const { return (folder_ / name).string(); }
    std::string saved(const std::string& name, const std::string& text) const {
        std::ofstream(file(name), std::ios::binary) << text;
        return file(name);
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

    /// As above where the words are another room's: one line that contains `part`.
    void expect_refused_about(const std::string& arguments, const std::string& part) const {
        const auto outcome = moehub(arguments);
        EXPECT_TRUE(outcome.err.starts_with("moehub: ")) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
    }

  private:
    fs::path folder_;
};

}  // namespace cli_test
