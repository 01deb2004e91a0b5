/// Rows of one token that one GPU computes: they may travel as one copy of the token, out and
/// back.
#pragma once
#include "systems/exchange.hpp"

#include <vector>

namespace moehub::systems {

/// The GPU's rows by the GPU that computes them, in the order of tokens: the rows of a copy follow
/// one another.
std::vector<Buffer> rows_by_peer(const Layer& layer, GpuId gpu);

/// Distinct tokens in a buffer in which the rows of a copy follow one another.
std::int64_t copies_in(const Buffer& rows);

/// Cut behind every `copies` copies.
std::vector<Buffer> cut(const Buffer& rows, std::int64_t copies);

/// Received rows by whose tokens they are, in the order in which they stand.
std::vector<Buffer> rows_by_home(const Layer& layer, const Buffer& rows);

/// Bytes of FP8 scales beside a row, where its elements have one byte: a float for every 128.
Bytes scale_bytes(const Layer& layer);

}  // namespace moehub::systems
