/// What a routing may be asked for.
#pragma once
#include <moehub/routing.hpp>

namespace moehub {

/// Experts are numbered in 16 bits.
constexpr int kMostExperts = 65535;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
/// (token, expert) pairs of all layers; 6 bytes each.
constexpr std::int64_t kMostRows = std::int64_t{1} << 33;

/// Both throw InputError with what was found and what is allowed.
void check_spec(const RoutingSpec& spec);
void check_sizes(const Model& model, std::int64_t tokens, int layers);

/// Throws when there are more than kMostRows; `where` begins the message. None negative.
void check_rows(const std::string& where, std::int64_t tokens, std::int64_t layers,
                std::int64_t top_k);

}  // namespace moehub
