/// Small numbers that flow through a tensor-parallel sub-layer where it is verified: the same
/// operators on a few inner numbers, with one number for each line of a row.
#pragma once
#include <cstdint>
#include <vector>

namespace moehub::layers {

class TpNumbers {
  public:
    /// `width`: numbers of a row; 0: rows carry none, and nothing is to be called but `any`.
    TpNumbers(std::uint32_t gpus, std::int64_t rows, std::size_t width);

    bool any() const { return width_ > 0; }
    std::size_t width() const { return width_; }
    /// The first GEMM on one GPU's share of its inner width.
    std::vector<double> partial(std::uint32_t gpu, std::uint32_t row) const;
    /// The sum over all GPUs, one after the other.
    std::vector<double> sum(std::uint32_t row) const;
    std::vector<double> normalised(const double* row) const;
    /// The second GEMM on one GPU's share of the columns; kept for the comparison.
    void multiply(std::uint32_t gpu, std::uint32_t row, const double* read);
    /// A row as it is where there is no second GEMM.
    void end_with(std::uint32_t row, const double* normalised);
    /// Of all that was multiplied, or ended so, against the plain computation; relative to the
    /// largest output.
    double largest_error() const;

  private:
    std::vector<double> outputs(std::uint32_t gpu, const double* read) const;
    /// The largest difference of two rows of numbers, not a number where one is not.
    static void compare(const double* made, const std::vector<double>& wanted, double& worst,
                        double& largest);

    std::uint32_t gpus_;
    std::int64_t rows_;
    std::size_t width_;
    std::vector<double> made_;  ///< [gpu][row][output]
    std::vector<double> ends_;  ///< [row][width]; empty where there is a second GEMM
};

}  // namespace moehub::layers
