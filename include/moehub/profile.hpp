/// Profile: recorded routing, from which experts are placed. Either every token's experts, or only
/// how often each expert was chosen.
///
///     const Profile profile = read_profile(parse_profile_source("trace.npy:0-0.5"));
#pragma once
#include <moehub/model.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moehub {

struct Profile {
    /// Stands in `chosen` for nobody: a token that was recorded with fewer experts than others.
    static constexpr std::uint16_t kNobody = 0xFFFF;

    std::string name;   ///< what it was read from, as the user wrote it
    double weight = 1;  ///< share beside other profiles; above 0
    int layers = 0;
    int experts = 0;
    int top_k = 0;                      ///< 0: only counts are known
    std::int64_t tokens = 0;            ///< 0: only counts are known
    std::vector<std::uint16_t> chosen;  ///< [layer][token][choice], distinct within a token
    std::vector<double> counts;         ///< [layer][expert]: tokens that chose it

    /// Steps that counts were recorded by, and the counts of each: [step][layer][expert].
    int steps = 0;
    std::vector<double> step_counts;

    /// The model's numbers of these layers, ascending from 0, and how many layers the model has,
    /// dense ones included. Without other knowledge 0 … layers − 1.
    std::vector<int> layer_numbers;
    int model_layers = 0;
    bool layers_said = false;  ///< numbers are the file's or the user's; else the first is 0

    bool has_tokens() const { return tokens > 0; }
    std::span<const std::uint16_t> chosen_by(int layer, std::int64_t token) const {
        return {chosen.data() + static_cast<std::size_t>((layer * tokens + token) * top_k),
                static_cast<std::size_t>(top_k)};
    }
    std::span<const double> counts_of(int layer) const {
        return {counts.data() + static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts),
                static_cast<std::size_t>(experts)};
    }
};

/// What the user wrote: FILE[:from-to][@weight], fractions of the tokens (or steps), e.g.
/// "law.npy:0-0.5@2".
struct ProfileSource {
    std::string path;
    double from = 0;
    double to = 1;
    double weight = 1;
    std::string text;  ///< source as the user wrote it
};
/// Throws InputError when fractions or weight are not what is allowed.
ProfileSource parse_profile_source(const std::string& text);

/// What an array of three dimensions holds, [tokens, layers, k] or [steps, layers, experts];
/// by_itself: found out from the numbers.
enum class ArrayKind { by_itself, tokens, counts };

struct ProfileOptions {
    int experts = 0;  ///< 0: found out (columns of counts, the largest id plus one)
    ArrayKind kind = ArrayKind::by_itself;
    /// Layers of the model that come before the first recorded one, where the file does not say.
    int dense_layers = 0;
    /// Shape of ids; only for files that do not say it (base64 without a shape).
    int layers = 0;
    int top_k = 0;
};

/// Reads .npy, .csv, .jsonl, SGLang's .pt, TensorRT-LLM's .safetensors, by the file's ending, or a
/// folder of such dumps, one a rank, as one (docs/placement.md). Throws InputError, one line that
/// names the file.
Profile read_profile(const ProfileSource& source, const ProfileOptions& options = {});
/// Reads dumps that several ranks made of one recording; all with the same part and weight.
/// Throws InputError, one line that names two of them, where they disagree.
Profile read_profile(const std::vector<ProfileSource>& ranks, const ProfileOptions& options = {});

struct DrawOptions {
    std::int64_t tokens = 8192;
    std::uint64_t seed = 1;
};
/// A profile of counts with tokens that choose experts as often as was counted (docs/placement.md
/// says what is lost); its counts are theirs. Throws InputError where the model has other experts.
Profile with_drawn_tokens(const Profile& profile, const Model& model,
                          const DrawOptions& options = {});

/// Counts from the ids of a profile that has tokens; read_profile has done this.
void count_choices(Profile& profile);

/// The profile cut into `blocks` runs of tokens (or steps), as even as it goes; counts of each:
/// [block][layer][expert]. With neither tokens nor steps: one block.
std::vector<std::vector<double>> block_counts(const Profile& profile, int blocks);

/// Throws InputError unless all have the same layers and experts.
void check_together(const std::vector<Profile>& profiles);

}  // namespace moehub
