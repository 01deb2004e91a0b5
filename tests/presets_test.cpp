// Does every preset load and print back, and does each kind of bad input get its one clear line?
#include "error_of.hpp"
#include "model/records.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub {
namespace {

std::string machine_error(const std::string& toml) {
    return error_of([&toml] { parse<Machine>(toml, "m.toml"); });
}

std::string model_error(const std::string& toml) {
    return error_of([&toml] { parse<Model>(toml, "m.toml"); });
}

std::string set_error(const std::string& override_text) {
    return error_of([&] { load_machine("dgx-h100", {override_text}); });
}

TEST(Presets, EveryMachineLoadsPrintsAndLoadsBackEqual) {
    EXPECT_EQ(preset_names("machines").size(), 17u);
    for (const std::string& name : preset_names("machines")) {
        const Machine machine = load_machine(name);
        EXPECT_EQ(machine.name, name);
        EXPECT_FALSE(machine.title.empty()) << name;
        const Machine again = parse<Machine>(to_toml(machine), "again");
        EXPECT_EQ(to_toml(again), to_toml(machine)) << name;
        EXPECT_EQ(to_json(again), to_json(machine)) << name;
    }
}

TEST(Presets, EveryModelLoadsPrintsAndLoadsBackEqual) {
    EXPECT_EQ(preset_names("models").size(), 25u);
    for (const std::string& name : preset_names("models")) {
        const Model model = load_model(name);
        EXPECT_EQ(model.name, name);
        EXPECT_FALSE(model.title.empty()) << name;
        EXPECT_EQ(to_json(parse<Model>(to_toml(model), "again")), to_json(model)) << name;
    }
}

TEST(Presets, AKernelThatIsNotThereIsWithinLimits) {
    KernelLibrary none;
    EXPECT_EQ(error_of([&] { require_limits(fields_of(none), {"none"}); }), "accepted");
}

TEST(Presets, EveryGenerationNamesACard) {
    EXPECT_EQ(preset_names("generations").size(), 4u);
    for (const std::string& name : preset_names("generations")) {
        EXPECT_FALSE(preset_title("generations", name).empty()) << name;
        EXPECT_EQ(kind_of(name), "generations");
    }
}

TEST(Presets, EveryGpuLoadsPrintsAndLoadsBackEqual) {
    EXPECT_EQ(preset_names("gpus").size(), 12u);
    for (const std::string& name : preset_names("gpus")) {
        const Gpu gpu = load_gpu(name);
        EXPECT_FALSE(preset_title("gpus", name).empty()) << name;
        EXPECT_EQ(to_json(parse<Gpu>(to_toml(gpu), "again")), to_json(gpu)) << name;
    }
}

TEST(Presets, EverySystemLoadsPrintsAndLoadsBackEqual) {
    EXPECT_EQ(preset_names("systems").size(), 45u);
    for (const std::string& name : preset_names("systems")) {
        const SystemSpec system = load_system(name);
        EXPECT_EQ(system.name, name);
        EXPECT_FALSE(system.title.empty()) << name;
        EXPECT_EQ(to_json(parse<SystemSpec>(to_toml(system), "again")), to_json(system)) << name;
    }
}

TEST(Presets, ASystemsChangedKeysAreThoseThatAreNotTheDefaults) {
    using Keys = std::vector<std::string>;
    EXPECT_TRUE(changed_keys(load_system("nvls")).empty());
    EXPECT_EQ(changed_keys(load_system("mh-base")),
              (Keys{"fused_activation", "stores", "sending_sms"}));
    EXPECT_EQ(changed_keys(load_system("nvls", {"chunks=3", "barrier=1 us"})),
              (Keys{"chunks", "barrier"}));
}

TEST(Presets, FiguresArriveInBaseUnits) {
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

TEST(Presets, ExtendsInheritsAllButWhatIsGiven) {
    const Machine h800 = load_machine("dgx-h800");
    EXPECT_EQ(h800.link.bandwidth, 200e9);
    EXPECT_EQ(h800.switches, 4);
    EXPECT_EQ(h800.gpu_name, "h800-sxm");
    EXPECT_EQ(load_machine("h800-cluster").nodes, 2);
}

TEST(Presets, AGpuIsTakenWholeAndThenChanged) {
    const Machine machine =
        parse<Machine>("extends = 'dgx-h100'\n[gpu]\nsms = 66\npreset = 'h200-sxm'\n", "m.toml");
    EXPECT_EQ(machine.gpu.sms, 66);
    EXPECT_EQ(machine.gpu.hbm_bandwidth, 4.8e12);
    const Machine set = load_machine("dgx-h100", {"gpu=h200-sxm", "gpu.sms=66"});
    EXPECT_EQ(to_json(set.gpu), to_json(machine.gpu));
}

TEST(Presets, FilesNameTheirNeighbours) {
    const std::string folder = testing::TempDir();
    std::ofstream(folder + "presets_test_base.toml") << "extends = 'dgx-h100'\nswitches = 3\n";
    std::ofstream(folder + "presets_test_mine.toml") << "extends = './presets_test_base.toml'\n";
    const Machine machine = load_machine(folder + "presets_test_mine.toml");
    EXPECT_EQ(machine.name, "presets_test_mine");
    EXPECT_EQ(machine.switches, 3);
    EXPECT_EQ(kind_of(folder + "presets_test_mine.toml"), "machines");
    std::remove((folder + "presets_test_base.toml").c_str());
    std::remove((folder + "presets_test_mine.toml").c_str());
}

TEST(Presets, KindsAreToldApart) {
    EXPECT_EQ(kind_of("dgx-h100"), "machines");
    EXPECT_EQ(kind_of("mixtral-8x7b"), "models");
    EXPECT_EQ(kind_of("h200-sxm"), "gpus");
    EXPECT_EQ(kind_of("deepep"), "systems");
    EXPECT_EQ(error_of([] { kind_of("mixtral-8x7"); }),
              "unknown preset \"mixtral-8x7\"; did you mean \"mixtral-8x7b\"?");
}

TEST(Sizing, ASingleNodeShrinksToItsLimit) {
    const Machine dgx = load_machine("dgx-h100");
    EXPECT_EQ(with_gpus(dgx, 4).gpus(), 4);
    EXPECT_EQ(with_gpus(dgx, 4).switches, 4);
    EXPECT_EQ(error_of([&] { with_gpus(dgx, 16); }), "dgx-h100: found 16 GPUs, allowed 1 to 8");
    EXPECT_EQ(error_of([&] { with_gpus(dgx, 0); }), "dgx-h100: found 0 GPUs, allowed 1 to 8");
}

TEST(Sizing, AClusterGrowsByWholeNodes) {
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

TEST(Sizing, ASingleSwitchTakesAnyNumber) {
    EXPECT_EQ(with_gpus(load_machine("single-switch"), 1000).gpus_per_node, 1000);
}

TEST(BadInput, NamesAreSuggested) {
    EXPECT_EQ(error_of([] { load_machine("dgx-h10"); }).substr(0, 56),
              "unknown machine \"dgx-h10\"; did you mean \"dgx-h100\"? (asc");
    EXPECT_EQ(error_of([] { load_machine("./none.toml"); }), "./none.toml: no such file");
    EXPECT_EQ(error_of([] { load_machine("/"); }), "/: not a regular file");
    EXPECT_EQ(machine_error("extends = 'dgx-h100'\nlink.bandwith = '1 GB/s'\n"),
              "m.toml:2: link.bandwith: unknown key; did you mean \"link.bandwidth\"?");
    EXPECT_EQ(machine_error("extends = 'dgx-h100'\nbuffer_flits = 9\n"),
              "m.toml:2: buffer_flits: unknown key; did you mean \"link.buffer_flits\"?");
    EXPECT_EQ(machine_error("extends = 'dgx-h100'\n\ngpu = 'h101-sxm'\n").substr(0, 60),
              "m.toml:3: gpu.preset: unknown gpu \"h101-sxm\"; did you mean \"");
}

TEST(BadInput, ValuesOfTheWrongKindAreNamed) {
    const std::string base = "extends = 'dgx-h100'\n";
    EXPECT_EQ(machine_error(base + "link.latency = '250 GB'"),
              "m.toml:2: link.latency: expected a time such as \"250 ns\" (ps, ns, us, ms, s), "
              "found \"250 GB\"");
    EXPECT_EQ(machine_error(base + "link.latency = 250"),
              "m.toml:2: link.latency: expected a time such as \"250 ns\" (ps, ns, us, ms, s), "
              "found \"250\"");
    EXPECT_EQ(machine_error(base + "switches = 2.5"),
              "m.toml:2: switches: expected a whole number, found 2.5");
    EXPECT_EQ(machine_error(base + "switches = '4'"),
              "m.toml:2: switches: expected a whole number, found the text \"4\"");
    EXPECT_EQ(machine_error(base + "switches = [4]"),
              "m.toml:2: switches: expected a whole number, found an array");
    EXPECT_EQ(machine_error(base + "in_switch = 1"),
              "m.toml:2: in_switch: expected true or false, found 1");
    EXPECT_EQ(machine_error(base + "topology = 'ring'"),
              "m.toml:2: topology: expected one of switched, mesh, found \"ring\"");
    EXPECT_EQ(machine_error(base + "link = 3"),
              "m.toml:2: link: expected a table such as [link], found \"3\"");
    EXPECT_EQ(machine_error(base + "[link.latency]"),
              "m.toml:2: link.latency: expected a quantity in quotes, found a table");
    EXPECT_EQ(machine_error("extends = 3"),
              "m.toml:1: extends: expected a preset's name or a file");
}

TEST(BadInput, ValuesOutOfRangeSayWhatIsAllowed) {
    EXPECT_EQ(set_error("link.bandwidth=0 GB/s"),
              "--set: link.bandwidth: found \"0 GB/s\", allowed 1 MB/s to 100 TB/s");
    EXPECT_EQ(set_error("gpus_per_node=0"),
              "--set: gpus_per_node: found \"0\", allowed 1 to 65536");
    EXPECT_EQ(set_error("link.flit=-16 B"),
              "--set: link.flit: found \"-16 B\", allowed 1 B to 1 MiB");
    EXPECT_EQ(set_error("link.latency=nan"),
              "--set: link.latency: expected a time such as \"250 ns\" (ps, ns, us, ms, s), "
              "found \"nan\"");
    EXPECT_EQ(set_error("nodes"),
              "--set: expected KEY=VALUE such as link.latency=\"250 ns\", found \"nodes\"");
    EXPECT_EQ(set_error("node=2"), "--set: node: unknown key; did you mean \"nodes\"?");
    EXPECT_EQ(set_error("title=\xff"),
              "--set: title: expected 1 to 200 bytes of text on one line, found \"\\xff\"");
}

TEST(BadInput, BrokenFilesAreNamedWithTheirLine) {
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

TEST(BadInput, CirclesOfExtendsEnd) {
    const std::string path = testing::TempDir() + "presets_test_circle.toml";
    std::ofstream(path) << "extends = '" << path << "'\n";
    EXPECT_EQ(error_of([&] { load_machine(path); }),
              path + ":1: extends: more than 8 files deep, or in a circle");
    EXPECT_EQ(kind_of(path), "machines");
    std::remove(path.c_str());
}

TEST(Presets, SourcesShowEveryFileBehindAMachine) {
    const std::string text = sources_of("h200-cluster");
    for (const char* part : {"# preset machines/h200-cluster", "# preset gpus/h200-sxm",
                             "MoE-Hub, DySHARP and CAIS papers"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part;
    }
}

}  // namespace
}  // namespace moehub
