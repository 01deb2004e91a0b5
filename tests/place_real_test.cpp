// On recorded routing: is a layout found on the first half of the tokens better on the second half
// than EPLB's and MoETuner's?
#include <moehub/place.hpp>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace moehub::place_real_test {
namespace {

#ifdef MOEHUB_SANITIZED
constexpr bool kSearches = false;  // the clock would end them at once
#else
constexpr bool kSearches = true;
#endif

std::filesystem::path recorded(const std::string& name) {
    const char* const given = std::getenv("MOEHUB_ROUTING_DIR");
    const std::filesystem::path folder =
        given != nullptr ? given : MOEHUB_SOURCE_DIR "/../shared/data/routing";
    return folder / name;
}

/// What a layout costs on the half it was searched on, and on the other.
struct Outcome {
    Evaluation seen;
    Evaluation unseen;
    bool whole = true;  ///< not cut short by the clock of a busy machine
};

class Halves {
  public:
    explicit Halves(const std::string& path)
        : input_{.profiles = {read_profile(parse_profile_source(path + ":0-0.5"))}, .gpus = 8},
          judge_(read_profile(parse_profile_source(path + ":0.5-1"))) {}

    Outcome of(const std::string& method, const std::string& objective) const {
        PlaceOptions options;
        options.method = method;
        options.objective = parse_objective(objective);
        options.time_limit = 1;
        const PlaceResult result = place(input_, options);
        EXPECT_GE(result.gap, -1e-9) << method << ", " << objective;
        return {result.profiles[0], evaluate(judge_, result.layout), !result.cut_short};
    }

  private:
    PlaceInput input_;
    Profile judge_;
};

class PlaceReal : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!kSearches) GTEST_SKIP() << "not under a sanitizer";
        for (const std::string name : {"dsv2lite-law.npy", "dsv2lite-intent.npy"})
            if (!std::filesystem::exists(recorded(name)))
                GTEST_SKIP() << "no " << recorded(name)
                             << ": set MOEHUB_ROUTING_DIR to recorded routing";
    }
};

// A fifth fewer is far less than what a search that was cut short finds.
TEST_F(PlaceReal, sends_tokens_to_fewer_gpus_than_eplb_and_moetuner) {
    for (const std::string name : {"dsv2lite-law.npy", "dsv2lite-intent.npy"}) {
        SCOPED_TRACE(name);
        const Halves halves(recorded(name).string());
        const Evaluation eplb = halves.of("eplb", "gpus").unseen;
        const Evaluation tuned = halves.of("moetuner", "gpus").unseen;
        const Outcome joint = halves.of("joint", "gpus");
        EXPECT_LE(joint.seen.load_worst_layer, 1.06 + 1e-6);
        EXPECT_LE(joint.unseen.gpus_per_token, 0.8 * eplb.gpus_per_token);
        EXPECT_LE(joint.unseen.gpus_per_token, 0.8 * tuned.gpus_per_token);
        EXPECT_LE(joint.unseen.load_max_over_mean, eplb.load_max_over_mean + 0.045);
        if (joint.whole) {
            EXPECT_LE(joint.unseen.gpus_per_token, 3.35);
        }
    }
}

TEST_F(PlaceReal, keeps_more_transitions_and_a_lighter_pair_than_moetuner) {
    const Halves law(recorded("dsv2lite-law.npy").string());
    const Evaluation tuned = law.of("moetuner", "transitions").unseen;
    const Outcome stays = law.of("joint", "transitions");
    EXPECT_LT(stays.unseen.off_gpu_transitions, 0.9 * tuned.off_gpu_transitions);
    const Outcome even = law.of("joint", "2*transitions+pair");
    EXPECT_LT(even.unseen.off_gpu_transitions, 0.9 * tuned.off_gpu_transitions);
    EXPECT_LT(even.unseen.heaviest_pair, tuned.heaviest_pair);
    if (stays.whole) {
        EXPECT_LE(stays.unseen.off_gpu_transitions, 0.71);
    }
    if (even.whole) {
        EXPECT_LE(even.unseen.heaviest_pair, 0.92);
        EXPECT_LE(even.unseen.off_gpu_transitions, 0.75);
    }
}

TEST_F(PlaceReal, is_as_even_as_moetuner) {
    const Halves law(recorded("dsv2lite-law.npy").string());
    const Outcome tuned = law.of("moetuner", "load");
    const Outcome joint = law.of("joint", "load");
    EXPECT_LE(joint.seen.load_max_over_mean, tuned.seen.load_max_over_mean + 0.001);
    // On other tokens both are as uneven as those differ from the ones that were seen.
    EXPECT_LE(joint.unseen.load_max_over_mean, tuned.unseen.load_max_over_mean + 0.005);
}

}  // namespace
}  // namespace moehub::place_real_test
