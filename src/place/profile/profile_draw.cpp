// Counts say how often an expert was chosen and not which were chosen together. Tokens are drawn so
// that every expert is expected as often as it was counted; choices of a token, and of its layers,
// are otherwise independent: what experts have in common is lost, their load is not.
#include "base/rng.hpp"
#include "model/expert_draw.hpp"
#include "model/routing_shares.hpp"

#include <moehub/error.hpp>
#include <moehub/profile.hpp>

#include <fmt/format.h>

namespace moehub {

Profile with_drawn_tokens(const Profile& profile, const Model& model, const DrawOptions& options) {
    if (profile.experts != model.experts)
        throw InputError(fmt::format("{}: found {} experts, allowed: {}, as the model has",
                                     profile.name, profile.experts, model.experts));
    Profile drawn = profile;
    drawn.top_k = model.top_k;
    drawn.tokens = options.tokens;
    drawn.steps = 0;
    drawn.step_counts.clear();
    drawn.chosen.resize(static_cast<std::size_t>(drawn.layers * drawn.tokens * drawn.top_k));
    GroupLimit limit;
    if (model.top_groups < model.expert_groups) limit = {model.expert_groups, model.top_groups};
    auto* next = drawn.chosen.data();
    for (int layer = 0; layer < drawn.layers; ++layer) {
        const auto counts = profile.counts_of(layer);
        ExpertDraw draw(capped({counts.begin(), counts.end()}, 1.0 / drawn.top_k), drawn.top_k,
                        limit);
        Rng rng(options.seed, static_cast<std::uint64_t>(layer));
        for (std::int64_t token = 0; token < drawn.tokens; ++token) {
            draw.next_token();
            draw.allow_groups(rng);
            for (int choice = 0; choice < drawn.top_k; ++choice) *next++ = draw.draw(rng);
        }
    }
    count_choices(drawn);
    return drawn;
}

}  // namespace moehub
