/// The kinds of files that hold recorded routing, one reader each. All throw InputError, one line
/// that begins with `file`.
#pragma once
#include "base/npy.hpp"
#include "place/profile/profile_recording.hpp"

#include <string_view>

namespace moehub {

/// [tokens, layers, top_k] ids, [layers, experts] or [steps, layers, experts] counts.
Recording recording_of(const NpyArray& array, const ProfileOptions& options,
                       const std::string& file);

/// What an array of three dimensions holds. Told by `experts` where given: counts have as many
/// columns. Otherwise counts add up, in every step, to the same sum in all layers (each token
/// chooses as often in each), which ids do not; and ids are distinct within a token, which counts
/// seldom are. Where both hold, counts need sums that agree in at least eight rows of different
/// numbers; anything less is refused with a line that names --profile-kind.
ArrayKind kind_of(const NpyArray& array, const ProfileOptions& options, const std::string& file);

/// A row per layer, a column per expert. A first row that does not begin with a number is a
/// header; where it begins with nothing or "layer…", the first column holds the layers' numbers.
RecordedCounts parse_counts_csv(std::string_view text, const std::string& file);

/// SGLang's and vLLM's answers with routed experts, one JSON object a line; or one document that is
/// such an object or a list of them.
RecordedTokens parse_routed_answers(std::string_view text, const ProfileOptions& options,
                                    const std::string& file);

/// SGLang's dumps of its expert distribution recorder.
Recording parse_sglang_dump(std::string_view bytes, const ProfileOptions& options,
                            const std::string& file);

/// TensorRT-LLM's expert statistics: all ranks' files, added up.
struct StatisticsFile {
    std::string name;  ///< in errors
    std::string bytes;
};
RecordedCounts parse_trtllm_statistics(const std::vector<StatisticsFile>& ranks);
/// The same of a folder with meta_info.json and rank<N>.safetensors.
RecordedCounts read_trtllm_folder(const std::string& path);

}  // namespace moehub
