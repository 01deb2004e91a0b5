#include "sim/hub/row_sums.hpp"

#include "sim/endpoint.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

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
    if (watch.piece <= 0 || watch.piece % row_bytes_ != 0) {
        throw std::logic_error("sums are watched by pieces of whole rows");
    }
    for (Bytes left = sums.extent().rows * row_bytes_; left > 0; left -= watch.piece) {
        pieces_.push_back({std::min(left, watch.piece) * watch.contributions});
    }
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
        if (piece.missing == 0) {
            gpu.increase_at(piece.visible, watch_.first + static_cast<CounterId>(number));
        }
        at += here;
        left -= here;
    }
}

}  // namespace moehub::sim
