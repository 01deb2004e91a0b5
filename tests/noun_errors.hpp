/// What is said of machines and models that cannot be.
#pragma once
#include "error_of.hpp"

#include <moehub/presets.hpp>

namespace moehub {

inline std::string machine_error(const std::string& toml) {
    return error_of([&toml] { parse<Machine>(toml, "m.toml"); });
}

inline std::string model_error(const std::string& toml) {
    return error_of([&toml] { parse<Model>(toml, "m.toml"); });
}

/// The error of a machine's name with a setting behind it: "dgx-h100 switches=0".
inline std::string set_error(const std::string& machine_and_setting) {
    const std::size_t blank = machine_and_setting.find(' ');
    return error_of([&] {
        load_machine(machine_and_setting.substr(0, blank), {machine_and_setting.substr(blank + 1)});
    });
}

}  // namespace moehub
