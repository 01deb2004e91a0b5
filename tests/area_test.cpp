// What do the proposals' tables take? Bits by hand, what grows with what, totals, and the command.
#include "study/area.hpp"

#include "cli_fixture.hpp"
#include "error_of.hpp"

#include <moehub/area.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::area_test {
namespace {

AreaTable table_of(const std::vector<AreaTable>& tables, const std::string& name) {
    for (const AreaTable& one : tables)
        if (one.name == name) return one;
    ADD_FAILURE() << "no table " << name;
    return {};
}

AreaTable with(const std::string& setting, const std::string& name) {
    return table_of(area_of(load_machine("dgx-h800", {setting})), name);
}

TEST(Area, bits_are_those_of_the_fields) {
    // 8 GPUs, packets of 128 B, 80 GB of memory: addresses of 37 bits.
    const auto tables = area_of(load_machine("dgx-h800"));
    const auto bits = [&](const char* name) { return table_of(tables, name).entry_bits; };
    EXPECT_EQ(bits("RPM lines"), 1024 + 128);
    EXPECT_EQ(bits("RPM tags"), 1 + (6 + 32 + 9) + 1 + 1 + 8);
    EXPECT_EQ(bits("RAT"), 64);
    EXPECT_EQ(bits("APT"), 1 + 6 + 37 + 16 + 32);
    EXPECT_EQ(bits("DAM ranges"), 1 + 2 * 30 + 16);
    EXPECT_EQ(bits("DAM counters"), 2 * 25);
    EXPECT_EQ(bits("MultimemQ"), 1 + 48 + 1 + 15 + 18 + 14 + 8 * 16);
    EXPECT_EQ(bits("AL TLB"), 1 + 16 + 31 + 31);
    EXPECT_EQ(bits("TS table"), 1 + 16 + 24 + 17 + 16);
    EXPECT_EQ(bits("OR table"), 1 + 31 + 6);
    EXPECT_EQ(bits("their counts"), 4);  // 0 to 8 GPUs
    EXPECT_EQ(with("dysharp.reduce_locally=false", "their counts").entry_bits, 15);
    EXPECT_EQ(bits("blocks that wait"), 1 + 4 + 32 + 1);
    EXPECT_EQ(bits("their releases"), 3);  // 0 to 4 switches
    EXPECT_EQ(bits("requests in flight"), 2 * 13);
    EXPECT_EQ(bits("merge tags"), 1 + 48 + 1);
    EXPECT_EQ(bits("their requesters"), 2 + 3 + 7 * (3 + 16));
    EXPECT_EQ(bits("group sync"), 1 + 4 + 32 + 1 + 8);
    EXPECT_EQ(table_of(tables, "merge lines").bits(), 8 * 40 * 1024 * 8);  // 40 KB a port
    EXPECT_EQ(table_of(tables, "RPM lines").bits(), 7 * 64 * 1152);
    EXPECT_EQ(table_of(tables, "partial sums").bits(), 8 * 64 * 1024 * 8);  // 64 KB a port
}

TEST(Area, twice_the_table_has_twice_the_bits) {
    const struct {
        const char* twice;
        const char* table;
    } cases[] = {
        {"moe_hub.rat_entries=32768", "RAT"},
        {"moe_hub.rpm_entries=128", "RPM lines"},
        {"moe_hub.rpm_entries=128", "RPM tags"},
        {"moe_hub.dam_entries=512", "DAM ranges"},
        {"moe_hub.dam_entries=512", "DAM counters"},
        {"dysharp.multimem_entries=64", "MultimemQ"},
        {"dysharp.tlb_entries=1024", "AL TLB"},
        {"dysharp.ts_entries=2048", "TS table"},
        {"dysharp.or_entries=2048", "OR table"},
        {"dysharp.sum_packets=1024", "partial sums"},
        {"dysharp.sum_packets=1024", "their counts"},
        {"cais.merge_entries=640", "merge lines"},
        {"cais.merge_entries=640", "merge tags"},
        {"cais.merge_entries=640", "their requesters"},
    };
    const auto tables = area_of(load_machine("dgx-h800"));
    for (const auto& one : cases) {
        const AreaTable before = table_of(tables, one.table);
        const AreaTable after = with(one.twice, one.table);
        EXPECT_EQ(after.bits(), 2 * before.bits()) << one.table;
        EXPECT_GT(after.mm2, before.mm2) << one.table;
        EXPECT_LE(after.mm2, 2 * before.mm2) << one.table;
    }
}

TEST(Area, more_gpus_are_more_partitions_and_ports) {
    EXPECT_EQ(with("gpus_per_node=16", "RPM lines").copies, 15);
    EXPECT_EQ(with("gpus_per_node=16", "partial sums").copies, 16);
    EXPECT_EQ(with("gpus_per_node=16", "RAT").copies, 1);
    EXPECT_EQ(with("gpus_per_node=16", "merge lines").copies, 16);
    EXPECT_EQ(with("gpus_per_node=16", "group sync").copies, 1);
}

TEST(Area, what_a_machine_lacks_is_left_out) {
    for (const AreaTable& one : area_of(load_machine("ascend-910b-cluster")))
        EXPECT_EQ(one.side, AreaSide::gpu) << one.name;
    for (const AreaTable& one : area_of(load_machine("dgx-h800", {"gpus_per_node=1"})))
        EXPECT_FALSE(one.name.starts_with("RPM")) << one.name;
}

TEST(Area, a_tables_area_is_its_cells_and_its_banks) {
    AreaTable table;
    table.entries = 1000;
    table.entry_bits = 700;
    table.banks = 3;
    table.node_nm = 7;
    const CellCosts costs{.sram = 1.5, .cam = 3, .efficiency = 0.5, .bank = 1e5};
    EXPECT_NEAR(with_area(table, costs).mm2, (700e3 * 3 + 3e5) * 0.027e-6, 1e-12);
    AreaTable compared = table;
    compared.kind = CellKind::cam;
    compared.node_nm = 12;
    EXPECT_NEAR(with_area(compared, costs).mm2, (700e3 * 6 + 3e5) * 0.074e-6, 1e-12);
}

TEST(Area, totals_are_the_sum_of_what_is_added) {
    const auto tables = area_of(load_machine("dgx-h800"));
    const auto totals = area_totals(tables);
    ASSERT_EQ(totals.size(), 5u);
    for (const AreaTotal& total : totals) {
        std::int64_t bits = 0;
        double added = 0;
        double there = 0;
        for (const AreaTable& one : tables) {
            if (one.proposal != total.proposal || one.side != total.side) continue;
            if (one.added) bits += one.bits();
            (one.added ? added : there) += one.mm2;
        }
        EXPECT_EQ(total.bits, bits);
        EXPECT_DOUBLE_EQ(total.mm2, added);
        EXPECT_DOUBLE_EQ(total.there_mm2, there);
    }
    EXPECT_EQ(totals[0].published_mm2, 0.49);
    EXPECT_EQ(totals[1].published_mm2, 0.198);
    EXPECT_TRUE(totals[2].published_below);
    EXPECT_EQ(totals[3].published_mm2, 0.019);
    EXPECT_EQ(totals[4].published_mm2, 0.50);
}

// DySHARP's GPU is what one constant was fitted to.
TEST(Area, the_fit_is_still_one) {
    const AreaTotal dysharp = area_totals(area_of(load_machine("dgx-h800")))[1];
    EXPECT_NEAR(dysharp.mm2, 0.198, 0.002);
}

// No constant has seen it.
TEST(Area, another_papers_switch_is_within_a_twentieth) {
    const AreaTotal cais = area_totals(area_of(load_machine("dgx-h100")))[4];
    EXPECT_EQ(cais.proposal, "CAIS");
    EXPECT_NEAR(cais.mm2, 0.50, 0.025);
}

// Bare cells of one port's 64 KB are more than the paper's whole switch.
TEST(Area, the_papers_switch_could_hold_its_buffer) {
    const double cells = 64 * 1024 * 8 * bit_cell_um2(12) * 1e-6;
    EXPECT_GT(cells, 3 * 0.01);
}

TEST(Area, a_machine_that_cannot_be_is_refused) {
    Machine machine = load_machine("dgx-h800");
    machine.moe_hub.rat_entries = 0;
    EXPECT_NE(error_of([&] { area_of(machine); }).find("moe_hub.rat_entries"), std::string::npos);
}

class AreaCli : public cli_test::Cli {};

TEST_F(AreaCli, prints_the_golden_table) {
    expect_golden("area", "area.txt");
}

TEST_F(AreaCli, json_has_all_that_is_asked) {
    const auto outcome = moehub("area --json --set moe_hub.rat_entries=32768 -o " + file("a.json"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const auto all = nlohmann::json::parse(cli_test::text_of(file("a.json")));
    EXPECT_EQ(all["machine"], "dgx-h800");
    ASSERT_EQ(all["totals"].size(), 5u);
    EXPECT_EQ(all["totals"][0]["published_mm2"], 0.49);
    const auto& tables = all["tables"];
    const auto rat = std::find_if(tables.begin(), tables.end(),
                                  [](const auto& one) { return one["table"] == "RAT"; });
    ASSERT_NE(rat, tables.end());
    EXPECT_EQ((*rat)["bits"], 32768 * 64);
}

TEST_F(AreaCli, bad_input_is_one_line) {
    expect_refused_about("area --set moe_hub.rat_entries=0", "moe_hub.rat_entries");
    expect_refused_about("area --machine dgx-h80", "did you mean \"dgx-h800\"");
    expect_refused("area --tokens 5", "area: unknown option \"--tokens\"; see moehub area --help");
}

}  // namespace
}  // namespace moehub::area_test
