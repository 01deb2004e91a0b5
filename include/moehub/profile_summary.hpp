/// What recorded routing is like: how uneven the load of experts is, how choices hang together, and
/// whether they stay the same. All that placing experts can use, and all that stands in its way.
///
///     const Profile profile = read_profile(parse_profile_source("trace.npy"));
///     const ProfileSummary summary = summarize(profile, {.gpus = 8});
///     std::cout << summary.layers[3].load.largest_over_mean;
///
/// "By chance" is what the same loads would give if nothing else were there: what exceeds it is
/// structure, what does not is noise. Shares are fractions of 1.
#pragma once
#include <moehub/profile.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// How rows load one layer's experts. All 0 where it has no rows.
struct LoadSummary {
    double rows = 0;          ///< (token, expert) pairs
    std::int64_t tokens = 0;  ///< tokens that chose an expert here; 0: only counts are known
    double mean = 0;          ///< rows of an expert
    double largest = 0;
    int busiest = 0;  ///< expert with the most rows; of equal ones the first
    double largest_over_mean = 0;
    double busiest_share = 0;      ///< share of the rows that the busiest expert has
    double variation = 0;          ///< standard deviation of the experts' rows over their mean
    double gini = 0;               ///< 0: all experts alike; towards 1: few have all rows
    double effective_experts = 0;  ///< exp of the entropy: so many equal ones were as uneven
    int never_chosen = 0;
    double largest_over_gpu = 0;  ///< the busiest expert over the mean of the GPUs
    /// No placement with one copy of each expert and equal slots has a busiest GPU below this,
    /// over the mean of the GPUs.
    double gpu_bound = 0;
    double gpu_contiguous = 0;  ///< the busiest GPU over the mean, experts in order
};

/// How much of a matrix of pairs its heaviest tenth holds; 0.1 if all were alike.
struct Concentration {
    double heaviest_tenth = 0;
    double by_chance = 0;  ///< share if both sides of a pair were independent
};

/// Experts of one token that were chosen in the same layer.
struct CoactivePair {
    int first = 0;
    int second = 0;
    std::int64_t together = 0;  ///< tokens that chose both
    double lift = 0;            ///< tokens together over what the loads give by chance
};
struct CoactivationSummary {
    std::int64_t pairs = 0;  ///< (token, unordered pair) combinations counted
    Concentration concentration;
    std::vector<CoactivePair> top;  ///< pairs farthest above chance, most first
    double top_share = 0;           ///< share of the counted pairs that `top` has
    double top_share_by_chance = 0;
};

/// From a layer to the next: every (expert here, expert there) of a token.
struct TransitionSummary {
    std::int64_t transitions = 0;
    Concentration concentration;
    double information = 0;            ///< mutual, in bits: what one choice tells of the other
    double information_by_chance = 0;  ///< about what so few tokens show by chance
    double off_gpu = 0;                ///< share that changes GPU, experts in order
};

/// Loads of one layer at two times, or in two profiles.
struct LoadDifference {
    double total_variation = 0;         ///< share of the rows that would have to change expert
    double by_chance = 0;               ///< about the variation of tokens drawn alike
    std::optional<double> correlation;  ///< correlation of the loads; none where one side is even
};

struct LayerSummary {
    int number = 0;  ///< number of the layer in the model
    LoadSummary load;
    std::optional<CoactivationSummary> coactivation;  ///< none without tokens, or with top-1
    std::optional<TransitionSummary> next;            ///< transitions to the profile's next layer
    std::optional<LoadDifference> halves;  ///< first half to second; none for counts without steps
};

struct ProfileSummary {
    std::string name;
    int experts = 0;
    int top_k = 0;
    std::int64_t tokens = 0;
    int steps = 0;
    int gpus = 0;
    std::vector<LayerSummary> layers;
    std::vector<double> counts;    ///< rows of each expert: [layer][expert]
    std::int64_t pair_tokens = 0;  ///< tokens that pairs and transitions were counted in
    std::vector<std::string> notes;
};

struct SummaryOptions {
    int gpus = 8;
    int top_pairs = 8;  ///< co-activated pairs told, per layer
    /// Most transitions counted from a layer to the next: of more tokens an even sample is taken.
    /// More than 2^24 count as 2^24.
    std::int64_t most_pairs = std::int64_t{1} << 22;
};

/// Throws InputError when `gpus` is not 1 to the number of experts.
ProfileSummary summarize(const Profile& profile, const SummaryOptions& options = {});

/// Pairs of one layer, for a picture. Empty without tokens, or where there are too many experts.
struct PairMatrices {
    int experts = 0;
    std::vector<double> lift;  ///< [expert][expert], chosen together over chance; 0 on the diagonal
    std::vector<double> next;  ///< [expert][expert of the next layer], over chance; empty: the last
};
PairMatrices pair_matrices(const Profile& profile, int layer, const SummaryOptions& options = {});

/// How different two profiles are, over the layers.
struct ProfileDifference {
    std::size_t first = 0;  ///< indices into the list of profiles
    std::size_t second = 0;
    double total_variation = 0;  ///< mean over layers
    double by_chance = 0;
    double worst = 0;     ///< total variation of the worst layer
    int worst_layer = 0;  ///< number of the worst layer in the model
    std::optional<double> correlation;
};
/// Every pair of profiles. Throws InputError unless all have the same layers and experts.
std::vector<ProfileDifference> differences(const std::vector<Profile>& profiles);

}  // namespace moehub
