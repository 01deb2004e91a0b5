/// The rows of one region as they lie in device memory: whose they are, which of their lines have
/// arrived, and, where rows carry numbers, the numbers in each line. Keeps the promise that nothing
/// is lost or written twice.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <vector>

namespace moehub::sim {

class RowMemory {
  public:
    /// Rows of `data_bytes`, in lines of `line` bytes, with or without a source column behind them.
    /// Its lines share a row's `numbers` in order, evenly; 0: it carries none.
    RowMemory(Bytes data_bytes, Bytes line, bool source_column, std::size_t numbers);

    /// Part of a row from `offset` on, whole lines but for the row's end. Throws std::logic_error
    /// when a line comes twice or the row belongs to another RowID.
    struct Piece {
        std::uint32_t number = 0;  ///< of the row in the region
        std::uint32_t row_id = 0;
        Bytes offset = 0;
        Bytes bytes = 0;
        const double* numbers = nullptr;  ///< of the whole row
    };
    void write(const Piece& piece);
    /// The row's source column.
    void write_source(std::uint32_t number, std::uint32_t row_id, std::uint64_t source);

    std::uint32_t rows() const { return static_cast<std::uint32_t>(rows_.size()); }
    std::uint32_t row_id(std::uint32_t number) const { return rows_[number].id; }
    std::uint64_t source(std::uint32_t number) const { return rows_[number].source; }
    /// All lines, and the source column where there is one.
    bool complete(std::uint32_t number) const;
    /// Null where rows carry none.
    const double* numbers(std::uint32_t number) const {
        return width_ > 0 ? numbers_.data() + std::size_t{number} * width_ : nullptr;
    }

  private:
    struct Row {
        std::uint32_t id = 0;
        std::uint32_t seen = 0;  ///< lines
        std::uint64_t source = 0;
        bool known = false;
        bool has_source = false;
    };

    Row& row(std::uint32_t number, std::uint32_t row_id);
    void mark(std::uint32_t number, std::size_t first, std::size_t count);

    std::size_t lines_;
    std::size_t words_;  ///< of a row's bitmap of lines
    Bytes line_;
    bool source_column_;
    std::size_t width_;  ///< numbers of a row
    std::vector<Row> rows_;
    std::vector<std::uint64_t> arrived_;  ///< [row][word], of rows that came in pieces
    std::vector<double> numbers_;         ///< [row][width]
};

}  // namespace moehub::sim
