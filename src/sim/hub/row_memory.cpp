#include "sim/hub/row_memory.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::sim {

RowMemory::RowMemory(Bytes data_bytes, Bytes line, bool source_column, std::size_t numbers)
    : lines_(static_cast<std::size_t>((data_bytes + line - 1) / line)),
      words_((lines_ + 63) / 64),
      line_(line),
      source_column_(source_column),
      width_(numbers) {}

RowMemory::Row& RowMemory::row(std::uint32_t number, std::uint32_t row_id) {
    if (number >= rows_.size()) {
        rows_.resize(number + 1);
        numbers_.resize(rows_.size() * width_);
    }
    Row& found = rows_[number];
    if (found.known && found.id != row_id) {
        throw std::logic_error(fmt::format("row {} was written over row {} in row number {}",
                                           row_id, found.id, number));
    }
    found.known = true;
    found.id = row_id;
    return found;
}

/// A row that comes as a whole is told by its count of lines alone.
void RowMemory::mark(std::uint32_t number, std::size_t first, std::size_t count) {
    const auto twice = [&](std::size_t line) {
        throw std::logic_error(fmt::format("line {} of row {} came twice", line, rows_[number].id));
    };
    if (rows_[number].seen + count > lines_) twice(first);
    if (count == lines_) return;
    if (arrived_.size() < rows_.size() * words_) arrived_.resize(rows_.size() * words_);
    for (std::size_t line = first; line < first + count;) {
        const std::size_t bits = std::min(64 - line % 64, first + count - line);
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits) << (line % 64);
        std::uint64_t& word = arrived_[number * words_ + line / 64];
        if ((word & mask) != 0) twice(line);
        word |= mask;
        line += bits;
    }
}

void RowMemory::write(const Piece& piece) {
    Row& target = row(piece.number, piece.row_id);
    const auto first = static_cast<std::size_t>(piece.offset / line_);
    const auto count = static_cast<std::size_t>((piece.bytes + line_ - 1) / line_);
    if (piece.offset % line_ != 0 || first + count > lines_) {
        throw std::logic_error(
            fmt::format("{} B at {} do not lie on the lines of a row", piece.bytes, piece.offset));
    }
    mark(piece.number, first, count);
    target.seen += static_cast<std::uint32_t>(count);
    if (width_ == 0) return;
    const std::size_t begin = first * width_ / lines_;
    const std::size_t end = (first + count) * width_ / lines_;
    std::copy(piece.numbers + begin, piece.numbers + end,
              numbers_.begin() + static_cast<std::ptrdiff_t>(piece.number * width_ + begin));
}

void RowMemory::write_source(std::uint32_t number, std::uint32_t row_id, std::uint64_t source) {
    Row& target = row(number, row_id);
    if (target.has_source) {
        throw std::logic_error(fmt::format("the source of row {} came twice", row_id));
    }
    target.has_source = true;
    target.source = source;
}

bool RowMemory::complete(std::uint32_t number) const {
    if (number >= rows_.size()) return false;
    const Row& found = rows_[number];
    return found.known && found.seen == lines_ && found.has_source == source_column_;
}

}  // namespace moehub::sim
