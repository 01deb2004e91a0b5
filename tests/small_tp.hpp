/// Small tensor-parallel sub-layers for tests.
#pragma once
#include "small_layer.hpp"
#include "systems/systems.hpp"

#include <moehub/tp.hpp>

#include <array>

namespace moehub::testing {

inline constexpr std::array<Grain, 2> kGrains = {Grain::packet, Grain::row};

struct Heads {
    int heads, kv_heads, head_dim;
};

inline Model dense_model(int hidden, int ffn = 4096, Heads heads = {16, 4, 64}) {
    Model model = load_model("mega-gpt-4b");
    model.hidden = hidden;
    model.dense_ffn = ffn;
    model.gated = false;
    model.attention.heads = heads.heads;
    model.attention.kv_heads = heads.kv_heads;
    model.attention.head_dim = heads.head_dim;
    return model;
}

/// Widths and rows of which nothing is a multiple of anything.
inline Model odd_model() {
    Model model = dense_model(1000, 1003, {11, 11, 50});
    model.gated = true;
    return model;
}

struct TpCase {
    Machine machine = small_gpus(4);
    Model model = dense_model(1024);
    std::int64_t tokens = 1024;
    SubLayer part = SubLayer::l1;
    TpOptions options = {};

    TpInput input() const { return {machine, model, tokens, part}; }
    LayerResult run(const std::string& system) const {
        return simulate_tp(input(), system, options);
    }
    LayerResult run_with(const std::string& system, sim::Fault fault) const {
        const SystemSpec spec = load_system(system);
        const TpInput in = input();
        return systems::run_tp_job({in, spec, options, sim::Scheme::windows, fault});
    }
};

inline TpCase odd_case(int gpus, std::int64_t tokens, Grain grain) {
    TpCase one;
    one.machine = small_gpus(gpus);
    one.model = odd_model();
    one.tokens = tokens;
    one.options = {grain, true};
    return one;
}

}  // namespace moehub::testing
