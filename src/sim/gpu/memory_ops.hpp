/// Kernels that only move bytes, and the sort: seconds of the kernel alone, launch included.
#pragma once
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>

#include <cstdint>

namespace moehub {

/// How a kernel reads.
enum class Access {
    contiguous,  ///< whole rows, 16 bytes per thread: copies, gathers, activations
    narrow,      ///< small pieces far apart: reductions across rows
    in_order,    ///< whole tensors element by element: residual adds, fused activations
    plain,       ///< element by element, by kernels that find each one's address by itself
    by_row,      ///< a thread block reduces its row, then reads it again: norms
    quantising,  ///< a thread block seeks its row's largest element, then reads it again
    mixed,       ///< many tensors at once, element by element: an optimizer
    casting,     ///< whole tensors of two types, element by element
    softmax,     ///< a row is as wide as a vocabulary: passed over several times
};

/// What one kernel moves; reads of a line that L2 still holds from a read before are not counted.
struct Traffic {
    double read = 0;     ///< bytes read
    double written = 0;  ///< bytes written
    Access access = Access::contiguous;
    double again = 0;  ///< bytes that SMs read a second time, from L2
    double busy = 0;   ///< seconds, summed over SMs, that they do not move bytes
};

/// The kernel as thread blocks: `blocks` equal ones, a few for each SM.
struct StreamPlan {
    double start = 0;  ///< seconds from launch to the first block
    int blocks = 0;
    TileWork work;  ///< work of one block
    TileRates rates;
};

/// Plan and seconds among other kernels: all bytes pass HBM, as L2 holds nothing of a previous run.
StreamPlan plan_stream(const Gpu& gpu, const Traffic& traffic);
double stream_seconds(const Gpu& gpu, const Traffic& traffic);

/// Seconds replayed alone: L2 may still hold what the previous replay moved.
double replayed_stream_seconds(const Gpu& gpu, const Traffic& traffic);

/// `rows` rows of `width` bytes, picked from a table of table_rows rows in random order.
struct Gather {
    std::int64_t rows = 0;
    std::int64_t table_rows = 0;
    double width = 0;  ///< bytes of one row
};
Traffic gather_traffic(const Gpu& gpu, const Gather& gather);

/// Every output row is the sum of `fan_in` input rows (with or without weights).
Traffic sum_traffic(std::int64_t rows, std::int64_t fan_in, double width);

/// SwiGLU and the like: reads gate and up, writes one of them; `elements` of the output, bf16.
Traffic activation_traffic(double elements);

/// Traffic of quantising: bf16 in, FP8 and one float per `block` elements out.
Traffic quantise_traffic(double elements, double block);

/// An activation by a compiled kernel, or by the two of PyTorch's eager mode (the activation of the
/// gate, then its product with up: each a part of the rows of both).
Traffic fused_activation_traffic(double elements);
Traffic eager_activation_traffic(const Gpu& gpu, double elements);

/// PyTorch's kernels on whole tensors of bf16, of which `in` are read: vectorised; or plain, where
/// one of them is a part of wider rows or one number for each row.
Traffic vectorised_traffic(double elements, int in);
Traffic plain_traffic(const Gpu& gpu, double elements, int in);
/// Traffic of writing zeros, bf16.
Traffic fill_traffic(double elements);

enum class Norm { rms, layer };

/// Traffic of a norm of `rows` rows of `width` elements, bf16 in and out.
Traffic norm_traffic(const Gpu& gpu, std::int64_t rows, std::int64_t width, Norm norm);

/// The sum of two tensors, bf16; `tensors` of two or three pass through memory, as the addends are
/// one or two.
Traffic residual_traffic(double elements, int tensors = 3);

/// Traffic of quantising rows: bf16 in, FP8 and one float per row out.
Traffic quantise_rows_traffic(std::int64_t rows, std::int64_t width);

/// Top-k and softmax over each token's logits.
double route_seconds(const Gpu& gpu, std::int64_t tokens, std::int64_t experts);

/// Rows, weighted, are added to other rows by atomics (index_add): `width` bytes each.
double scatter_add_seconds(const Gpu& gpu, std::int64_t rows, double width);

/// Seconds of the adding alone, of rows that are weighted already.
double index_add_seconds(const Gpu& gpu, std::int64_t rows, double width);

/// Stable sort of int64 keys with their indices.
double sort_seconds(const Gpu& gpu, std::int64_t keys);

/// What it takes an SM to read rows and store them elsewhere: with all its warps at work, reads and
/// stores of a row follow one another,
///
///     time of a row = read · (near / rate from L2 + far / rate from HBM) + stored / store rate.
struct RowCopy {
    double read = 0;    ///< bytes read
    double far = 0;     ///< bytes of `read` that come from HBM
    double stored = 0;  ///< bytes stored
};

/// Seconds that one SM takes for a copy.
inline double row_copy_seconds(const Kernels& kernels, const RowCopy& copy) {
    const double near = 1 - copy.far;
    return copy.read * (near / kernels.row_load + copy.far / kernels.row_load_hbm) +
           copy.stored / kernels.row_store;
}

}  // namespace moehub
