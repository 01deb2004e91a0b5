/// What a file of recorded routing holds, before it is cut and counted: ids or counts; profile_of()
/// makes a Profile of it. And the kinds of such files, one reader each. All throw InputError, one
/// line that begins with `file`.
#pragma once
#include "base/files.hpp"
#include "base/npy.hpp"
#include "place/counts.hpp"

#include <moehub/profile.hpp>

#include <filesystem>
#include <string_view>
#include <variant>
#include <vector>

namespace moehub {

constexpr int kMostProfileExperts = 65534;
constexpr int kMostProfileLayers = 65535;

/// Which layers of the model a file has.
struct RecordedLayers {
    bool all = false;          ///< the file has all layers of the model, dense ones included
    std::vector<int> numbers;  ///< model's numbers, ascending; empty: the file does not say
};

struct RecordedTokens {
    int layers = 0;
    int top_k = 0;
    int experts = 0;  ///< 0: the largest id plus one
    RecordedLayers which = {};
    std::int64_t tokens = 0;
    std::vector<std::uint16_t> ids = {};  ///< chosen expert, [token][layer][choice]
    int largest = -1;                     ///< the largest of all ids
    bool has_nobody = false;              ///< some choice is Profile::kNobody
    bool guessed = false;                 ///< nobody said that these are ids: errors say so
};

/// Adds tokens in the order [token][layer][choice]. −1 says "nobody", in the last choices of a
/// token only; tokens that are nobody throughout are left out. `where` begins errors.
template <class Value>
void append(RecordedTokens& to, const NpyValues<Value>& values, const std::string& where);
template <class Value>
void append(RecordedTokens& to, const std::vector<Value>& ids, const std::string& where) {
    append(to, NpyValues<Value>(reinterpret_cast<const std::byte*>(ids.data()), ids.size()), where);
}

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

/// A profile of tokens: cuts, drops layers without experts, checks that a token's experts are
/// distinct, counts. A layer has no experts when nobody was ever chosen or counted in it, or every
/// token of more than one choice has only zeros in it (servers fill the rows of dense layers so).
Profile profile_of(RecordedTokens recording, const ProfileSource& source,
                   const ProfileOptions& options);
/// A profile of counts, without steps in which nothing was counted: recorders leave such steps.
Profile profile_of(RecordedCounts recording, const ProfileSource& source,
                   const ProfileOptions& options);

/// Tokens, or steps, from … to − 1 of `all` that the source asks for; throws when there are none.
struct Cut {
    std::int64_t from = 0;
    std::int64_t to = 0;
};
Cut cut_of(const ProfileSource& source, std::int64_t all, std::string_view what);

/// The layers in `kept`, which the profile has of the recorded ones.
struct KeptLayers {
    std::vector<int> kept;
    int recorded = 0;
    const RecordedLayers& which;
};
void number_layers(Profile& profile, const KeptLayers& layers, const ProfileSource& source,
                   const ProfileOptions& options);

/// An array of [tokens, layers, top_k] ids, [layers, experts] or [steps, layers, experts] counts.
Recording recording_of(const NpyArray& array, const ProfileOptions& options,
                       const std::string& file);

/// Counts, a row per layer, a column per expert. A first row that does not begin with a number is a
/// header; where it begins with nothing or "layer…", the first column holds the layers' numbers.
RecordedCounts parse_counts_csv(std::string_view text, const std::string& file);

/// SGLang's and vLLM's answers with routed experts, one JSON object a line; or one document that is
/// such an object or a list of them.
RecordedTokens parse_routed_answers(std::string_view text, const ProfileOptions& options,
                                    const std::string& file);

/// SGLang's dumps of its expert distribution recorder.
Recording parse_sglang_dump(std::string_view bytes, const ProfileOptions& options,
                            const std::string& file);

/// TensorRT-LLM's expert statistics of one rank: counts, or every token's experts.
Recording parse_trtllm_statistics(std::string_view bytes, const std::string& file);
/// Whether files are a folder with meta_info.json of all ranks' statistics.
bool is_trtllm_folder(const std::vector<std::filesystem::path>& files);
Recording read_trtllm_folder(const std::string& path,
                             const std::vector<std::filesystem::path>& files);

/// What a file recorded, by its ending; of a folder all its dumps as one.
Recording read_recording(const std::string& path, const ProfileOptions& options);
Recording read_folder(const std::string& path, const ProfileOptions& options);

/// What several ranks dumped of one recording, as one. Throws InputError, naming two files, where
/// they are not of one model.
struct NamedRecording {
    std::string file;
    Recording recording;
};
Recording merged(std::vector<NamedRecording> dumps);

}  // namespace moehub
