/// Lists of systems that someone typed.
#pragma once
#include <moehub/layer.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct KindOfSystems {
    std::string_view words;  ///< what they run
    std::vector<SystemInfo> (*all)();
};
KindOfSystems moe_systems();
KindOfSystems tp_systems();

std::vector<std::string> names_of(const KindOfSystems& kind);

/// Throws InputError when none is named, one twice, or one that is neither of this kind nor a file;
/// `other` is the kind that it may be of instead.
void check_names(const std::vector<std::string>& systems, const KindOfSystems& kind,
                 const KindOfSystems& other);

/// Throws InputError when the baseline, if one is named, is none of the systems.
void check_baseline(const std::string& baseline, const std::vector<SystemSpec>& systems);

/// Throws InputError when two have the same name.
void check_unlike(const std::vector<SystemSpec>& systems);

}  // namespace moehub
