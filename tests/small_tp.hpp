/// Small tensor-parallel sub-layers for tests.
#pragma once
#include "small_layer.hpp"
#include "systems/systems.hpp"

#include <moehub/tp.hpp>

#include <array>

namespace moehub::testing {

inline constexpr std::array<Grain, 2> kGrains = {Grain::packet, Grain::row};

inline Model dense_model(int hidden) {
    Model model = load_model("mega-gpt-4b");
    model.hidden = hidden;
    model.dense_ffn = 4096;
    model.gated = false;
    model.attention.heads = 16;
    model.attention.kv_heads = 4;
    model.attention.head_dim = 64;
    return model;
}

/// Widths and rows of which nothing is a multiple of anything.
inline Model odd_model() {
    Model model = dense_model(1000);
    model.dense_ffn = 1003;
    model.gated = true;
    model.attention.heads = 11;
    model.attention.kv_heads = 11;
    model.attention.head_dim = 50;
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
