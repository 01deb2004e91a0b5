// Do the systems with lists of targets deliver each row once and return the right sums, however
// small their tables, wherever a token's experts are, and whatever fails on the way?
#include "heap_oracle.hpp"

#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace moehub::testing::multimem_layer_test {
namespace {

constexpr double kRounding = 1e-11;

void expect_right(const LayerResult& result) {
    EXPECT_TRUE(result.verified);
    EXPECT_LT(result.largest_error, kRounding);
    EXPECT_GT(result.time, 0);
}

/// Each table of one entry, and all of them together.
struct Tiny {
    const char* name;
    std::function<void(Machine&)> apply;
};
const std::vector<Tiny>& tiny_tables() {
    static const std::vector<Tiny> all = {
        {"AL TLB", [](Machine& m) { m.dysharp.tlb_entries = m.moe_hub.rat_entries = 1; }},
        {"TS table", [](Machine& m) { m.dysharp.ts_entries = m.moe_hub.dam_entries = 1; }},
        {"OR table", [](Machine& m) { m.dysharp.or_entries = 1; }},
        {"MultimemQ", [](Machine& m) { m.dysharp.multimem_entries = 1; }},
        {"sums", [](Machine& m) { m.dysharp.sum_packets = 1; }},
    };
    return all;
}
void make_tiny(Machine& machine) {
    for (const Tiny& tiny : tiny_tables()) tiny.apply(machine);
    machine.link.buffer_flits = 11;
}

class MultimemLayer : public ::testing::TestWithParam<std::string> {
  protected:
    static Case verified() {
        Case layer;
        layer.options.verify = true;
        return layer;
    }
    /// In both grains, whose bytes must agree where no sums have to go on before.
    static void run_both(Case layer, const Routing& routing, const Placement& placement) {
        for (const Grain grain : {Grain::row, Grain::packet}) {
            layer.options.grain = grain;
            expect_right(layer.run(GetParam(), routing, placement));
        }
    }
    static void run_both(const Case& layer, const Routing& routing) {
        run_both(layer, routing, contiguous_placement(layer.model.experts, layer.machine.gpus()));
    }
    static void run_both(const Case& layer) {
        run_both(layer, make_routing(parse_routing(layer.routing), layer.model, layer.tokens));
    }
    static Case two_nodes() {
        Case layer = verified();
        layer.machine = small_cluster(2);
        layer.machine.gpu = load_gpu("h800-sxm");
        layer.model = small_model(32, 4);
        layer.tokens = 160;
        return layer;
    }
};
INSTANTIATE_TEST_SUITE_P(Systems, MultimemLayer,
                         ::testing::Values("dysharp", "dysharp-basic", "dysharp-comet",
                                           "fusion-only", "moe-hub+dysharp"),
                         name_of_system);

TEST_P(MultimemLayer, is_right_with_each_table_of_one_entry_and_with_all) {
    for (const Tiny& tiny : tiny_tables()) {
        SCOPED_TRACE(tiny.name);
        Case layer = verified();
        layer.model = small_model(8, 3);
        tiny.apply(layer.machine);
        run_both(layer);
    }
    Case layer = verified();
    layer.model = small_model(8, 3);
    make_tiny(layer.machine);
    run_both(layer);
}

TEST_P(MultimemLayer, is_right_where_all_of_a_tokens_experts_are_on_one_gpu) {
    Case layer = verified();
    layer.model = small_model(16, 4);
    run_both(layer, everything_to_the_first(layer.model, layer.tokens));
    make_tiny(layer.machine);
    run_both(layer, everything_to_the_first(layer.model, layer.tokens));
    // Each token on a GPU of its own.
    Routing routing = make_routing({}, layer.model, layer.tokens);
    std::vector<std::uint16_t> chosen(routing.chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
        chosen[i] = static_cast<std::uint16_t>((i / 4 * 7 % 4) * 4 + i % 4);
    routing.chosen = std::move(chosen);
    run_both(layer, routing);
}

TEST_P(MultimemLayer, is_right_where_every_token_chooses_every_expert) {
    Case layer = verified();
    layer.model = small_model(12, 12);  // two flits of a list
    layer.tokens = 96;
    run_both(layer);
    make_tiny(layer.machine);
    run_both(layer);
}

TEST_P(MultimemLayer, sends_rows_to_replicas) {
    Case layer = verified();
    Placement placement = contiguous_placement(8, 4);
    placement.hosts[0] = {0, 1, 2};
    placement.hosts[5] = {0, 2};
    const Routing routing = everything_to_the_first(layer.model, layer.tokens);
    for (const auto policy : {ReplicaPolicy::round_robin, ReplicaPolicy::least_loaded}) {
        layer.options.replicas = policy;
        run_both(layer, routing, placement);
    }
    for (auto& hosts : placement.hosts) hosts = {0, 1, 2, 3};
    make_tiny(layer.machine);
    run_both(layer, make_routing(parse_routing("zipf:1"), layer.model, layer.tokens), placement);
}

TEST_P(MultimemLayer, runs_where_gpus_have_different_numbers_of_experts) {
    Case layer = verified();
    layer.model = small_model(7, 3);  // two, two, two and one
    run_both(layer);
    layer.model = small_model(3, 2);  // one has none
    run_both(layer);
    layer.tokens = 4;
    run_both(layer);
}

/// Parts of a token are loaded by several SMs, and come in any order.
TEST_P(MultimemLayer, collects_few_tokens_with_many_sms) {
    Case layer = verified();
    for (const int hidden : {64, 256, 300, 2048}) {
        layer.model = small_model(8, 3, hidden);
        for (const std::int64_t tokens : {4, 7, 40}) {
            layer.tokens = tokens;
            run_both(layer);
            run_both(layer, everything_to_the_first(layer.model, tokens));
        }
    }
}

TEST_P(MultimemLayer, runs_on_one_gpu) {
    Case layer = verified();
    layer.machine = small_gpus(1);
    layer.model = small_model(8, 4);
    run_both(layer);
    make_tiny(layer.machine);
    layer.model = small_model(64, 64, 1024);  // lists that go nowhere have no format to fit into
    layer.tokens = 16;
    run_both(layer);
}

TEST_P(MultimemLayer, runs_on_two_nodes_where_it_may) {
    Case layer = two_nodes();
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "it works inside one node";
    run_both(layer);
    run_both(layer, everything_to_the_first(layer.model, layer.tokens));
    make_tiny(layer.machine);
    layer.model = small_model(32, 8);
    run_both(layer);
}

TEST_P(MultimemLayer, is_right_where_switches_add_what_each_expert_made) {
    Case layer = verified();
    layer.machine.dysharp.reduce_locally = false;
    for (const int hidden : {64, 256, 1024}) {  // one packet, four, and more
        layer.model = small_model(16, 6, hidden);
        run_both(layer);
        run_both(layer, everything_to_the_first(layer.model, layer.tokens));
    }
    make_tiny(layer.machine);
    run_both(layer);
}

TEST_P(MultimemLayer, is_right_with_a_switch_out_of_service) {
    Case layer = verified();
    layer.machine = small_gpus(4);
    layer.machine.switches = 3;
    layer.machine.switches_down = 1;
    run_both(layer);
    layer.machine.dysharp.sum_packets = 1;
    run_both(layer);
}

TEST_P(MultimemLayer, is_right_backward) {
    Case layer = verified();
    layer.options.pass = Pass::backward;
    layer.model = small_model(8, 3);
    run_both(layer);
    make_tiny(layer.machine);
    run_both(layer);
    layer = two_nodes();
    layer.options.pass = Pass::backward;
    if (layer.allowed(GetParam())) run_both(layer);
}

TEST_P(MultimemLayer, is_right_in_fp8) {
    Case layer = verified();
    layer.model = small_model(8, 3, 512);
    expect_same_on_the_heap(layer, GetParam());
}

TEST_P(MultimemLayer, notices_faults_with_small_tables_and_several_experts_of_a_token_on_a_gpu) {
    Case layer;
    layer.tokens = 48;
    layer.model = small_model(8, 4);
    make_tiny(layer.machine);
    for (const bool reduce_locally : {true, false}) {
        layer.machine.dysharp.reduce_locally = reduce_locally;
        for (const Grain grain : {Grain::row, Grain::packet}) {
            layer.options.grain = grain;
            expect_noticed(layer, GetParam(), 12);
        }
    }
}

TEST_P(MultimemLayer, notices_faults_between_nodes) {
    Case layer = two_nodes();
    layer.options.verify = false;
    layer.tokens = 32;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "it works inside one node";
    expect_noticed(layer, GetParam(), 12);
    layer.options.grain = Grain::packet;
    expect_noticed(layer, GetParam(), 12);
}

TEST_P(MultimemLayer, notices_faults_backward) {
    Case layer;
    layer.tokens = 48;
    layer.options.pass = Pass::backward;
    expect_noticed(layer, GetParam(), 12);
}

}  // namespace
}  // namespace moehub::testing::multimem_layer_test
