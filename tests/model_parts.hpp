/// Parts of a model's time.
#pragma once
#include <moehub/model_time.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace moehub {

inline Ps ps(double seconds) {
    return std::llround(seconds * 1e12);
}

inline const LayerTypeTime& part(const ModelTime& time, const std::string& name) {
    const auto found = std::find_if(time.parts.begin(), time.parts.end(),
                                    [&](const auto& one) { return one.name == name; });
    if (found == time.parts.end()) throw std::logic_error("no part " + name);
    return *found;
}

}  // namespace moehub
