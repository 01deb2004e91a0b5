/// Nouns that a caller has at hand, so that a request need not load them by name.
#pragma once
#include <moehub/expert_layout.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/presets.hpp>
#include <moehub/routing.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// A noun and what it was loaded from, which results repeat.
template <class Noun>
struct Loaded {
    Noun value;
    std::string name;         ///< preset or file, as asked for
    Overrides settings = {};  ///< "KEY=VALUE" that changed it
};

/// A routing and where it comes from.
struct NamedRouting {
    Routing value;
    std::string name;                        ///< generator, file, or what the caller calls it
    std::optional<std::uint64_t> seed = {};  ///< of a generator
};

/// What is null is loaded as the request says.
struct LayerNouns {
    const Loaded<Machine>* machine = nullptr;  ///< as loaded; the request says of how many GPUs
    const Loaded<Model>* model = nullptr;
    const NamedRouting* routing = nullptr;
    const Loaded<ExpertLayout>* layout = nullptr;
    const std::vector<SystemSpec>* systems = nullptr;
};

}  // namespace moehub
