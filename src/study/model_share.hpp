/// A model by the name that measurement files give it.
#pragma once
#include <moehub/model.hpp>

#include <string>

namespace moehub {

/// A preset; or with -epN at its end, with the experts that one of N ranks holds. Throws InputError
/// when there is no such preset, or its experts cannot be shared so.
Model load_model_share(const std::string& name);

}  // namespace moehub
