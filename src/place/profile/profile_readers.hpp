/// The kinds of files that hold recorded routing, one reader each. All throw InputError, one line
/// that begins with `file`.
#pragma once
#include "base/npy.hpp"
#include "place/profile/profile_recording.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

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

/// TensorRT-LLM's expert statistics of one rank: counts, or every token's experts.
Recording parse_trtllm_statistics(std::string_view bytes, const std::string& file);
/// All ranks' in a folder with meta_info.json; of `files`, those in it.
bool is_trtllm_folder(const std::vector<std::filesystem::path>& files);
Recording read_trtllm_folder(const std::string& path,
                             const std::vector<std::filesystem::path>& files);

/// By the file's ending; of a folder all its dumps as one.
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
