#include "base/utf8.hpp"
#include "study/sweep/store.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

struct Source {
    std::string path;
    SweepFile file;
    SweepOutcomes outcomes;
};

bool is_in_writable_folder(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    return fs::exists(path) && access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

Source opened(const std::string& path) {
    std::optional<WriterLock> held;  // where nobody may write, nobody is writing
    if (is_in_writable_folder(path)) held.emplace(path);
    // A writer that was killed has left a log, which only those who may write can fold in.
    Database database(path, DatabaseMode::write);
    Source source{path, read_sweep_file(database), {}};
    source.outcomes = read_outcomes(database, source.file.study);
    return source;
}

void require_same(const Source& first, const Source& other) {
    const SweepIdentity& a = first.file.identity;
    const SweepIdentity& b = other.file.identity;
    const auto refuse = [&](std::string_view what) {
        throw InputError(fmt::format("{}: {} than {}, allowed: parts of one study",
                                     printable(other.path), what, printable(first.path)));
    };
    if (a.program != b.program)
        refuse(fmt::format("holds results of {}, another moehub", printable(b.program)));
    if (a.definition != b.definition) refuse("holds results of another study");
    if (a.inputs != b.inputs)
        refuse("holds results of other machines, models, systems or routings");
}

void add(MergedSweep& merged, const Source& source) {
    for (std::size_t i = 0; i < merged.outcomes.size(); ++i) {
        if (!source.outcomes[i]) continue;
        if (merged.outcomes[i] && merged.outcomes[i] != source.outcomes[i])
            throw InputError(fmt::format(
                "{}: {}: differs from an earlier file's result, allowed: the same",
                printable(source.path), words_of(merged.study, point_of(merged.study, i))));
        merged.outcomes[i] = source.outcomes[i];
    }
}

void write(const std::string& path, const MergedSweep& merged, SweepIdentity identity) {
    identity.shard = {};
    SweepStore store(path, merged.study, identity);
    store.save_all(merged.outcomes);
    store.close();
}

}  // namespace

MergedSweep merge_sweeps(const std::string& target, const std::vector<std::string>& sources) {
    if (fs::exists(fs::symlink_status(target)))
        throw InputError(printable(target) + ": exists, allowed: a new file");
    MergedSweep merged;
    SweepIdentity identity;
    std::optional<Source> first;
    for (const std::string& path : sources) {
        Source source = opened(path);
        if (!first) {
            merged.study = source.file.study;
            identity = source.file.identity;
            merged.outcomes.resize(source.outcomes.size());
        } else {
            require_same(*first, source);
        }
        add(merged, source);
        if (!first) first = std::move(source);
    }
    merged.missing = static_cast<std::size_t>(
        std::count(merged.outcomes.begin(), merged.outcomes.end(), std::nullopt));
    const std::string neighbour = fmt::format("{}.{}", target, getpid());
    try {
        write(neighbour, merged, identity);
        if (std::rename(neighbour.c_str(), target.c_str()) != 0)
            throw InputError(
                fmt::format("{}: cannot be written: {}", printable(target), std::strerror(errno)));
    } catch (const InputError&) {
        for (const char* end : {"", "-wal", "-shm", "-journal", "-lock"})
            unlink((neighbour + end).c_str());
        throw;
    }
    return merged;
}

}  // namespace moehub
