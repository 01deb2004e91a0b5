/// What it takes an SM to read rows and store them elsewhere: with all its warps at work, reads and
/// stores of a row follow one another,
///
///     time of a row = read · (near / rate from L2 + far / rate from HBM) + stored / store rate.
#pragma once
#include <moehub/gpu.hpp>

namespace moehub {

struct RowCopy {
    double read = 0;    ///< bytes
    double far = 0;     ///< of what is read, from HBM
    double stored = 0;  ///< bytes
};

/// Seconds of one SM.
inline double row_copy_seconds(const Kernels& kernels, const RowCopy& copy) {
    const double near = 1 - copy.far;
    return copy.read * (near / kernels.row_load + copy.far / kernels.row_load_hbm) +
           copy.stored / kernels.row_store;
}

}  // namespace moehub
