/// What a card takes from its generation: the kernel libraries fitted to cards of that generation,
/// and PyTorch's constants, the overheads and the exchange of the one that was measured
/// (presets/generations).
#pragma once
#include "base/fields.hpp"
#include "model/source.hpp"

#include <moehub/gpu.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Adds the libraries that entries such as "kernels.trtllm.decode.start" name, after `prefix`.
void add_libraries(Gpu& gpu, const std::vector<Entry>& entries, std::string_view prefix);

/// A card of constants alone, all of them its generation's, for one with `own` datasheet: rates of
/// an SM in `Kernels` go with the clock, those of the whole card with HBM, all else stays.
/// Throws InputError when there is no such generation.
Gpu inherited_by(const Gpu& own, const Given& given);

/// Tables with a constant that is not in `given`: "kernels.torch", "overheads", …
std::vector<std::string> missing_tables(Gpu gpu, const Given& given);

/// Adds the libraries of the generation that the files name, if there is one.
void add_generations_libraries(Gpu& gpu, const std::vector<Document>& chain);

/// Throws InputError when a kernel of a library that the card's generation lacks, one of `own`, is
/// given in part.
void require_whole_kernels(Gpu gpu, const Given& given,
                           const std::map<std::string, KernelLibrary>& own);

}  // namespace moehub
