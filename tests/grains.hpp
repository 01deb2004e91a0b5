/// Tests of the fabric that are asked in both grains, and in both schemes.
#pragma once
#include "sim/fabric.hpp"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace moehub::testing {

inline std::string name_of(Grain grain) {
    return grain == Grain::packet ? "packet" : "row";
}

class InGrain : public ::testing::TestWithParam<Grain> {
  protected:
    sim::FabricOptions options() const {
        sim::FabricOptions options;
        options.grain = GetParam();
        return options;
    }
};

class InGrainAndScheme : public ::testing::TestWithParam<std::tuple<Grain, sim::Scheme>> {
  protected:
    sim::FabricOptions options() const {
        sim::FabricOptions options;
        std::tie(options.grain, options.scheme) = GetParam();
        return options;
    }
    bool rows() const { return options().grain == Grain::row; }
};

}  // namespace moehub::testing

/// Runs the tests of a suite on InGrain in both grains.
#define IN_BOTH_GRAINS(suite)                                                             \
    INSTANTIATE_TEST_SUITE_P(Grains, suite, ::testing::Values(Grain::packet, Grain::row), \
                             [](const auto& test) { return name_of(test.param); })

/// Runs the tests of a suite on InGrainAndScheme in both grains, in windows and on the heap.
#define IN_BOTH_GRAINS_AND_SCHEMES(suite)                                               \
    INSTANTIATE_TEST_SUITE_P(                                                           \
        Grains, suite,                                                                  \
        ::testing::Combine(::testing::Values(Grain::packet, Grain::row),                \
                           ::testing::Values(sim::Scheme::windows, sim::Scheme::heap)), \
        [](const auto& test) {                                                          \
            const bool heap = std::get<1>(test.param) == sim::Scheme::heap;             \
            return name_of(std::get<0>(test.param)) + (heap ? "_heap" : "_windows");    \
        })
