/// Hand-made files of recorded routing, and what the readers say of them.
#pragma once
#include "stored_zip.hpp"

#include <moehub/error.hpp>
#include <moehub/profile.hpp>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

namespace moehub {

/// The numbers' bytes, low byte first.
template <class Value>
std::string bytes_of(const std::vector<Value>& values) {
    std::string bytes(values.size() * sizeof(Value), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

inline std::string npy(const std::string& dtype, const std::string& shape,
                       const std::string& values) {
    const std::string header =
        "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return std::string("\x93NUMPY\1\0", 8) + little_endian(header.size(), 2) + header + values;
}

/// A folder of its own for each test, gone with it.
class RecordedFiles : public ::testing::Test {
  protected:
    RecordedFiles() {
        const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
        folder_ = std::filesystem::path(::testing::TempDir()) /
                  ("moehub_" + std::string(test->test_suite_name()) + "_" + test->name());
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
    }
    ~RecordedFiles() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& bytes) const {
        const auto path = folder_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << bytes;
        return path.string();
    }
    /// Writes a file of that name and reads `name` + `suffix`, e.g. ":0-0.5".
    Profile read(const std::string& name, const std::string& bytes,
                 const ProfileOptions& options = {}, const std::string& suffix = "") const {
        return read_profile(parse_profile_source(write(name, bytes) + suffix), options);
    }
    /// The error of read(), without the folder; empty when there is none.
    std::string error(const std::string& name, const std::string& bytes,
                      const ProfileOptions& options = {}, const std::string& suffix = "") const {
        return error_of([&] { read(name, bytes, options, suffix); });
    }
    std::string error_of(const std::function<void()>& action) const {
        try {
            action();
        } catch (const InputError& error) {
            std::string what = error.what();
            EXPECT_EQ(what.find('\n'), std::string::npos);
            const std::string folder = folder_.string() + "/";
            for (auto at = what.find(folder); at != std::string::npos; at = what.find(folder))
                what.erase(at, folder.size());
            return what;
        }
        return "";
    }

    std::filesystem::path folder_;
};

using Ids = std::vector<std::uint16_t>;
using Counts = std::vector<double>;
using Numbers = std::vector<int>;

}  // namespace moehub
