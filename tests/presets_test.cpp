// Does every preset load and print back, and does each kind of bad input get its one clear line?
#include "model/records.hpp"
#include "noun_errors.hpp"

#include <moehub/engine.hpp>
#include <moehub/presets.hpp>

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::presets_test {
namespace {

/// Expects so many presets of a kind, each with a title, which print and load back equal.
template <class Noun>
void expect_round_trips(const std::string& kind, std::size_t count,
                        Noun (*load)(const std::string&, const Overrides&)) {
    EXPECT_EQ(preset_names(kind).size(), count);
    for (const std::string& name : preset_names(kind)) {
        SCOPED_TRACE(name);
        EXPECT_EQ(kind_of(name), kind);
        EXPECT_FALSE(preset_title(kind, name).empty());
        const Noun preset = load(name, {});
        const Noun again = parse<Noun>(to_toml(preset), "again");
        EXPECT_EQ(to_json(again), to_json(preset));
        if constexpr (requires {
                          preset.name;
                      }) {  // a card says what it inherits, when printed first
            EXPECT_EQ(preset.name, name);
            EXPECT_EQ(to_toml(again), to_toml(preset));
        }
    }
}

TEST(Presets, every_one_loads_prints_and_loads_back_equal) {
    expect_round_trips("machines", 17, load_machine);
    expect_round_trips("models", 25, load_model);
    expect_round_trips("gpus", 12, load_gpu);
    expect_round_trips("engines", 4, load_engine);
    expect_round_trips("systems", 45, load_system);
}

TEST(Presets, a_kernel_that_is_not_there_is_within_limits) {
    KernelLibrary none;
    EXPECT_EQ(error_of([&] { require_limits(fields_of(none), {"none"}); }), "accepted");
}

TEST(Presets, every_generation_names_a_card) {
    EXPECT_EQ(preset_names("generations").size(), 4u);
    for (const std::string& name : preset_names("generations")) {
        EXPECT_FALSE(preset_title("generations", name).empty()) << name;
        EXPECT_EQ(kind_of(name), "generations");
    }
}

TEST(Presets, a_systems_changed_keys_are_those_that_are_not_the_defaults) {
    using Keys = std::vector<std::string>;
    EXPECT_TRUE(changed_keys(load_system("nvls")).empty());
    EXPECT_EQ(changed_keys(load_system("mh-base")),
              (Keys{"fused_activation", "stores", "sending_sms"}));
    EXPECT_EQ(changed_keys(load_system("nvls", {"chunks=3", "barrier=1 us"})),
              (Keys{"chunks", "barrier"}));
}

TEST(Presets, figures_arrive_in_base_units) {
    const Machine machine = load_machine("dgx-h100");
    EXPECT_EQ(machine.link.bandwidth, 450e9);
    EXPECT_EQ(machine.link.latency, 250 * kNs);
    EXPECT_EQ(machine.gpu_name, "h100-sxm");
    EXPECT_EQ(machine.gpu.sms, 132);
    EXPECT_EQ(load_machine("h100-cluster").nic.bandwidth, 50e9);
    const auto json = nlohmann::json::parse(to_json(machine));
    EXPECT_EQ(json["link"]["latency"], 250'000);
    EXPECT_EQ(json["topology"], "switched");
}

TEST(Presets, extends_inherits_all_but_what_is_given) {
    const Machine h800 = load_machine("dgx-h800");
    EXPECT_EQ(h800.link.bandwidth, 200e9);
    EXPECT_EQ(h800.switches, 4);
    EXPECT_EQ(h800.gpu_name, "h800-sxm");
    EXPECT_EQ(load_machine("h800-cluster").nodes, 2);
}

TEST(Presets, a_gpu_is_taken_whole_and_then_changed) {
    const Machine machine =
        parse<Machine>("extends = 'dgx-h100'\n[gpu]\nsms = 66\npreset = 'h200-sxm'\n", "m.toml");
    EXPECT_EQ(machine.gpu.sms, 66);
    EXPECT_EQ(machine.gpu.hbm_bandwidth, 4.8e12);
    const Machine set = load_machine("dgx-h100", {"gpu=h200-sxm", "gpu.sms=66"});
    EXPECT_EQ(to_json(set.gpu), to_json(machine.gpu));
}

TEST(Presets, files_name_their_neighbours) {
    const std::string folder = ::testing::TempDir();
    std::ofstream(folder + "presets_test_base.toml") << "extends = 'dgx-h100'\nswitches = 3\n";
    std::ofstream(folder + "presets_test_mine.toml") << "extends = './presets_test_base.toml'\n";
    const Machine machine = load_machine(folder + "presets_test_mine.toml");
    EXPECT_EQ(machine.name, "presets_test_mine");
    EXPECT_EQ(machine.switches, 3);
    EXPECT_EQ(kind_of(folder + "presets_test_mine.toml"), "machines");
    std::remove((folder + "presets_test_base.toml").c_str());
    std::remove((folder + "presets_test_mine.toml").c_str());
}

TEST(Presets, kinds_are_told_apart) {
    EXPECT_EQ(kind_of("dgx-h100"), "machines");
    EXPECT_EQ(kind_of("mixtral-8x7b"), "models");
    EXPECT_EQ(kind_of("h200-sxm"), "gpus");
    EXPECT_EQ(kind_of("deepep"), "systems");
    EXPECT_EQ(error_of([] { kind_of("mixtral-8x7"); }),
              "unknown preset \"mixtral-8x7\"; did you mean \"mixtral-8x7b\"?");
}

TEST(Sizing, a_single_node_shrinks_to_its_limit) {
    const Machine dgx = load_machine("dgx-h100");
    EXPECT_EQ(with_gpus(dgx, 4).gpus(), 4);
    EXPECT_EQ(with_gpus(dgx, 4).switches, 4);
    EXPECT_EQ(error_of([&] { with_gpus(dgx, 16); }), "dgx-h100: found 16 GPUs, allowed 1 to 8");
    EXPECT_EQ(error_of([&] { with_gpus(dgx, 0); }), "dgx-h100: found 0 GPUs, allowed 1 to 8");
}

TEST(Sizing, a_cluster_grows_by_whole_nodes) {
    const Machine cluster = load_machine("h100-cluster");
    EXPECT_EQ(with_gpus(cluster, 64).nodes, 8);
    EXPECT_EQ(with_gpus(cluster, 64).gpus_per_node, 8);
    EXPECT_EQ(with_gpus(cluster, 4).nodes, 1);
    EXPECT_EQ(with_gpus(cluster, 4).gpus_per_node, 4);
    EXPECT_EQ(error_of([&] { with_gpus(cluster, 12); }),
              "h100-cluster: found 12 GPUs, allowed up to 8 or a multiple of it");
    EXPECT_EQ(error_of([&] { with_gpus(cluster, 1 << 20); }),
              "h100-cluster: found 1048576 GPUs, allowed 1 to 16384");
}

TEST(Sizing, a_single_switch_takes_any_number) {
    EXPECT_EQ(with_gpus(load_machine("single-switch"), 1000).gpus_per_node, 1000);
}

TEST(BadInput, names_are_suggested) {
    EXPECT_EQ(error_of([] { load_machine("dgx-h10"); }).substr(0, 56),
              "unknown machine \"dgx-h10\"; did you mean \"dgx-h100\"? (asc");
    EXPECT_EQ(error_of([] { load_machine("./none.toml"); }), "./none.toml: no such file");
    EXPECT_EQ(error_of([] { load_machine("/"); }), "/: not a regular file");
    expect_errors(machine_error, R"(
extends = 'dgx-h100'
link.bandwith = '1 GB/s'
    m.toml:2: link.bandwith: unknown key; did you mean "link.bandwidth"?
extends = 'dgx-h100'
buffer_flits = 9
    m.toml:2: buffer_flits: unknown key; did you mean "link.buffer_flits"?
extends = 'dgx-h100'

gpu = 'h101-sxm'
    m.toml:3: gpu.preset: unknown gpu "h101-sxm"; did you mean "…
)");
}

TEST(BadInput, values_of_the_wrong_kind_are_named) {
    expect_errors([](auto& wrong) { return machine_error("extends = 'dgx-h100'\n" + wrong); }, R"(
link.latency = '250 GB'
    m.toml:2: link.latency: expected a time such as "250 ns" (ps, ns, us, ms, s), found "250 GB"
link.latency = 250
    m.toml:2: link.latency: expected a time such as "250 ns" (ps, ns, us, ms, s), found "250"
switches = 2.5
    m.toml:2: switches: expected a whole number, found 2.5
switches = '4'
    m.toml:2: switches: expected a whole number, found the text "4"
switches = [4]
    m.toml:2: switches: expected a whole number, found an array
in_switch = 1
    m.toml:2: in_switch: expected true or false, found 1
topology = 'ring'
    m.toml:2: topology: expected one of switched, mesh, found "ring"
link = 3
    m.toml:2: link: expected a table such as [link], found "3"
[link.latency]
    m.toml:2: link.latency: expected a quantity in quotes, found a table
)");
    EXPECT_EQ(machine_error("extends = 3"),
              "m.toml:1: extends: expected a preset's name or a file");
}

TEST(BadInput, values_out_of_range_say_what_is_allowed) {
    expect_errors([](auto& setting) { return set_error("dgx-h100 " + setting); }, R"(
link.bandwidth=0 GB/s
    --set: link.bandwidth: found "0 GB/s", allowed 1 MB/s to 100 TB/s
gpus_per_node=0
    --set: gpus_per_node: found "0", allowed 1 to 65536
link.flit=-16 B
    --set: link.flit: found "-16 B", allowed 1 B to 1 MiB
link.latency=nan
    --set: link.latency: expected a time such as "250 ns" (ps, ns, us, ms, s), found "nan"
nodes
    --set: expected KEY=VALUE such as link.latency="250 ns", found "nodes"
node=2
    --set: node: unknown key; did you mean "nodes"?
)");
    EXPECT_EQ(set_error("dgx-h100 title=\xff"),
              "--set: title: expected 1 to 200 bytes of text on one line, found \"\\xff\"");
}

TEST(BadInput, broken_files_are_named_with_their_line) {
    EXPECT_EQ(machine_error("nodes = 1\nnodes = \n").substr(0, 20), "m.toml:2: not TOML: ");
    EXPECT_EQ(machine_error("nodes = 1\nlatency = 5 µs\n"),
              "m.toml:2: not TOML: a character outside ASCII must stand in quotes");
    EXPECT_EQ(machine_error("nodes = 1\n\ntitle = '\xff'\n"),
              "m.toml:3: not TOML: text that is not UTF-8");
    EXPECT_EQ(machine_error("title = \"\"\"a\n\"\"\"\n"),
              "m.toml:1: not TOML: strings over several lines are not supported");
    EXPECT_EQ(machine_error("nodes = 1\n"),
              "m.toml: missing key \"gpus_per_node\" (joined by links)");
    EXPECT_EQ(model_error(""), "m.toml: missing key \"layers\" (dense ones included)");
    EXPECT_EQ(machine_error(std::string(300'000, '#')),
              "m.toml: 300000 bytes, at most 262144 allowed");
    EXPECT_EQ(machine_error("a" + std::string(5000, '.')),
              "m.toml: 5000 dots and opening brackets, at most 4000 allowed");
}

TEST(BadInput, circles_of_extends_end) {
    const std::string path = ::testing::TempDir() + "presets_test_circle.toml";
    std::ofstream(path) << "extends = '" << path << "'\n";
    EXPECT_EQ(error_of([&] { load_machine(path); }),
              path + ":1: extends: more than 8 files deep, or in a circle");
    EXPECT_EQ(kind_of(path), "machines");
    std::remove(path.c_str());
}

TEST(Presets, sources_show_every_file_behind_a_machine) {
    const std::string text = sources_of("h200-cluster");
    for (const char* part : {"# preset machines/h200-cluster", "# preset gpus/h200-sxm",
                             "MoE-Hub, DySHARP and CAIS papers"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part;
    }
}

}  // namespace
}  // namespace moehub::presets_test
