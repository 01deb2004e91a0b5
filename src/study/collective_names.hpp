/// Names of collective operations, algorithms, elements and grains, as users and files write them.
#pragma once
#include <moehub/collective.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace moehub {

std::string_view name_of(Collective::Op op);
std::string_view name_of(Collective::Algorithm algorithm);
std::string_view name_of(Collective::Element element);
std::string_view name_of(Grain grain);

/// Nothing when the name is not known.
std::optional<Collective::Op> op_named(std::string_view name);
std::optional<Collective::Algorithm> algorithm_named(std::string_view name);
std::optional<Collective::Element> element_named(std::string_view name);

/// All names, for messages.
std::vector<std::string_view> op_names();
std::vector<std::string_view> algorithm_names();
std::vector<std::string_view> element_names();

}  // namespace moehub
