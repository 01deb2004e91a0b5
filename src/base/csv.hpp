/// CSV files: a header row, then rows with as many fields as the header.
///
/// Commas separate; fields may be quoted ("a,b", "" is a quote); LF or CRLF ends a row; a UTF-8
/// byte order mark and blank lines are skipped; blanks around unquoted fields are dropped.
/// Every error is an InputError of one line, "file:line: …".
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

class CsvTable;

/// One row, read by column name. Valid as long as its table.
class CsvRow {
  public:
    CsvRow(const CsvTable& table, std::size_t index) : table_(&table), index_(index) {}

    int line() const;                         ///< where the row begins in the file, from 1
    bool has(std::string_view column) const;  ///< the field is not empty
    const std::string& field(std::string_view column) const;  ///< field as it stands, may be empty
    const std::string& text(std::string_view column) const;   ///< field that is not empty

    /// A whole number within [least, most].
    std::int64_t integer(std::string_view column, std::int64_t least,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
    /// A finite number; at least 0, or above 0.
    double number(std::string_view column) const;
    double non_negative(std::string_view column) const;
    double positive(std::string_view column) const;

    /// Throws "file:line: column: found …, allowed: …".
    [[noreturn]] void reject(std::string_view column, std::string_view allowed) const;
    /// Throws "file:line: what".
    [[noreturn]] void fail(std::string_view what) const;

  private:
    const CsvTable* table_;
    std::size_t index_;
};

class CsvTable {
  public:
    /// Limits that no table meant for moehub comes near.
    static constexpr std::size_t kMostBytes = 256u << 20;
    static constexpr std::size_t kMostRows = 1'000'000;
    static constexpr std::size_t kLongestField = 64u << 10;
    static constexpr std::size_t kMostColumns = 1024;

    /// Reads the file of that path; names it in errors.
    static CsvTable read(const std::string& path);
    /// Parses the text; `file` is its name in errors.
    static CsvTable parse(std::string_view text, const std::string& file);

    const std::string& file() const { return file_; }
    const std::vector<std::string>& columns() const { return columns_; }
    int header_line() const { return header_line_; }
    std::size_t size() const { return rows_.size(); }  ///< rows without the header
    CsvRow operator[](std::size_t index) const { return {*this, index}; }

  private:
    friend class CsvRow;
    struct Row {
        int line = 0;
        std::vector<std::string> fields;
    };
    void set_header(Row header);
    void add(Row row);

    std::string file_;
    std::vector<std::string> columns_;
    int header_line_ = 1;
    std::vector<Row> rows_;
};

}  // namespace moehub
