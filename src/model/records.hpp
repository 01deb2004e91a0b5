/// The field tables of Gpu, LinkSpec, Machine, Model and SystemSpec, and how a chain of documents
/// fills one.
#pragma once
#include "base/fields.hpp"
#include "model/source.hpp"

#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/presets.hpp>

#include <set>
#include <string>
#include <vector>

namespace moehub {

Rows rows_of(Gpu& gpu);
Rows rows_of(Machine& machine);
Rows rows_of(Model& model);
Rows rows_of(SystemSpec& system);

/// Sets the rows' fields from the documents, base first, then from the overrides; throws
/// InputError when a required key is missing at the end. A preset's name is the document's unless
/// it gives one.
void fill(const Rows& rows, const std::vector<Document>& chain, const Overrides& overrides);

}  // namespace moehub
