// Fields of a machine or a model that do not go together: does the error say which file and line,
// or which --set, each of them came from, and do values made by hand get the same check?
#include "cli_fixture.hpp"
#include "noun_errors.hpp"
#include "small_layer.hpp"

#include <functional>
#include <limits>

namespace moehub::agreement_test {
namespace {

TEST(Agreement, of_a_machines_fields_is_asked_for_where_they_were_given) {
    expect_errors([](auto& changes) { return machine_error("extends = 'dgx-h100'\n" + changes); },
                  R"(
nodes = 2
    m.toml: nic.bandwidth: found 0 B/s, allowed 1 MB/s and more with nodes = 2 (m.toml:2)
[link]
flit = '100 B'
    preset machines/dgx-h100:12: link.payload: found 128 B, allowed multiples of link.flit = 100 B (m.toml:3)
[link]
payload = '1 MiB'
flit = '1 B'
    m.toml:3: link.payload: found 1048576 B, which makes packets of 1048578 flits, allowed at most 65535
[link]
latency = '1 ps'
    m.toml:3: link.latency: found 1 ps, allowed 1 ns and more
topology = 'mesh'
switches = 0
    preset machines/dgx-h100:5: in_switch: found true, allowed false with topology = mesh (m.toml:2)
gpus_per_node = 60000


nodes = 3
    m.toml:5: nodes: found 3, 180000 GPUs in all, allowed at most 65535 GPUs
)");
}

TEST(Agreement, of_what_was_set_names_the_setting) {
    expect_errors(set_error, R"(
dgx-h100 switches=0
    --set: switches: found 0, allowed 1 or more with topology = switched (preset machines/dgx-h100:3)
dgx-h100 topology=mesh
    preset machines/dgx-h100:4: switches: found 4, allowed 0 with topology = mesh (--set)
dgx-h100 max_gpus=4
    --set: max_gpus: found 4, allowed 0 or 8 and more
dgx-h100 link.buffer_flits=4
    --set: link.buffer_flits: found 4, allowed 10 or more: one packet or acknowledgement
dgx-h100 moe_hub.store_bytes=48 B
    --set: moe_hub.store_bytes: found 48 B, allowed multiples of link.flit = 16 B (preset machines/dgx-h100:11) that divide link.payload = 128 B (preset machines/dgx-h100:12)
h100-cluster nic.payload=4160 B
    --set: nic.payload: found 4160 B, allowed multiples of link.payload = 128 B (preset machines/dgx-h100:12)
h100-cluster nic.ack_flits=1024
    preset machines/h100-cluster:23: nic.buffer_flits: found 256, allowed 1024 or more: one packet or acknowledgement
h100-cluster nic.bandwidth=1 B/s
    --set: nic.bandwidth: found 1 B/s, allowed 0 B/s or 1 MB/s and more
h100-cluster spine_latency=0 ns
    --set: spine_latency: found 0 ps, allowed 1 ns and more
)");
}

TEST(Agreement, of_a_models_fields_is_asked_for_where_they_were_given) {
    expect_errors([](auto& changes) { return model_error("extends = 'mixtral-8x7b'\n" + changes); },
                  R"(
top_k = 9
    m.toml:2: top_k: found 9, allowed at most experts = 8 (preset models/mixtral-8x7b:7)
top_k = 0
    m.toml:2: top_k: found 0, allowed 1 or more with experts = 8 (preset models/mixtral-8x7b:7)
expert_ffn = 0
    m.toml:2: expert_ffn: found 0, allowed 1 or more with experts = 8 (preset models/mixtral-8x7b:7)
expert_groups = 3
    preset models/mixtral-8x7b:7: experts: found 8, allowed multiples of expert_groups = 3 (m.toml:2)
top_groups = 2
    m.toml:2: top_groups: found 2, allowed at most expert_groups = 1
expert_groups = 8
    preset models/mixtral-8x7b:8: top_k: found 2, allowed at most 1: the experts of top_groups = 1
shared_experts = 2
    m.toml: shared_ffn: found 0, allowed 1 or more with shared_experts = 2 (m.toml:2)
dense_layers = 33
    m.toml:2: dense_layers: found 33, allowed at most layers = 32 (preset models/mixtral-8x7b:3)
attention.kv_heads = 5
    preset models/mixtral-8x7b:14: attention.heads: found 32, allowed multiples of attention.kv_heads = 5 (m.toml:2)
attention.kind = 'mla'
    m.toml: attention.kv_lora_rank: found 0, allowed 1 or more with attention.kind = mla (m.toml:2)
)");
    EXPECT_EQ(error_of([] { load_model("mixtral-8x7b", {"top_k=9"}); }),
              "--set: top_k: found 9, allowed at most experts = 8 (preset models/mixtral-8x7b:7)");
}

using Extends = cli_test::Cli;

TEST_F(Extends, what_is_not_there_names_the_file_the_line_and_the_key) {
    EXPECT_TRUE(machine_error("nodes = 1\nextends = 'dgx-h10'\n")
                    .starts_with("m.toml:2: extends: unknown machine \"dgx-h10\"; did you mean "
                                 "\"dgx-h100\"?"));
    EXPECT_TRUE(model_error("extends = 'nobody'").starts_with("m.toml:1: extends: unknown model"));
    const std::string path = saved("mine.toml", "title = 'x'\nextends = 'no-such-machine'\n");
    expect_refused_about("show " + path, path + ":2: extends: unknown");
    expect_refused_about("compare --machine " + path, path + ":2: extends: unknown machine");
    const std::string far = saved("far.toml", "extends = './gone.toml'\n");
    expect_refused("compare --model " + far,
                   far + ":1: extends: " + file("./gone.toml") + ": no such file");
    expect_refused("show " + far, far + ":1: extends: " + file("./gone.toml") + ": no such file");
}

TEST_F(Extends, top_k_above_the_experts_names_its_file_or_setting) {
    const std::string path = saved("mine.toml", "extends = 'mixtral-8x7b'\ntop_k = 9\n");
    const std::string rest =
        "top_k: found 9, allowed at most experts = 8 (preset "
        "models/mixtral-8x7b:7)";
    expect_refused("compare --model " + path, path + ":2: " + rest);
    expect_refused("compare --set model.top_k=9", "--set: " + rest);
}

TEST(HandMade, every_preset_passes_its_check) {
    for (const std::string& name : preset_names("machines"))
        EXPECT_NO_THROW(check(load_machine(name)));
    for (const std::string& name : preset_names("models")) EXPECT_NO_THROW(check(load_model(name)));
}

struct Fault {
    std::string name;  ///< start of the error, behind the machine's name
    std::function<void(Machine&)> make;
};

std::vector<Fault> faults() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {
        {"nodes: found 0", [](Machine& m) { m.nodes = 0; }},
        {"gpus_per_node: found 0", [](Machine& m) { m.gpus_per_node = 0; }},
        {"gpus_per_node: found -4", [](Machine& m) { m.gpus_per_node = -4; }},
        {"nodes: found 60000", [](Machine& m) { m.nodes = 60000; }},
        {"nic.bandwidth: found 0 B/s", [](Machine& m) { m.nodes = 2; }},
        {"topology: found number 7", [](Machine& m) { m.topology = static_cast<NodeTopology>(7); }},
        {"switches: found 0", [](Machine& m) { m.switches = 0; }},
        {"link.bandwidth: found 0 B/s", [](Machine& m) { m.link.bandwidth = 0; }},
        {"link.bandwidth: found nan", [nan](Machine& m) { m.link.bandwidth = nan; }},
        {"link.latency: found 0 ps", [](Machine& m) { m.link.latency = 0; }},
        {"link.latency: found -1 ns", [](Machine& m) { m.link.latency = -kNs; }},
        {"link.latency: found 9.2", [](Machine& m) { m.link.latency = INT64_MAX; }},
        {"link.flit: found 0 B", [](Machine& m) { m.link.flit = 0; }},
        {"link.payload: found 100 B", [](Machine& m) { m.link.payload = 100; }},
        {"link.buffer_flits: found -1", [](Machine& m) { m.link.buffer_flits = -1; }},
        {"link.request_channels: found 0", [](Machine& m) { m.link.request_channels = 0; }},
        {"hub.write_latency: found 0 ps", [](Machine& m) { m.hub.write_latency = 0; }},
        {"hub.staging_packets: found 0", [](Machine& m) { m.hub.staging_packets = 0; }},
        {"moe_hub.rat_banks: found 0", [](Machine& m) { m.moe_hub.rat_banks = 0; }},
        {"moe_hub.store_bytes: found 0 B", [](Machine& m) { m.moe_hub.store_bytes = 0; }},
        {"gpu.sms: found 1", [](Machine& m) { m.gpu.sms = 1; }},
        {"gpu.hbm_bandwidth: found 0 B/s", [](Machine& m) { m.gpu.hbm_bandwidth = 0; }},
    };
}

TEST(HandMade, bad_machines_are_refused_by_layers_and_collectives) {
    for (const Fault& fault : faults()) {
        testing::Case layer;
        fault.make(layer.machine);
        const std::string expected = "machine test: " + fault.name;
        const Placement placement = contiguous_placement(layer.model.experts, 4);
        const Routing routing = make_routing({}, layer.model, layer.tokens);
        const std::string checked = error_of([&] { check(layer.machine); });
        EXPECT_TRUE(checked.starts_with(expected)) << checked << " for " << expected;
        EXPECT_EQ(error_of([&] { layer.run("moe-hub", routing, placement); }), checked);
        Collective what;
        what.gpus = layer.machine.gpus();
        what.bytes = 1 << 20;
        EXPECT_EQ(error_of([&] { run_collective(layer.machine, what); }), checked);
    }
}

TEST(HandMade, bad_models_are_refused) {
    Model model = load_model("mixtral-8x7b");
    model.expert_groups = 0;
    EXPECT_EQ(error_of([&] { check(model); }),
              "model mixtral-8x7b: expert_groups: found 0, allowed 1 to 1024");
    model.expert_groups = 1;
    model.top_k = 9;
    EXPECT_EQ(error_of([&] { check(model); }),
              "model mixtral-8x7b: top_k: found 9, allowed at most experts = 8");
}

}  // namespace
}  // namespace moehub::agreement_test
