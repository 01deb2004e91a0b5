#include "base/pickle.hpp"

#include "base/pickle_machine.hpp"

#include <bit>

namespace moehub {

Pickle Pickle::parse(std::string_view bytes, Allowed allowed, const std::string& file) {
    Pickle pickle;
    pickle.bytes_ = bytes;
    PickleMachine(pickle, std::move(allowed), file).run();
    return pickle;
}

std::int64_t Pickle::integer(Ref value) const {
    return std::bit_cast<std::int64_t>(nodes_[value].payload);
}

std::string_view Pickle::text(Ref value) const {
    const Node& node = nodes_[value];
    if (node.kind == Kind::text) return bytes_.substr(node.payload, node.length);
    if (node.kind == Kind::name) return names_[node.payload];
    return {};
}

std::span<const Pickle::Ref> Pickle::items(Ref value) const {
    const Node& node = nodes_[value];
    switch (node.kind) {
        case Kind::list:
        case Kind::dict:
            return growing_[node.payload];
        case Kind::tuple:
        case Kind::call:
        case Kind::persistent:
            return {fixed_.data() + node.payload, node.length};
        default:
            return {};
    }
}

std::optional<Pickle::Ref> Pickle::find(Ref dict, std::string_view key) const {
    if (kind(dict) != Kind::dict) return std::nullopt;
    const auto all = items(dict);
    for (std::size_t i = all.size(); i >= 2; i -= 2)
        if (kind(all[i - 2]) == Kind::text && text(all[i - 2]) == key) return all[i - 1];
    return std::nullopt;
}

}  // namespace moehub
