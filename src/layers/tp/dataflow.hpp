/// CAIS's dataflow optimizer: from the operators of a layer, each with what a thread block of it
/// needs of the operator before, to kernels. Operators that need only the same rows can be one
/// fused schedule, in which a block starts when its rows are there; one that needs all rows ends
/// it.
#pragma once
#include "layers/tp/tp_shape.hpp"

#include <moehub/gpu.hpp>

#include <string>
#include <vector>

namespace moehub::layers {

enum class OperatorKind {
    multiply_partial,  ///< a GEMM whose inner width is cut: partial sums of all rows
    reduce,            ///< partial sums are added up at their homes
    norm,
    gather,    ///< rows go to all GPUs
    multiply,  ///< a GEMM whose columns are cut
    rowwise,   ///< any other that needs only the same rows, of one's own
    mixing,    ///< attention: a row needs others
};

struct Operator {
    OperatorKind kind = OperatorKind::rowwise;
    std::string name;
    double seconds = 0;  ///< its kernel's on the whole card; what moves rows has none
    double tile = 0;     ///< seconds of one tile of a GEMM
};

/// Operators [first, end) as one schedule.
struct Fused {
    std::size_t first = 0;
    std::size_t end = 0;
    int first_sms = 0;       ///< SMs of the GEMM that makes partial sums; 0: none
    int second_sms = 0;      ///< SMs of the GEMM that reads gathered rows; 0: none
    bool by_blocks = false;  ///< blocks start as their rows come; false: a kernel after the other
};

/// One sub-layer's operators, timed on a card.
std::vector<Operator> operators_of(const TpInput& input);
/// A whole dense layer's forward: sub-layers L2 and L1 with attention and activation behind them.
std::vector<Operator> layer_operators(const TpInput& input);

/// The pass. With `fuse` false every GEMM is a schedule of its own, with what moves its rows.
/// A fused pair divides the SMs so that both GEMMs run, and rows flow both ways, nearly all the
/// time: the first ends two of the second's tiles before all is over, so that these fill the card.
/// Where the second has less than two tiles for every SM there is nothing to divide: both have all.
std::vector<Fused> optimise(const std::vector<Operator>& operators, const Gpu& gpu, bool fuse);

/// What the pass did, a line for each schedule.
std::string to_text(const std::vector<Operator>& operators, const std::vector<Fused>& fused);

}  // namespace moehub::layers
