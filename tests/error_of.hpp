/// For tests of bad input.
#pragma once
#include <moehub/error.hpp>

#include <string>

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

}  // namespace moehub
