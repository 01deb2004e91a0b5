// Does a trace become the routing it records, and say what is wrong with it?
#include "model/routing_trace.hpp"

#include <moehub/error.hpp>
#include <moehub/routing.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace moehub::routing_trace_test {
namespace {

TEST(OneLayer, takes_the_first_tokens_and_repeats_them_where_they_are_too_few) {
    Model model;
    model.experts = 8;
    model.top_k = 2;
    const Routing routing = make_routing({}, model, 10, 3);
    const Routing one = one_layer(routing, 2, 25);
    EXPECT_EQ(one.layers, 1);
    EXPECT_EQ(one.tokens, 25);
    EXPECT_EQ(one.chosen.size(), 50u);
    for (std::int64_t token = 0; token < 25; ++token) {
        const auto a = one.chosen_by(0, token), b = routing.chosen_by(2, token % 10);
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
        EXPECT_EQ(one.weights_of(0, token)[0], routing.weights_of(2, token % 10)[0]);
    }
    EXPECT_EQ(one_layer(routing, 0, 4).chosen.size(), 8u);
    EXPECT_THROW(one_layer(routing, 3, 1), InputError);
    EXPECT_THROW(one_layer(routing, -1, 1), InputError);
    EXPECT_THROW(one_layer(routing, 0, 0), InputError);
}

std::string trace(const std::string& shape, const std::string& values) {
    const std::string header = "{'descr': '|i1', 'fortran_order': False, 'shape': " + shape + "}\n";
    return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
           values;
}

std::string refused_trace(const std::string& shape, const std::string& values, int experts) {
    try {
        routing_of(NpyArray::parse(trace(shape, values), "t.npy"), experts, "t.npy");
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(RoutingTrace, is_read_by_token_and_kept_by_layer) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "moehub_routing_test.npy";
    const std::string values = {0, 1, 2, 3, 4, 5, /* token 1 */ 6, 7, 0, 2, 5, 1};
    std::ofstream(path, std::ios::binary) << trace("(2, 3, 2)", values);
    const Routing routing = read_routing(path, 8);
    std::filesystem::remove(path);
    EXPECT_EQ(routing.tokens, 2);
    EXPECT_EQ(routing.layers, 3);
    EXPECT_EQ(routing.top_k, 2);
    EXPECT_EQ(routing.experts, 8);
    EXPECT_EQ(routing.chosen, (std::vector<std::uint16_t>{0, 1, 6, 7, 2, 3, 0, 2, 4, 5, 5, 1}));
    EXPECT_EQ(routing.weights, std::vector<float>(12, 0.5f));
}

TEST(RoutingTrace, says_which_token_is_wrong) {
    EXPECT_EQ(refused_trace("(2, 1, 2)", {0, 1, 2, 8}, 8),
              "t.npy: token 1, layer 0: found expert 8, allowed: 0 to 7");
    EXPECT_EQ(refused_trace("(1, 2, 2)", {0, 1, -1, 2}, 8),
              "t.npy: token 0, layer 1: found expert -1, allowed: 0 to 7");
    EXPECT_EQ(refused_trace("(1, 2, 2)", {0, 1, 1, 1}, 8),
              "t.npy: token 0, layer 1: found expert 1 twice, allowed: once");
    EXPECT_EQ(refused_trace("(2, 1, 2)", {0, 1, 1, 0}, 8), "");
}

TEST(RoutingTrace, refuses_other_shapes) {
    const std::string allowed =
        ", allowed: (tokens, layers, top_k), tokens 1 to 2147483648, layers 1 or more, top_k 1 to "
        "the 8 experts";
    EXPECT_EQ(refused_trace("(2, 2)", {0, 1, 2, 3}, 8), "t.npy: found shape (2, 2)" + allowed);
    EXPECT_EQ(refused_trace("(0, 2, 2)", "", 8), "t.npy: found shape (0, 2, 2)" + allowed);
    EXPECT_EQ(refused_trace("(1, 1, 9)", "123456789", 8), "t.npy: found shape (1, 1, 9)" + allowed);
    EXPECT_EQ(refused_trace("(1, 1, 1)", {0}, 0), "t.npy: experts: found 0, allowed: 1 to 65535");
}

}  // namespace
}  // namespace moehub::routing_trace_test
