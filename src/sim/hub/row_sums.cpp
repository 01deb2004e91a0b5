#include "sim/hub/row_sums.hpp"

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
                 to.identity += lines * sum.identities[row_of_sum++];
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

}  // namespace moehub::sim
