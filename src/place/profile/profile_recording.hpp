/// What a file of recorded routing holds, before it is cut and counted: ids or counts. Readers make
/// it, profile_of() makes a Profile of it.
#pragma once
#include "base/npy.hpp"

#include <moehub/profile.hpp>

#include <variant>

namespace moehub {

constexpr int kMostProfileExperts = 65534;
constexpr int kMostProfileLayers = 65535;

/// Which layers of the model a file has.
struct RecordedLayers {
    bool all = false;          ///< all of the model's, dense ones included
    std::vector<int> numbers;  ///< the model's numbers, ascending; empty: the file does not say
};

struct RecordedTokens {
    int layers = 0;
    int top_k = 0;
    int experts = 0;  ///< 0: the largest id plus one
    RecordedLayers which = {};
    std::int64_t tokens = 0;
    std::vector<std::uint16_t> ids = {};  ///< [token][layer][choice]
    int largest = -1;                     ///< of all ids
    bool has_nobody = false;              ///< some choice is Profile::kNobody
    bool guessed = false;                 ///< nobody said that these are ids: errors say so
};

/// Adds tokens in the order [token][layer][choice]. −1 says "nobody", in the last choices of a
/// token only; tokens that are nobody throughout are left out. `where` begins errors.
template <class Value>
void append(RecordedTokens& to, const NpyValues<Value>& values, const std::string& where);

struct RecordedCounts {
    int steps = 0;  ///< 0: not recorded by step
    int layers = 0;
    int experts = 0;
    RecordedLayers which = {};
    std::vector<double> counts = {};  ///< [step][layer][expert]; without steps [layer][expert]
};

/// Largest count that a double holds exactly.
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

using Recording = std::variant<RecordedTokens, RecordedCounts>;

/// Cuts, drops layers without experts, checks that a token's experts are distinct, counts. A layer
/// has no experts when nobody was ever chosen or counted in it, or when every token of more than
/// one choice has only zeros in it (servers fill the rows of dense layers so).
Profile profile_of(RecordedTokens recording, const ProfileSource& source,
                   const ProfileOptions& options);
/// Steps in which nothing was counted are dropped, too: recorders leave them in their buffers.
Profile profile_of(RecordedCounts recording, const ProfileSource& source,
                   const ProfileOptions& options);

/// Tokens, or steps, from … to − 1 of `all` that the source asks for; throws when there are none.
struct Cut {
    std::int64_t from = 0;
    std::int64_t to = 0;
};
Cut cut_of(const ProfileSource& source, std::int64_t all, std::string_view what);

/// The profile has of the recorded layers those in `kept`: numbers them.
struct KeptLayers {
    std::vector<int> kept;
    int recorded = 0;
    const RecordedLayers& which;
};
void number_layers(Profile& profile, const KeptLayers& layers, const ProfileSource& source,
                   const ProfileOptions& options);

/// "file: what", thrown as InputError.
[[noreturn]] void fail_in(const std::string& file, std::string_view what);

}  // namespace moehub
