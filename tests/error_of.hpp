/// For tests of bad input.
#pragma once
#include <moehub/error.hpp>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace moehub {

/// The one line of the InputError that `action` throws; "accepted" when it does not.
template <class Action>
std::string error_of(const Action& action) {
    try {
        action();
    } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        return error.what();
    }
    return "accepted";
}

/// What is wrong, and the line that says so.
struct Refusal {
    std::string input;
    std::string error;
};

/// The refusals that a text holds: lines of input, and below them, indented by four blanks, the
/// line that it gets.
inline std::vector<Refusal> refusals_in(const std::string& text) {
    std::vector<Refusal> refusals;
    std::string input;
    std::istringstream lines(text.substr(text.starts_with('\n') ? 1 : 0));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("    ")) {
            if (input.ends_with('\n')) input.pop_back();
            refusals.push_back({std::exchange(input, ""), line.substr(4)});
        } else {
            input += line + "\n";
        }
    }
    EXPECT_EQ(input, "") << "no line stands below it";
    EXPECT_FALSE(refusals.empty());
    return refusals;
}

/// Expects of each refusal in a text that `error(input)` is its line; of a line that ends in "…",
/// that the error begins with it.
template <class Error>
void expect_errors(const Error& error, const std::string& text) {
    static const std::string kAndSoOn = "…";
    for (const auto& [input, line] : refusals_in(text)) {
        const std::string found = error(input);
        if (line.ends_with(kAndSoOn)) {
            const std::string begin = line.substr(0, line.size() - kAndSoOn.size());
            EXPECT_EQ(found.substr(0, begin.size()), begin) << input;
        } else {
            EXPECT_EQ(found, line) << input;
        }
    }
}

}  // namespace moehub
