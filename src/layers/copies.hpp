/// Rows of one token that one GPU computes: they may travel as one copy of the token, out and
/// back.
#pragma once
#include "layers/exchange.hpp"

#include <vector>

namespace moehub::layers {

/// The GPU's rows by the GPU that computes them, in the order of tokens: the rows of a copy follow
/// one another.
std::vector<Rows> rows_by_peer(const MoeLayer& layer, GpuId gpu);

/// Distinct tokens in a buffer in which the rows of a copy follow one another.
std::int64_t copies_in(const Rows& rows);

/// Cut behind every `copies` copies.
std::vector<Rows> cut(const Rows& rows, std::int64_t copies);

/// Received rows by whose tokens they are, in the order in which they stand.
std::vector<Rows> rows_by_home(const MoeLayer& layer, const Rows& rows);

}  // namespace moehub::layers
