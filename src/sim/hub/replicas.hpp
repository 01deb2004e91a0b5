/// One logical destination, several endpoints: the producer's side of the APT's one-to-many
/// extension. The endpoint is chosen once per row, so all its packets agree.
#pragma once
#include <moehub/layer_options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

class ReplicaTable {
  public:
    /// `origin`: the producer's number.
    explicit ReplicaTable(ReplicaPolicy policy, std::uint32_t origin = 0)
        : policy_(policy), origin_(origin) {}

    /// Returns the logical destination's number. `endpoints`: numbers of the caller's, at least one
    /// (std::logic_error). An endpoint may serve several destinations.
    std::uint32_t add(std::span<const std::uint32_t> endpoints);
    /// The endpoint for the next row to this destination. Round robin starts at `destination` plus
    /// `origin`, mod its endpoints, so that producers do not all begin with the same one; least
    /// loaded takes the endpoint with the fewest rows sent from here, and of equals the one
    /// whose turn comes first.
    std::uint32_t choose(std::uint32_t destination);
    std::int64_t sent(std::uint32_t endpoint) const;  ///< rows that were to go there

  private:
    struct Endpoint {
        std::uint32_t number = 0;
        std::int64_t sent = 0;
    };
    struct Destination {
        std::vector<std::size_t> endpoints;  ///< in endpoints_
        std::size_t turn = 0;                ///< whose is next
    };

    std::size_t least_loaded(const Destination& destination) const;

    ReplicaPolicy policy_;
    std::uint32_t origin_;
    std::vector<Endpoint> endpoints_;
    std::unordered_map<std::uint32_t, std::size_t> index_;  ///< endpoint's number → endpoints_
    std::vector<Destination> destinations_;
};

}  // namespace moehub::sim
