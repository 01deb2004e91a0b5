/// The field tables of Gpu, Machine, Model and SystemSpec, how a chain of documents fills one, and
/// what must hold between its fields.
#pragma once
#include "base/fields.hpp"
#include "model/source.hpp"

#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/presets.hpp>

#include <string>
#include <vector>

namespace moehub {

Fields fields_of(Gpu& gpu);
Fields fields_of(KernelLibrary& library);

/// Without the constants of kernels that a library does not have, after `prefix` ("", "gpu.").
Fields without_absent_kernels(Fields fields, std::string_view prefix);
Fields fields_of(Machine& machine);
Fields fields_of(NcclCosts& nccl);
Fields fields_of(Model& model);
Fields fields_of(SystemSpec& system);
Fields fields_of(EngineSpec& engine);
Fields fields_of(TrainerSpec& trainer);

// Limits that several nouns have.
inline constexpr Limits kTime = {0, 1e12};   ///< ps: a second at most
inline constexpr Limits kShare = {1e-3, 1};  ///< of a rate

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

/// A record whose fields agree with each other whatever they are.
template <class Spec>
Spec spec_from(const std::vector<Document>& chain, const Overrides& overrides) {
    Spec spec;
    spec.name = chain.back().name;
    fill(fields_of(spec), chain, overrides);
    return spec;
}

}  // namespace moehub
