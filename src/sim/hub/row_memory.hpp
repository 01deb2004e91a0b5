/// What lies in the rows of a GPU's device memory: rows that came, and rows that are sums.
#pragma once
#include "sim/sums.hpp"
#include "sim/transfer.hpp"

#include <moehub/units.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace moehub::sim {

class Endpoint;

/// The rows of one region as they lie in device memory: whose they are, which of their lines have
/// arrived, and, where rows carry numbers, the numbers in each line. Keeps the promise that nothing
/// is lost or written twice.
class RowMemory {
  public:
    /// Rows of `data_bytes`, in lines of `line` bytes, with or without a source column behind them.
    /// A row's `numbers` are shared by its lines in order, evenly; 0: it carries none.
    RowMemory(Bytes data_bytes, Bytes line, bool source_column, std::size_t numbers);

    /// Part of a row from `offset` on, whole lines but for the row's end. Throws std::logic_error
    /// when a line comes twice or the row belongs to another RowID.
    struct Piece {
        std::uint32_t number = 0;  ///< number of the row in the region
        std::uint32_t row_id = 0;
        Bytes offset = 0;
        Bytes bytes = 0;
        const double* numbers = nullptr;  ///< numbers of the whole row
    };
    void write(const Piece& piece);
    /// Writes the row's source column.
    void write_source(std::uint32_t number, std::uint32_t row_id, std::uint64_t source);

    std::uint32_t rows() const { return static_cast<std::uint32_t>(rows_.size()); }
    std::uint32_t row_id(std::uint32_t number) const { return rows_[number].id; }
    std::uint64_t source(std::uint32_t number) const { return rows_[number].source; }
    /// Whether all lines have come, and the source column where there is one.
    bool complete(std::uint32_t number) const;
    /// Numbers of a row; null where rows carry none.
    const double* numbers(std::uint32_t number) const {
        return width_ > 0 ? numbers_.data() + std::size_t{number} * width_ : nullptr;
    }

  private:
    struct Row {
        std::uint32_t id = 0;
        std::uint32_t seen = 0;  ///< lines that have come
        std::uint64_t source = 0;
        bool known = false;
        bool has_source = false;
    };

    Row& row(std::uint32_t number, std::uint32_t row_id);
    void mark(std::uint32_t number, std::size_t first, std::size_t count);

    std::size_t lines_;
    std::size_t words_;  ///< words of a row's bitmap of lines
    Bytes line_;
    bool source_column_;
    std::size_t width_;  ///< numbers of a row
    std::vector<Row> rows_;
    std::vector<std::uint64_t> arrived_;  ///< lines, [row][word], of rows that came in pieces
    std::vector<double> numbers_;         ///< numbers, [row][width]
};

/// Bytes of a region: from `offset` in a row on, into the rows that follow. A line that two
/// stretches share belongs to who has its first byte.
struct RowStretch {
    std::uint32_t row = 0;
    Bytes offset = 0;
    Bytes bytes = 0;
};

/// Calls part(row, first line of it, lines) for each row of a stretch.
template <class Part>
void each_row(const RowStretch& stretch, Bytes row_bytes, Bytes line, Part part) {
    Bytes left = stretch.bytes;
    std::uint32_t row = stretch.row + static_cast<std::uint32_t>(stretch.offset / row_bytes);
    for (Bytes offset = stretch.offset % row_bytes; left > 0; ++row, offset = 0) {
        const Bytes here = std::min(left, row_bytes - offset);
        const auto first = static_cast<std::uint64_t>((offset + line - 1) / line);
        const auto end = static_cast<std::uint64_t>((offset + here + line - 1) / line);
        part(row, first, end - first);
        left -= here;
    }
}

/// Rows in device memory that are sums: partial ones, which others load and switches add up, and
/// those that came of it. Keeps for each row who is in it (sums.hpp) and, where rows carry numbers,
/// the number in each line.
class RowSums {
  public:
    /// Rows [first, first + rows); a row of one's own that lies behind makes room for itself.
    struct Extent {
        std::uint32_t first = 0;
        std::int64_t rows = 0;
    };
    RowSums(Extent extent, Bytes row_bytes, Bytes line, bool numbers);

    std::uint64_t lines() const { return lines_; }  ///< lines of a row
    Extent extent() const { return {first_, static_cast<std::int64_t>(rows_.size())}; }
    Bytes row_bytes() const { return row_bytes_; }
    /// Adds a row of this GPU's own; `numbers` has one for each line, or is null.
    void add_row(std::uint32_t row, std::uint64_t identity, const double* numbers);

    Sum read(const RowStretch& stretch) const;
    /// Adds what came for a stretch, for `answers` GPUs.
    void add(const RowStretch& stretch, const Sum& sum, std::uint32_t answers);

    /// Adds all of a row of another GPU's sums, as `answers` GPUs'.
    void add_sums_of(std::uint32_t row, const RowSums& other, std::uint32_t answers);

    /// Whether every line of the row has come from so many GPUs.
    bool complete(std::uint32_t row, std::uint32_t answers) const {
        return rows_[row - first_].lines == lines_ * answers;
    }
    /// Sum over the row's lines of who is in them, the n-th line counted as the n-th odd number:
    /// one line twice and another not at all gives another sum. Of a whole row that is lines²
    /// identities.
    std::uint64_t whole() const { return lines_ * lines_; }
    std::uint64_t identity(std::uint32_t row) const { return rows_[row - first_].identity; }
    const double* numbers(std::uint32_t row) const {
        return with_numbers_ ? numbers_.data() + (row - first_) * lines_ : nullptr;
    }

  private:
    struct Row {
        std::uint64_t identity = 0;
        std::uint64_t lines = 0;  ///< lines that came, times the GPUs they stand for
    };
    std::uint32_t first_;
    std::uint64_t lines_;
    Bytes row_bytes_;
    Bytes line_;
    bool with_numbers_;
    std::vector<Row> rows_;
    std::vector<double> numbers_;  ///< numbers, [row][line]
};

/// Which sums a GPU's programs wait for, piece by piece; pieces follow one another from the
/// region's first row on, and the last may be shorter.
struct SumsWatch {
    Bytes piece = 0;                  ///< bytes of a piece: whole rows
    std::uint32_t contributions = 0;  ///< GPUs whose sums make it complete
    CounterId first = kNoCounter;     ///< first of as many counters as there are pieces
};

/// Counts, piece by piece, the bytes that a watched region of sums has taken in.
class SumsWatcher {
  public:
    SumsWatcher() = default;  ///< watcher of a region that nobody watches
    SumsWatcher(const RowSums& sums, const SumsWatch& watch);

    /// Counts what came for a stretch, for `answers` GPUs, in memory at `visible`.
    void count(Endpoint& gpu, const RowStretch& stretch, std::uint32_t answers, Ps visible);

  private:
    struct Piece {
        Bytes missing = 0;  ///< bytes still to come, over all contributions
        Ps visible = 0;     ///< when the last of what came is in memory
    };

    SumsWatch watch_;
    Bytes row_bytes_ = 0;
    std::uint32_t first_row_ = 0;
    std::vector<Piece> pieces_;
};

}  // namespace moehub::sim
