#include "base/csv.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace moehub {
namespace {

[[noreturn]] void fail_in_line(const std::string& file, int line, std::string_view what) {
    throw input_error("{}:{}: {}", printable(file), line, what);
}

std::string_view without_blanks(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Walks the text once; one call of next() is one row.
class CsvScanner {
  public:
    CsvScanner(std::string_view text, const std::string& file) : text_(text), file_(file) {
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    }

    /// Fields of the next row that is not blank; false at the end of the text.
    bool next(std::vector<std::string>& fields, int& line) {
        skip_blank_lines();
        if (done()) return false;
        fields.clear();
        line = line_;
        do {
            if (fields.size() == CsvTable::kMostColumns)
                fail_in_line(file_, line,
                             fmt::format("more than {} columns", CsvTable::kMostColumns));
            fields.push_back(field());
        } while (skip(','));
        end_line();
        return true;
    }

  private:
    bool done() const { return at_ == text_.size(); }
    bool skip(char c) {
        if (done() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void skip_blank_lines() {
        while (!done()) {
            const auto end = std::min(text_.find('\n', at_), text_.size());
            if (text_.substr(at_, end - at_).find_first_not_of(" \t\r") != std::string_view::npos)
                return;
            at_ = end;
            end_line();
        }
    }
    void end_line() {
        if (skip('\n')) ++line_;
    }

    std::string field() {
        const auto start = text_.find_first_not_of(" \t", at_);
        if (start != std::string_view::npos && text_[start] == '"') {
            at_ = start + 1;
            return quoted_field();
        }
        const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
        auto field = text_.substr(at_, end - at_);
        const bool last = end == text_.size() || text_[end] == '\n';
        at_ = end;
        if (last && field.ends_with('\r')) field.remove_suffix(1);
        if (field.find('"') != std::string_view::npos)
            fail_in_line(file_, line_,
                         fmt::format("quote inside an unquoted field {}", quoted(field)));
        return bounded(without_blanks(field), line_);
    }

    std::string quoted_field() {
        const int line = line_;
        std::string field;
        for (;;) {
            const auto quote = text_.find('"', at_);
            if (quote == std::string_view::npos)
                fail_in_line(file_, line, "a quoted field that never ends");
            const auto part = text_.substr(at_, quote - at_);
            line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
            field += part;
            at_ = quote + 1;
            if (!skip('"')) break;
            field += '"';
        }
        const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
        const auto rest = text_.substr(at_, end - at_);
        if (rest.find_first_not_of(" \t\r") != std::string_view::npos)
            fail_in_line(file_, line_, fmt::format("text after a closing quote: {}", quoted(rest)));
        at_ = end;
        return bounded(field, line);
    }

    std::string bounded(std::string_view field, int line) const {
        if (field.size() > CsvTable::kLongestField)
            fail_in_line(file_, line,
                         fmt::format("a field of {} bytes, allowed: at most {}", field.size(),
                                     CsvTable::kLongestField));
        return std::string(field);
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    int line_ = 1;
};

void check_is_text(std::string_view text, const std::string& file) {
    const auto line_of = [text](std::size_t offset) {
        return 1 + static_cast<int>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
    };
    if (const auto nul = text.find('\0'); nul != std::string_view::npos)
        fail_in_line(file, line_of(nul), "found a NUL byte, allowed: UTF-8 text");
    if (const auto bad = first_bad_utf8(text); bad != text.size())
        fail_in_line(file, line_of(bad),
                     fmt::format("found byte 0x{:02x}, allowed: UTF-8 text",
                                 static_cast<unsigned char>(text[bad])));
}

std::string contents(const std::string& path) {
    const auto fail = [&path](std::string_view why) {
        throw input_error("{}: cannot be read: {}", printable(path), why);
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) fail(std::strerror(errno));
    std::string text;
    std::vector<char> block(1u << 16);
    while (const auto got = std::fread(block.data(), 1, block.size(), file.get())) {
        text.append(block.data(), got);
        if (text.size() > CsvTable::kMostBytes)
            fail(fmt::format("larger than {} MiB", CsvTable::kMostBytes >> 20));
    }
    if (std::ferror(file.get())) fail(std::strerror(errno));
    return text;
}

}  // namespace

CsvTable CsvTable::read(const std::string& path) {
    return parse(contents(path), path);
}

CsvTable CsvTable::parse(std::string_view text, const std::string& file) {
    check_is_text(text, file);
    CsvTable table;
    table.file_ = file;
    CsvScanner scanner(text, file);
    Row row;
    if (!scanner.next(row.fields, row.line))
        fail_in_line(file, 1, "the file is empty, allowed: a header row and rows of data");
    table.set_header(std::move(row));
    for (row = {}; scanner.next(row.fields, row.line); row = {}) table.add(std::move(row));
    return table;
}

void CsvTable::set_header(Row header) {
    header_line_ = header.line;
    for (std::size_t i = 0; i < header.fields.size(); ++i) {
        const auto& name = header.fields[i];
        if (name.empty())
            fail_in_line(file_, header.line, fmt::format("column {} has no name", i + 1));
        if (std::find(columns_.begin(), columns_.end(), name) != columns_.end())
            fail_in_line(file_, header.line, fmt::format("column {} stands twice", quoted(name)));
        columns_.push_back(name);
    }
}

void CsvTable::add(Row row) {
    if (row.fields.size() != columns_.size())
        fail_in_line(
            file_, row.line,
            fmt::format("found {} fields, the header has {}", row.fields.size(), columns_.size()));
    if (rows_.size() == kMostRows)
        fail_in_line(file_, row.line, fmt::format("more than {} rows", kMostRows));
    rows_.push_back(std::move(row));
}

int CsvRow::line() const {
    return table_->rows_[index_].line;
}

const std::string& CsvRow::field(std::string_view column) const {
    const auto& columns = table_->columns_;
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end())  // the caller checks the header first: a defect, not bad input
        throw std::logic_error(fmt::format("no column {} in {}", column, table_->file_));
    return table_->rows_[index_].fields[static_cast<std::size_t>(found - columns.begin())];
}

bool CsvRow::has(std::string_view column) const {
    return !field(column).empty();
}

const std::string& CsvRow::text(std::string_view column) const {
    const auto& value = field(column);
    if (value.empty()) reject(column, "any text");
    return value;
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t least, std::int64_t most) const {
    const auto& value = field(column);
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || result < least || result > most)
        reject(column, fmt::format("a whole number from {} to {}", least, most));
    return result;
}

double CsvRow::number(std::string_view column) const {
    const auto& value = field(column);
    double result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || !std::isfinite(result)) reject(column, "a finite number");
    return result;
}

double CsvRow::non_negative(std::string_view column) const {
    const double result = number(column);
    if (result < 0) reject(column, "a number of at least 0");
    return result;
}

double CsvRow::positive(std::string_view column) const {
    const double result = number(column);
    if (result <= 0) reject(column, "a number above 0");
    return result;
}

void CsvRow::reject(std::string_view column, std::string_view allowed) const {
    const auto& value = field(column);
    fail(fmt::format("{}: found {}, allowed: {}", column, value.empty() ? "nothing" : quoted(value),
                     allowed));
}

void CsvRow::fail(std::string_view what) const {
    throw input_error("{}:{}: {}", printable(table_->file_), line(), what);
}

}  // namespace moehub
