/// What validate() says of texts and of our measurements.
#pragma once
#include "error_of.hpp"
#include "own_folder.hpp"

#include <moehub/validate.hpp>

namespace moehub {

/// A table of measurements in a file that lives as long as the test.
class MeasuredFile : public OwnFolder {
  public:
    explicit MeasuredFile(const std::string& text) : path_(saved("measured.csv", text)) {}
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

inline Validation validated(const std::string& text, const ValidateOptions& options = {}) {
    return validate(MeasuredFile(text).path(), options);
}

/// The error of a table without the name of its file: ":line: …".
inline std::string table_error(const std::string& text) {
    const MeasuredFile file(text);
    const std::string error = error_of([&] { validate(file.path()); });
    return error.starts_with(file.path()) ? error.substr(file.path().size()) : error;
}

/// Why a table is skipped of which nothing is predicted, all for one reason.
inline std::string why_skipped(const std::string& text) {
    const Validation found = validated(text);
    EXPECT_TRUE(found.rows.empty());
    EXPECT_EQ(found.skipped.size(), 1u);
    return found.skipped.empty() ? "" : found.skipped[0].why;
}

/// A file of validation/ that is predicted whole: so many rows of so many kinds.
inline Validation predicted_whole(const std::string& file, std::size_t rows, std::size_t kinds) {
    Validation result = validate(MOEHUB_SOURCE_DIR "/validation/" + file);
    EXPECT_TRUE(result.skipped.empty()) << file;
    EXPECT_EQ(result.rows.size(), rows) << file;
    EXPECT_EQ(result.summary.size(), kinds) << file;
    return result;
}

}  // namespace moehub
