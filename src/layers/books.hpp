/// What must be true at the end of every layer, whatever the system: each row lay with its expert
/// once, and each result came back once. Where rows carry numbers, also what came back.
#pragma once
#include "model/reference.hpp"

#include <moehub/layer.hpp>

#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace moehub::layers {

class Books {
  public:
    /// `width`: numbers of a row; 0: rows carry none.
    Books(const LayerInput& input, int shards, int width);

    // Each row is reported once when it lies with its expert, and once when it is back.
    void delivered(std::uint32_t token, std::uint32_t choice, int shard);
    void returned(std::uint32_t token, std::uint32_t choice, int shard, const double* numbers);
    /// The sum of all of a token's weighted results, made on the way: `identity` says who is in it,
    /// each `times` (RowSums). Throws std::logic_error when that is not all of them, once.
    void returned_sum(std::uint32_t token, std::uint64_t identity, std::uint64_t times,
                      const double* numbers);
    /// Stands for a row in sums: 64 bits, well mixed.
    std::uint64_t identity(std::uint32_t token, std::uint32_t choice) const;
    /// A result times its gate weight, kept until the end; null where rows carry no numbers.
    const double* weighted(std::uint32_t token, std::uint32_t choice, const double* numbers);
    /// Throws std::logic_error when a row is missing.
    void check() const;

    // Numbers; null where rows carry none.
    const double* input(std::uint32_t token) const;
    /// What an expert's shard makes of a row; kept until the end.
    const double* result(int expert, int shard, const double* row);
    /// The shared experts have run for a token.
    void add_shared(std::uint32_t token);
    /// Of an output against the reference layer, relative to the largest output.
    double largest_error() const;

  private:
    std::size_t index(std::uint32_t token, std::uint32_t choice, int shard) const;
    void enter(std::vector<bool>& list, std::size_t at, const char* what);
    std::size_t width() const { return static_cast<std::size_t>(reference_->width()); }

    const Routing& routing_;
    int shards_;
    std::vector<bool> delivered_;  ///< [token][choice][shard]
    std::vector<bool> returned_;
    std::optional<ReferenceLayer> reference_;
    std::vector<double> inputs_;               ///< [token][width]
    std::deque<std::vector<double>> results_;  ///< rows that experts made
    std::vector<double> outputs_;              ///< [token][width]
};

}  // namespace moehub::layers
