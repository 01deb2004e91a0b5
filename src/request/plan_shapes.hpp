/// `moehub plan --search-model`: its options, and what runs when it is asked for.
#pragma once
#include "request/option.hpp"

#include <moehub/shape_search.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed.
struct ShapeArguments {
    bool search_model = false;
    std::optional<std::string> params;
    std::optional<std::string> active;
    std::string shapes = "default";
};

/// What `moehub plan` has read of its other options.
struct ShapeRequest {
    TrainingRun run;  ///< its model is the base
    std::string fixed;
    std::vector<std::string> systems;
    std::size_t top = 10;
    int threads = 0;
};

/// What was found, and what was searched.
struct ShapeAnswer {
    ShapeSearch found;
    ShapeSearchOptions options;
};

/// --search-model, --params, --active, --shapes. `arguments` outlives the parsing.
std::vector<Option> shape_options(ShapeArguments& arguments);

/// Throws InputError when an option of the search is given without --search-model.
void require_search(const ShapeArguments& arguments);

/// A progress bar on a terminal. Windows that are not given
/// are 5 % around the base model's own counts. Throws InputError.
ShapeAnswer search_shapes(const ShapeArguments& arguments, const ShapeRequest& request);

}  // namespace moehub
