// A folder of dumps, a file a rank: TensorRT-LLM's expert statistics, or any files of one kind, as
// SGLang's expert_distribution_recorder_<time>_<rank>.pt.
//
// Ranks of a server each write what they saw: their own tokens, or the counts of their own tokens
// or experts. Together they are one recording. Ranks that share attention by tensor parallelism see
// the same tokens and write the same; such files count once.
#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>
#include <array>

namespace moehub {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kEndings = {".pt", ".npy", ".jsonl", ".csv"};

/// Files in the order of their names, so that errors are always the same.
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

/// Two dumps and what they must agree on.
struct Pair {
    const std::string& first;
    const std::string& other;

    void equal(std::string_view what, std::int64_t found, std::int64_t wanted) const {
        if (found == wanted) return;
        fail_in(other, "found {} {}, allowed: {}, as in {} (dumps of one recording)", found, what,
                wanted, printable(first));
    }
    void equal_layers(const RecordedLayers& found, const RecordedLayers& wanted) const {
        if (found.numbers == wanted.numbers) return;
        const auto text = [](const RecordedLayers& layers) {
            return layers.numbers.empty()
                       ? std::string("without numbers")
                       : fmt::format("{} to {}", layers.numbers.front(), layers.numbers.back());
        };
        fail_in(other, "found layers {}, allowed: {}, as in {} (dumps of one recording)",
                text(found), text(wanted), printable(first));
    }
};

/// Tokens of all ranks, so that any part of the whole has the same part of each: the rank that is
/// least far through its own goes next.
RecordedTokens joined(const std::vector<RecordedTokens>& ranks) {
    RecordedTokens all = ranks.front();
    all.ids.clear();
    all.tokens = 0;
    for (const RecordedTokens& rank : ranks) {
        all.tokens += rank.tokens;
        all.largest = std::max(all.largest, rank.largest);
        all.has_nobody = all.has_nobody || rank.has_nobody;
        all.guessed = all.guessed || rank.guessed;
    }
    const auto row = static_cast<std::ptrdiff_t>(all.layers) * all.top_k;
    all.ids.reserve(at(all.tokens * row));
    std::vector<std::int64_t> done(ranks.size(), 0);
    for (std::int64_t token = 0; token < all.tokens; ++token) {
        std::size_t next = 0;
        for (std::size_t rank = 1; rank < ranks.size(); ++rank)
            if ((2 * done[rank] + 1) * ranks[next].tokens <
                (2 * done[next] + 1) * ranks[rank].tokens)
                next = rank;
        const auto from = ranks[next].ids.begin() + done[next]++ * row;
        all.ids.insert(all.ids.end(), from, from + row);
    }
    return all;
}

Recording merge_tokens(const std::vector<NamedRecording>& dumps) {
    std::vector<RecordedTokens> ranks;
    for (const NamedRecording& dump : dumps) {
        auto rank = std::get<RecordedTokens>(dump.recording);
        const bool seen = std::any_of(ranks.begin(), ranks.end(), [&](const RecordedTokens& other) {
            return other.ids == rank.ids;
        });
        if (!ranks.empty()) {
            const Pair pair{dumps.front().file, dump.file};
            const RecordedTokens& first = ranks.front();
            pair.equal("layers", rank.layers, first.layers);
            pair.equal("experts a token", rank.top_k, first.top_k);
            pair.equal("experts", rank.experts, first.experts);
            pair.equal_layers(rank.which, first.which);
        }
        if (!seen) ranks.push_back(std::move(rank));
    }
    return joined(ranks);
}

/// Counts of dumps with as many steps are added step by step, others' over all steps.
Recording merge_counts(const std::vector<NamedRecording>& dumps) {
    auto all = std::get<RecordedCounts>(dumps.front().recording);
    const bool by_step = std::all_of(dumps.begin(), dumps.end(), [&](const NamedRecording& dump) {
        const auto* counts = std::get_if<RecordedCounts>(&dump.recording);
        return counts != nullptr && counts->steps == all.steps;
    });
    const auto size = static_cast<std::size_t>(all.layers) * static_cast<std::size_t>(all.experts);
    const std::vector<double> first = std::move(all.counts);
    all.counts.assign(by_step ? first.size() : size, 0);
    if (!by_step) all.steps = 0;
    for (const NamedRecording& dump : dumps) {
        const auto& rank = std::get<RecordedCounts>(dump.recording);
        const Pair pair{dumps.front().file, dump.file};
        pair.equal("layers", rank.layers, all.layers);
        pair.equal("experts", rank.experts, all.experts);
        pair.equal_layers(rank.which, all.which);
        const auto& counts = &dump == &dumps.front() ? first : rank.counts;
        for (std::size_t at = 0; at < counts.size(); ++at)
            all.counts[by_step ? at : at % size] += counts[at];
    }
    return all;
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
            fail_in(path, "found {} and {}, allowed: dumps of one recording, all of one kind",
                    ranks.front().filename().string(), file.filename().string());
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

Recording merged(std::vector<NamedRecording> dumps) {
    if (dumps.size() == 1) return std::move(dumps.front().recording);
    const bool tokens = std::holds_alternative<RecordedTokens>(dumps.front().recording);
    for (const NamedRecording& dump : dumps)
        if (std::holds_alternative<RecordedTokens>(dump.recording) != tokens)
            fail_in(dump.file, "found {}, allowed: {}, as in {} (dumps of one recording)",
                    tokens ? "counts" : "tokens", tokens ? "tokens" : "counts",
                    printable(dumps.front().file));
    return tokens ? merge_tokens(dumps) : merge_counts(dumps);
}

}  // namespace moehub
