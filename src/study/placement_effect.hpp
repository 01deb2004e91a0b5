/// Recorded tokens as routings of single layers, step by step; and what placement_effect() cannot
/// do.
#pragma once
#include <moehub/placement_effect.hpp>
#include <moehub/profile.hpp>
#include <moehub/routing.hpp>

#include <cstdint>
#include <vector>

namespace moehub {

/// Runs of tokens of a profile. Tokens with fewer experts than others in some layer (Profile::
/// kNobody) are passed over: a layer is simulated with as many rows for every token.
class ProfileSteps {
  public:
    /// Cuts tokens into whole steps, at most `most_steps`; fewer tokens than one step has are all
    /// in one. Throws InputError where no token is complete.
    ProfileSteps(const Profile& profile, std::int64_t step_tokens, int most_steps);

    int steps() const { return steps_; }
    std::int64_t tokens() const { return tokens_; }  ///< tokens of a step
    std::int64_t incomplete() const { return incomplete_; }

    /// A routing in which all experts of a token have equal weights.
    Routing routing(int layer, int step) const;

  private:
    const Profile& profile_;
    std::vector<std::int64_t> complete_;  ///< numbers of the tokens that have all experts
    std::int64_t incomplete_ = 0;
    std::int64_t tokens_ = 0;
    int steps_ = 0;
};

/// Throws InputError unless the sizes of everything fit together.
void check_sizes(const EffectInput& input, const EffectOptions& options);

/// Throws InputError where a system cannot run a layer of a layout, naming both.
void check_layers(const EffectInput& input, const EffectOptions& options,
                  const ProfileSteps& steps);

}  // namespace moehub
