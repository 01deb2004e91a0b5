/// What tests compare with files that they themselves write: texts (tests/golden), pages (docs) and
/// errors of fits (validation). With MOEHUB_REGENERATE in the environment they are written anew and
/// the tests fail: such a run has compared nothing. CONTRIBUTING.md has the command.
#pragma once
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace golden {

/// Written anew? Tests that ask have Golden in their names, by which that command finds them.
inline bool regenerated(const std::string& text, const std::string& path) {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = fmt::format("{}.{}", test.test_suite_name(), test.name());
    EXPECT_NE(name.find("olden"), std::string::npos) << name << " is not found by *olden*";
    if (std::getenv("MOEHUB_REGENERATE") == nullptr) return false;
    std::ofstream(path, std::ios::binary) << text;
    ADD_FAILURE() << path
                  << " is written anew, as MOEHUB_REGENERATE asks, and compared with nothing";
    return true;
}

inline void expect_text(const std::string& text, const std::string& path) {
    if (regenerated(text, path)) return;
    std::ostringstream known;
    known << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(text, known.str()) << path;
}

/// A line of a file of errors: what they were, and what they must never be.
struct KnownErrors {
    std::size_t rows = 0;
    double median = 0, p90 = 0;
    double most_median = 0, most_p90 = 0;  ///< set by hand; regenerating keeps them
};

inline std::map<std::string, KnownErrors> known_errors(const std::string& path) {
    std::map<std::string, KnownErrors> known;
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "name,rows,median,p90,most_median,most_p90") << path;
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string name;
        std::getline(fields, name, ',');
        KnownErrors& one = known[name];
        char comma = 0;
        fields >> one.rows >> comma >> one.median >> comma >> one.p90 >> comma >> one.most_median >>
            comma >> one.most_p90;
        EXPECT_TRUE(fields) << path << ": " << line;
    }
    return known;
}

/// Expects the file's groups with as many rows, none met worse than it says by more than this, or
/// beyond the file's limits, however often it is written anew. `now`: of validate().
inline void expect_errors(const auto& now, const std::string& path, double worse_median,
                          double worse_p90) {
    const std::map<std::string, KnownErrors> known = known_errors(path);
    std::string text = "name,rows,median,p90,most_median,most_p90\n";
    for (const auto& one : now) {
        const auto found = known.find(one.name);
        if (found == known.end()) {
            ADD_FAILURE() << path << " has no " << one.name;
            text +=
                fmt::format("{},{},{:.4f},{:.4f},0,0\n", one.name, one.rows, one.median, one.p90);
            continue;
        }
        const KnownErrors& was = found->second;
        text += fmt::format("{},{},{:.4f},{:.4f},{},{}\n", one.name, one.rows, one.median, one.p90,
                            was.most_median, was.most_p90);
        EXPECT_LE(one.median, was.most_median) << one.name << ": beyond the limit";
        EXPECT_LE(one.p90, was.most_p90) << one.name << ": beyond the limit";
    }
    if (regenerated(text, path)) return;
    EXPECT_EQ(now.size(), known.size()) << path << " has groups that nothing was predicted of";
    for (const auto& one : now) {
        const auto found = known.find(one.name);
        if (found == known.end()) continue;
        EXPECT_EQ(one.rows, found->second.rows) << one.name;
        EXPECT_LE(one.median, found->second.median + worse_median) << one.name;
        EXPECT_LE(one.p90, found->second.p90 + worse_p90) << one.name;
    }
}

}  // namespace golden
