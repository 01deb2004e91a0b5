/// Small MoE layers for tests.
#pragma once
#include "traffic.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace moehub::testing {

inline Model small_model(int experts = 8, int top_k = 2, int hidden = 256) {
    Model model;
    model.name = "small";
    model.layers = 1;
    model.hidden = hidden;
    model.experts = experts;
    model.top_k = top_k;
    model.expert_ffn = 512;
    return model;
}

/// A node with the compute of an H800.
inline Machine small_gpus(int gpus = 4) {
    Machine machine = small_machine(gpus, 2);
    machine.gpu = load_gpu("h800-sxm");
    machine.collective.launch = 8 * kUs;
    return machine;
}

/// All tokens to the same experts: 0, 1, …
inline Routing everything_to_the_first(const Model& model, std::int64_t tokens) {
    Routing routing = make_routing({}, model, tokens);
    std::vector<std::uint16_t> chosen(routing.chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
        chosen[i] = static_cast<std::uint16_t>(i % static_cast<std::size_t>(model.top_k));
    routing.chosen = std::move(chosen);
    return routing;
}

struct Case {
    Machine machine = small_gpus();
    Model model = small_model();
    std::int64_t tokens = 256;
    std::string routing = "uniform";
    LayerOptions options;

    /// Whether the system can run it; otherwise it must say why in one line.
    bool allowed(const std::string& system, const Placement& placement) const {
        const Routing given = make_routing({}, model, tokens);
        try {
            check_layer({machine, model, given, placement}, load_system(system), options);
        } catch (const InputError& error) {
            const std::string why = error.what();
            EXPECT_NE(why.find("cannot run this: "), std::string::npos) << why;
            EXPECT_EQ(why.find('\n'), std::string::npos) << why;
            return false;
        }
        return true;
    }
    bool allowed(const std::string& system) const {
        return allowed(
            system, contiguous_placement(model.experts, machine.gpus() / options.tensor_parallel));
    }
    LayerResult run(const std::string& system) const {
        return run(system, make_routing(parse_routing(routing), model, tokens));
    }
    LayerResult run(const std::string& system, const Routing& given) const {
        const Placement placement =
            contiguous_placement(model.experts, machine.gpus() / options.tensor_parallel);
        return run(system, given, placement);
    }
    LayerResult run(const std::string& system, const Routing& given,
                    const Placement& placement) const {
        return simulate_layer({machine, model, given, placement}, system, options);
    }
};

inline double statistic(const LayerResult& result, const std::string& unit,
                        const std::string& name) {
    for (const Statistic& entry : result.statistics) {
        if (entry.unit == unit && entry.name == name) return entry.value;
    }
    ADD_FAILURE() << "no statistic " << unit << "." << name;
    return 0;
}

/// All systems that run a layer on several GPUs.
inline const std::vector<std::string>& system_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> list;
        for (const SystemInfo& info : all_systems()) {
            if (info.name == "torch") continue;           // it has one GPU
            if (info.name == "dualpipe") continue;        // it has no layer by itself
            if (info.name == "deepep-ll-rdma") continue;  // it needs NICs: forwarded_test.cpp
            list.push_back(info.name);
        }
        return list;
    }();
    return names;
}

/// A system's name as that of a test.
inline std::string name_of_system(const ::testing::TestParamInfo<std::string>& system) {
    std::string name = system.param;
    for (char& c : name) c = c == '-' || c == '+' ? '_' : c;
    return name;
}

}  // namespace moehub::testing
