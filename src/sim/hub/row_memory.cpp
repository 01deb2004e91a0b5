#include "sim/hub/row_memory.hpp"

#include "sim/endpoint.hpp"

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
    if (target.has_source)
        throw std::logic_error(fmt::format("the source of row {} came twice", row_id));
    target.has_source = true;
    target.source = source;
}

bool RowMemory::complete(std::uint32_t number) const {
    if (number >= rows_.size()) return false;
    const Row& found = rows_[number];
    return found.known && found.seen == lines_ && found.has_source == source_column_;
}

RowSums::RowSums(Extent extent, Bytes row_bytes, Bytes line, bool numbers)
    : first_(extent.first),
      lines_(static_cast<std::uint64_t>((row_bytes + line - 1) / line)),
      row_bytes_(row_bytes),
      line_(line),
      with_numbers_(numbers),
      rows_(static_cast<std::size_t>(extent.rows)) {
    if (numbers) numbers_.resize(rows_.size() * lines_);
}

void RowSums::add_row(std::uint32_t row, std::uint64_t identity, const double* numbers) {
    const std::size_t at = row - first_;
    if (at >= rows_.size()) rows_.resize(at + 1);
    rows_[at].identity += identity;
    if (!with_numbers_) return;
    if (numbers_.size() < rows_.size() * lines_) numbers_.resize(rows_.size() * lines_);
    double* own = numbers_.data() + at * lines_;
    for (std::uint64_t i = 0; i < lines_; ++i) own[i] += numbers[i];
}

Sum RowSums::read(const RowStretch& stretch) const {
    Sum sum;
    each_row(stretch, row_bytes_, line_,
             [&](std::uint32_t row, std::uint64_t first, std::uint64_t lines) {
                 sum.identities.push_back(rows_.at(row - first_).identity);
                 if (!with_numbers_) return;
                 const double* own = numbers_.data() + (row - first_) * lines_ + first;
                 sum.numbers.insert(sum.numbers.end(), own, own + lines);
             });
    return sum;
}

void RowSums::add(const RowStretch& stretch, const Sum& sum, std::uint32_t answers) {
    std::size_t row_of_sum = 0;
    std::size_t line_of_sum = 0;
    each_row(stretch, row_bytes_, line_,
             [&](std::uint32_t row, std::uint64_t first, std::uint64_t lines) {
                 Row& to = rows_.at(row - first_);
                 const std::uint64_t end = first + lines;
                 to.identity += (end * end - first * first) * sum.identities[row_of_sum++];
                 to.lines += lines * answers;
                 if (!with_numbers_) return;
                 double* own = numbers_.data() + (row - first_) * lines_ + first;
                 for (std::uint64_t i = 0; i < lines; ++i) own[i] += sum.numbers[line_of_sum++];
             });
}

void RowSums::add_sums_of(std::uint32_t row, const RowSums& other, std::uint32_t answers) {
    Row& to = rows_.at(row - first_);
    to.identity += other.identity(row);
    to.lines += lines_ * answers;
    if (!with_numbers_) return;
    double* own = numbers_.data() + (row - first_) * lines_;
    for (std::uint64_t i = 0; i < lines_; ++i) own[i] += other.numbers(row)[i];
}

SumsWatcher::SumsWatcher(const RowSums& sums, const SumsWatch& watch)
    : watch_(watch), row_bytes_(sums.row_bytes()), first_row_(sums.extent().first) {
    if (watch.piece <= 0 || watch.piece % row_bytes_ != 0)
        throw std::logic_error("sums are watched by pieces of whole rows");
    for (Bytes left = sums.extent().rows * row_bytes_; left > 0; left -= watch.piece)
        pieces_.push_back({std::min(left, watch.piece) * watch.contributions});
}

void SumsWatcher::count(Endpoint& gpu, const RowStretch& stretch, std::uint32_t answers,
                        Ps visible) {
    if (pieces_.empty()) return;
    Bytes at = Bytes{stretch.row - first_row_} * row_bytes_ + stretch.offset;
    for (Bytes left = stretch.bytes; left > 0;) {
        const auto number = static_cast<std::size_t>(at / watch_.piece);
        const Bytes here = std::min(left, static_cast<Bytes>(number + 1) * watch_.piece - at);
        Piece& piece = pieces_.at(number);
        piece.visible = std::max(piece.visible, visible);
        piece.missing -= here * answers;
        if (piece.missing < 0) throw std::logic_error("more came for a sum than is expected");
        if (piece.missing == 0)
            gpu.increase_at(piece.visible, watch_.first + static_cast<CounterId>(number));
        at += here;
        left -= here;
    }
}

}  // namespace moehub::sim
