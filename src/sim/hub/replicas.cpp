#include "sim/hub/replicas.hpp"

#include <stdexcept>

namespace moehub::sim {

std::uint32_t ReplicaTable::add(std::span<const std::uint32_t> endpoints) {
    if (endpoints.empty()) throw std::logic_error("replicas: a destination without endpoints");
    const auto number = static_cast<std::uint32_t>(destinations_.size());
    Destination& destination = destinations_.emplace_back();
    destination.turn = (std::size_t{number} + origin_) % endpoints.size();
    for (const std::uint32_t endpoint : endpoints) {
        const auto [found, added] = index_.try_emplace(endpoint, endpoints_.size());
        if (added) endpoints_.push_back({.number = endpoint});
        destination.endpoints.push_back(found->second);
    }
    return number;
}

std::uint32_t ReplicaTable::choose(std::uint32_t number) {
    Destination& destination = destinations_[number];
    const std::size_t index =
        policy_ == ReplicaPolicy::least_loaded ? least_loaded(destination) : destination.turn;
    destination.turn = index + 1 == destination.endpoints.size() ? 0 : index + 1;
    Endpoint& endpoint = endpoints_[destination.endpoints[index]];
    ++endpoint.sent;
    return endpoint.number;
}

std::size_t ReplicaTable::least_loaded(const Destination& destination) const {
    const std::size_t count = destination.endpoints.size();
    const auto load = [&](std::size_t index) {
        return endpoints_[destination.endpoints[index]].sent;
    };
    std::size_t best = destination.turn;
    for (std::size_t i = 1; i < count; ++i) {
        const std::size_t index = (destination.turn + i) % count;
        if (load(index) < load(best)) best = index;
    }
    return best;
}

std::int64_t ReplicaTable::sent(std::uint32_t endpoint) const {
    const auto found = index_.find(endpoint);
    return found == index_.end() ? 0 : endpoints_[found->second].sent;
}

}  // namespace moehub::sim
