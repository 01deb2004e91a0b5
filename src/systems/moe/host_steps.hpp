/// Steps of programs whose host knows how many rows go where: it counts, and its kernels follow one
/// another.
#pragma once
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {

/// How a program's host comes to know all counts.
struct Counting {
    int operators = 1;        ///< operators that it issues first, to count
    int kernels = 1;          ///< small kernels of these operators; the others are the exchange
    bool own_launch = false;  ///< the exchange is issued when those kernels have run
    Bytes bytes = 0;          ///< bytes that a GPU tells each other one
    int places = 0;           ///< small kernels that then find the rows' places
};
/// Routing, and the counts of all GPUs; ends when the host has them. Nothing on the way back, which
/// knows them.
Process exchange_counts(MoeLayer& layer, RowCounts& counts, GpuId gpu, Counting counting);

/// A pass that puts rows, which came by GPU, in the order of their experts, or back; none where the
/// GPU has one expert.
Process sort_received(MoeLayer& layer, GpuId gpu, std::int64_t rows, Bytes width);
/// The GPU's experts on all rows that it has received, results where the rows stood.
Process run_received(MoeLayer& layer, GpuId gpu, Rows& rows);

/// One expert's tiles of some columns of the second GEMM, in a kernel that runs already.
Process run_down_part(MoeLayer& layer, GpuId gpu, GemmPlan plan, sim::CounterId done);

/// A GPU's rows by the GPU that computes them and the expert there, in the order of experts_of.
std::vector<std::vector<Rows>> rows_by_gpu_and_expert(MoeLayer& layer, GpuId gpu);

}  // namespace moehub::systems
