/// The field tables of Gpu, Machine, Model and SystemSpec, how a chain of documents fills one, and
/// what must hold between its fields.
#pragma once
#include "base/fields.hpp"
#include "base/toml.hpp"

#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/presets.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct Document {
    Origin origin;       ///< for errors
    std::string name;    ///< name of the preset, or of the file without folder and ".toml"
    std::string folder;  ///< folder of the file, against which it names others; empty: a preset
    std::vector<Entry> entries;
    std::string text;  ///< text as written, comments and all
};

/// The document with what it extends, base first. `extends` is taken out; name and title stay
/// only in the last. Kinds as in preset_names().
std::vector<Document> load_chain(std::string_view kind, const std::string& name_or_path);
std::vector<Document> parse_chain(std::string_view kind, std::string_view text,
                                  const Origin& origin);

/// A file named inside `document`, relative to its folder; a preset's name stays as it is.
std::string resolved(const Document& document, const std::string& name_or_path);

Fields fields_of(Gpu& gpu);
Fields fields_of(KernelLibrary& library);

/// Fields but the constants of kernels that a library lacks, after `prefix` ("", "gpu.").
Fields without_absent_kernels(Fields fields, std::string_view prefix);
Fields fields_of(Machine& machine);
Fields fields_of(NcclCosts& nccl);
Fields fields_of(Model& model);
Fields fields_of(SystemSpec& system);
Fields fields_of(EngineSpec& engine);
Fields fields_of(TrainerSpec& trainer);

// Limits that several nouns have.
inline constexpr Limits kTime = {0, 1e12};   ///< ps: a second at most
inline constexpr Limits kShare = {1e-3, 1};  ///< share of a rate

// Limits of machines that their checks need, too.
inline constexpr double kSlowest = 1e6;   ///< bytes/s: below it, times leave an int64 of ps
inline constexpr double kShortest = 1e3;  ///< ps: a hop cannot take no time
inline constexpr int kMostGpus = 65535;

/// What must hold between fields; throws InputError.
void check(const Machine& machine, const Given& given);
void check(const Model& model, const Given& given);

/// Sets the fields' fields from the documents, base first, then from the overrides; throws
/// InputError when a required key is missing at the end. A preset's name is the document's unless
/// it gives one. Returns where each was given.
Given fill(const Fields& fields, const std::vector<Document>& chain, const Overrides& overrides);

/// A machine or a card from the documents, which say more than their fields: a machine names its
/// card, a card its generation.
Machine machine_from(std::vector<Document> chain, const Overrides& overrides);
Gpu gpu_from(std::vector<Document> chain, const Overrides& overrides);

// What a card takes from its generation: the kernel libraries fitted to cards of that generation,
// and PyTorch's constants, the overheads and the exchange of the one that was measured
// (presets/generations).

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
