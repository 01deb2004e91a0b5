/// The extents of kernel calls by name: the columns of measurement files, what `moehub predict`
/// takes.
#pragma once
#include <moehub/kernel_calls.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace moehub {

struct CallKey {
    std::string_view name;
    std::int64_t* value;  ///< where the call has the value
    std::int64_t least = 1;
    std::optional<std::int64_t> otherwise = std::nullopt;  ///< none: must be given
};

std::vector<CallKey> keys_of(KernelCall& call);

/// A call of that kernel, all extents 0.
std::optional<KernelCall> call_named(std::string_view kernel);
std::vector<std::string_view> kernel_names();

std::optional<NumberFormat> format_named(std::string_view name);
std::vector<std::string_view> format_names();

/// The skew of a distribution's name: "balanced" is 0, "power-law-1.2" is 1.2.
std::optional<double> skew_named(std::string_view distribution);

/// Sets the format of products and that of the cache, where the call has one.
void set_formats(KernelCall& call, NumberFormat format, NumberFormat cache);

}  // namespace moehub
