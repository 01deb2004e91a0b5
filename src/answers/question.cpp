#include "answers/question.hpp"

#include "base/files.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
    throw InputError(
        fmt::format("{}: cannot be written: {}", printable(path), std::strerror(error)));
}

bool is_among(const std::vector<std::string>& files, const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& one) { return same_file(one, path); });
}

std::vector<std::string> folders_of(const std::vector<std::string>& paths) {
    std::vector<std::string> folders;
    std::error_code ignored;
    for (const std::string& path : paths)
        if (fs::is_directory(path, ignored)) folders.push_back(path);
    return folders;
}

void require_access(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) fail(path, EISDIR);
    if (fs::exists(path, ignored)) {
        if (access(path.c_str(), W_OK) != 0) fail(path, errno);
        return;
    }
    const std::string folder = fs::path(path).parent_path().string();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail(path, errno);
}

}  // namespace

std::function<void(std::size_t, std::size_t)> Asker::pieces(std::string what) const {
    return [this, what = std::move(what)](std::size_t done, std::size_t total) {
        if (stop.stop_requested()) throw Ended();
        if (progress) progress(what, pieces_done(done, total));
    };
}

void Asker::require_one_point(std::string_view option, std::size_t values) const {
    if (ready && values > 1)
        throw InputError(fmt::format("{}: found {} values, allowed: one a point", option, values));
}

void Asker::require_form(unsigned form) const {
    const auto words = [this](unsigned forms) {
        std::vector<std::string> list;
        for (std::size_t i = 0; i < form_words.size(); ++i)
            if ((forms >> i & 1u) != 0) list.push_back(form_words[i]);
        return fmt::format("{}", fmt::join(list, " or "));
    };
    for (const Option& option : options)
        if ((option.rules.forms & form) == 0 && is_on(options, said, key_of(option)))
            throw InputError(fmt::format("{}: found with {}, allowed: with {}", name_of(option),
                                         words(form), words(option.rules.forms)));
}

void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs) {
    std::vector<std::string> replaced;
    for (const auto& [option, path, goes_on] : files) {
        if (path.empty() || path == "-")
            throw InputError(fmt::format("{}: found \"{}\", allowed: a file", option, path));
        if (!(goes_on && fs::exists(path))) require_access(path);
        if (is_device(path)) continue;
        if (is_among(replaced, path))
            throw InputError(
                fmt::format("{}: found the file of another output, allowed: its own", option));
        if (is_among(inputs, path))
            throw InputError(fmt::format("{}: found {}, which is read, allowed: another file",
                                         option, printable(path)));
        if (is_among(folders_of(inputs), fs::absolute(path).parent_path().string()))
            throw InputError(
                fmt::format("{}: found {}, in a folder that is read, allowed: a file elsewhere",
                            option, printable(path)));
        replaced.push_back(path);
    }
}

}  // namespace moehub
