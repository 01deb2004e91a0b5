/// A tensor-parallel sub-layer being simulated, and the numbers that flow through it.
#pragma once
#include "layers/gpus.hpp"
#include "layers/tp/tp_shape.hpp"
#include "sim/gpu/gemm.hpp"

#include <cstdint>
#include <vector>

namespace moehub::layers {

/// Small numbers that flow through a tensor-parallel sub-layer where it is verified: the same
/// operators on a few inner numbers, with one number for each line of a row.
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
    /// The error of all that was multiplied, or ended so, against plain computation; relative to
    /// the largest output.
    double largest_error() const;

  private:
    /// The largest difference of two rows of numbers, not a number where one is not.
    static void compare(const double* made, const std::vector<double>& wanted, double& worst,
                        double& largest);

    std::uint32_t gpus_;
    std::int64_t rows_;
    std::size_t width_;
    std::vector<double> made_;  ///< [gpu][row][output]
    std::vector<double> ends_;  ///< [row][width]; empty where there is a second GEMM
};

/// What to simulate. All of it outlives the run.
struct TpJob {
    const TpInput& input;
    const SystemSpec& system;
    const TpOptions& options;
    sim::Scheme scheme = sim::Scheme::windows;
    sim::Fault fault = {};  ///< for tests
};

/// A tensor-parallel sub-layer being simulated: what all systems share. Every GPU computes partial
/// sums of all rows; a row's home adds them up and normalises the row; every GPU then reads it.
///
/// Where rows are:
///     partials  on every GPU, its own share of every row's sum
///     totals    at a row's home, what others' partial sums add up to there
///     passed    at a GPU of a ring, what the one before it has added up so far
///     shared    at a row's home, what all are to read: the sum, or the normalised row
///     gathered  on every GPU, rows that it loaded; outputs: rows that were stored to it
/// All are followed row by row; what is missing, double or wrong throws std::logic_error.
class TpLayer {
  public:
    TpLayer(const TpJob& job, Homes homes);
    TpLayer(const TpLayer&) = delete;
    ~TpLayer();

    std::uint32_t rows() const { return static_cast<std::uint32_t>(input.tokens); }
    Bytes row_bytes() const { return 2 * Bytes{shape.hidden}; }
    Bytes piece_bytes(std::uint32_t piece) const { return pieces.rows(piece) * row_bytes(); }
    bool home_here(GpuId gpu, std::uint32_t piece) const { return pieces.home(piece) == gpu; }
    std::uint32_t others() const { return gpus.count() - 1; }
    bool has_first() const { return shape.before > 0; }
    bool has_second() const { return shape.after > 0; }

    // Kernels, on so many of a GPU's SMs.
    GemmPlan plan_first(GpuId gpu, int sms) const;
    GemmPlan plan_second(GpuId gpu, int sms) const;
    /// Residual add and norm of so many rows, with `addends` further rows to be added to each.
    Traffic norm_traffic(std::int64_t count, int addends) const;
    /// As kernels of their own on the whole card; the books are kept.
    Process run_first(GpuId gpu);
    Process run_second(GpuId gpu);

    // What happens to rows, told by programs as they do it.
    void made_partials(GpuId gpu, std::uint32_t piece);
    /// Into the GPU's own partial sums goes what a ring has passed on to it, from `from`.
    void absorb(GpuId gpu, std::uint32_t piece, GpuId from);
    /// Where a home finds the sum of a piece.
    enum class Sum {
        all_in_totals,     ///< the switch added up everyone's
        others_in_totals,  ///< the switch added up the others', its own lies in its partial sums
        in_partials,       ///< a ring came to its end
        given,             ///< there is no first GEMM
    };
    /// Checks the sum, and has the home share it, normalised or as it is.
    void share(GpuId gpu, std::uint32_t piece, Sum sum, bool normalised);
    /// The second GEMM reads the rows of a piece: they must be there.
    void read(GpuId gpu, std::uint32_t piece);
    /// In the bound all rows are there, nobody sent them.
    void come_by_themselves(GpuId gpu);
    /// From here until it finishes, the GPU's rows are underway: where no kernel runs meanwhile,
    /// that is exposed communication.
    void begin(GpuId gpu);
    void finish(GpuId gpu);
    LayerResult result();

    /// Bytes of rows from `begin` on, counted from the first row: a piece or a part of one.
    struct Stretch {
        Bytes begin = 0;
        Bytes bytes = 0;
        GpuId home = 0;
    };
    Stretch whole(std::uint32_t piece) const {
        return {pieces.begin(piece) * row_bytes(), piece_bytes(piece), pieces.home(piece)};
    }
    /// In parts of so many bytes, which end alike on all GPUs, so that switches can merge them.
    std::vector<Stretch> parts_of(std::uint32_t piece, Bytes part) const;

    // Transfers of a piece, to be completed by who posts them: `arrived`, `answered`, `from_sm`.
    /// Adds the GPU's partial sums of the piece at `to`.
    sim::Transfer reduction(GpuId to, std::uint32_t piece, sim::RegionId into) const {
        return reduction(to, whole(piece), into);
    }
    sim::Transfer reduction(GpuId to, const Stretch& rows, sim::RegionId into) const;
    /// Loads the rows from their home.
    sim::Transfer load(std::uint32_t piece) const { return load(whole(piece)); }
    sim::Transfer load(const Stretch& rows) const;
    /// Stores the shared rows of the piece to `to`.
    sim::Transfer store(GpuId to, std::uint32_t piece);

    const TpInput input;
    const SystemSpec& system;
    const TpOptions options;
    const TpShape shape;
    Gpus gpus;
    const Pieces pieces;
    TpNumbers numbers;
    sim::RegionId partials = 0;
    sim::RegionId totals = 0;
    sim::RegionId passed = 0;
    sim::RegionId shared = 0;
    sim::RegionId gathered = 0;
    sim::RegionId outputs = 0;

  private:
    std::uint64_t identity(GpuId gpu, std::uint32_t row) const;
    std::uint64_t shared_identity(std::uint32_t row) const;
    void add_regions(GpuId gpu);
    GemmPlan plan_on(GpuId gpu, int sms, const GemmShape& firsts, const GemmShape& own) const;
    void check_total(GpuId gpu, std::uint32_t row, Sum sum) const;
    std::vector<double> summed(GpuId gpu, std::uint32_t row, Sum sum) const;
    const double* found(GpuId gpu, std::uint32_t row);

    // For the timeline: some rows are followed from one GPU to their home and back.
    GpuId followed_from(std::uint32_t row) const;
    void follow_rows(sim::RowLog& log) const;
    void note_step(GpuId gpu, std::uint32_t piece, const char* what);

    std::vector<std::vector<bool>> read_;  ///< [gpu][row]
    std::vector<bool> underway_;           ///< by GPU: begun
    bool normalised_ = true;               ///< what is shared
};

}  // namespace moehub::layers
