// A folder of dumps, a file a rank: TensorRT-LLM's expert statistics, or any files of one kind, as
// SGLang's expert_distribution_recorder_<time>_<rank>.pt.
#include "place/profile/profile_readers.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kEndings = {".pt", ".npy", ".jsonl", ".csv"};

/// In the order of their names, so that errors are always the same.
std::vector<fs::path> files_in(const std::string& folder) {
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        files.push_back(entry->path());
    if (error) fail_in(folder, "cannot be read: " + error.message());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

Recording read_folder(const std::string& path, const ProfileOptions& options) {
    const std::vector<fs::path> files = files_in(path);
    if (is_trtllm_folder(files)) return read_trtllm_folder(path, files);
    std::vector<fs::path> ranks;
    for (const fs::path& file : files) {
        if (std::find(kEndings.begin(), kEndings.end(), file.extension()) == kEndings.end())
            continue;
        ranks.push_back(file);
        if (file.extension() != ranks.front().extension())
            fail_in(path, fmt::format("found {} and {}, allowed: dumps of one recording, all of "
                                      "one kind",
                                      ranks.front().filename().string(), file.filename().string()));
    }
    if (ranks.empty())
        fail_in(path,
                "found a folder without dumps, allowed: SGLang's .pt, TensorRT-LLM's "
                "rank<N>.safetensors, or .npy, .jsonl, .csv, one a rank");
    std::vector<NamedRecording> dumps;
    for (const fs::path& file : ranks)
        dumps.push_back({file.string(), read_recording(file.string(), options)});
    return merged(std::move(dumps));
}

}  // namespace moehub
