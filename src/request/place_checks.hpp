/// What can be wrong with `moehub place` before anything is read or searched.
#pragma once
#include "request/place_arguments.hpp"

namespace moehub {

/// Of the file to write: as asked for, else by its ending. Throws InputError where the format
/// cannot say what is asked for.
LayoutFormat format_of(const PlaceArguments& arguments);

/// Throws InputError when the layout would replace a profile.
void check_output(const PlaceArguments& arguments);

/// Throws InputError when SGLang's file would lack the rows of dense layers that nobody spoke of.
void check_dense_layers(const PlaceArguments& arguments, const PlaceTask& task);

/// Throws InputError when a GPU's experts do not fit its memory, or --memory stands without a
/// model.
void check_memory(const PlaceArguments& arguments, const PlaceTask& task);

}  // namespace moehub
