// Are the DySHARP paper's numbers computed as it defines them? Cells here are made by hand, but for
// a few that show what a cell is.
#include "study/reproduce_dysharp.hpp"

#include "answers/question.hpp"
#include "paper_cells.hpp"
#include "report/answer_forms.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <cctype>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::reproduce_dysharp_test {
namespace {

FigureResult figure(const char* name, const Lookup& cell) {
    return make_figure(dysharp_cells(false).figures, name, cell);
}

TEST(DysharpFigures, leads_are_geometric_means_and_largest) {
    // Over comet: 1 in the models of configuration S, 4 in L, 2 in all others.
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        const double lead = key.model == "dysharp-s" ? 1 : key.model == "dysharp-l" ? 4 : 2;
        cell.time = static_cast<Ps>(key.system == "comet" ? lead * 1e8 : 1e8);
        cell.model_time = 2 * cell.time;
    });
    const FigureResult layer = figure("layer", cells.lookup());
    ASSERT_EQ(layer.numbers.size(), 12u);
    EXPECT_NEAR(number(layer, "over comet").ours, 2, 1e-9)
        << "geometric mean of 3 · 1, 5 · 2, 3 · 4";
    EXPECT_EQ(number(layer, "over comet").paper, 1.78);
    EXPECT_NEAR(number(layer, "over comet, largest").ours, 4, 1e-9);
    EXPECT_EQ(number(layer, "over deepep, largest").paper, 2.77);
    EXPECT_FALSE(claim(layer, "ahead of every baseline in every configuration").holds) << "equal";
    ASSERT_EQ(layer.tables.size(), 1u);
    EXPECT_EQ(layer.tables[0].rows.size(), 11u + 2u);
    EXPECT_EQ(layer.tables[0].rows.back().labels[0], "largest");

    const FigureResult training = figure("training", cells.lookup());
    ASSERT_EQ(training.numbers.size(), 14u);
    EXPECT_EQ(number(training, "over dualpipe").paper, 1.66);
    EXPECT_NEAR(number(training, "over comet").ours, 2, 1e-9);
}

TEST(DysharpFigures, who_cannot_run_is_left_out_and_named) {
    ByHand cells = with_times({{"dysharp", 100}, {"comet", 150}});
    const FigureResult result = figure("layer", cells.lookup());
    EXPECT_FALSE(result.tables[0].rows[0].values[1].has_value()) << "deepep";
    EXPECT_EQ(result.tables[0].notes.size(), 5u * 11u);
    EXPECT_EQ(result.tables[0].notes[0], "S top-8: deepep cannot run this: by hand");
    EXPECT_EQ(number(result, "over deepep").ours, 0);
    EXPECT_TRUE(result.claims[0].holds) << "ahead of who ran";

    ByHand none = with_times({{"comet", 150}});
    const FigureResult without = figure("layer", none.lookup());
    EXPECT_FALSE(without.tables[0].rows[0].values[0].has_value());
    EXPECT_FALSE(without.claims[0].holds);
}

/// Bytes of a layer in which a token has copies on 7 of 32 GPUs: see docs/systems.md.
void seven_copies(const CellKey& key, ReproducedCell& cell) {
    cell.time = 100;
    const std::map<std::string, std::pair<Bytes, Bytes>> bytes{
        {"deepep", {14, 14}}, {"dysharp", {8, 8}}, {"nvls", {32, 32}}};
    cell.bytes_up = bytes.at(key.system).first;
    cell.bytes_down = bytes.at(key.system).second;
}

TEST(DysharpFigures, traffic_is_what_nobody_asked_for) {
    ByHand cells(seven_copies);
    const FigureResult result = figure("traffic", cells.lookup());
    ASSERT_EQ(result.numbers.size(), 1u);
    EXPECT_NEAR(result.numbers[0].ours, 24.0 / 7, 1e-9) << "31 others have a token, 7 want it";
    EXPECT_TRUE(result.numbers[0].as_published());
    EXPECT_TRUE(claim(result, "nearly halves deepep's traffic").holds) << "8 of 14";
    EXPECT_TRUE(claim(result, "nvls moves more than deepep").holds);

    ByHand alike([](const CellKey&, ReproducedCell& cell) {
        cell.time = 100;
        cell.bytes_up = cell.bytes_down = 10;
    });
    for (const PublishedClaim& one : figure("traffic", alike.lookup()).claims)
        EXPECT_FALSE(one.holds) << one.what;
}

TEST(DysharpFigures, the_wire_is_measured_with_rows_alone) {
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        const bool rows = key.work == CellWork::communication;
        cell.time = 1000;
        cell.communication = rows ? 0 : 704;
        cell.busier_way = key.system == "dysharp-basic" ? 950 : 690;
    });
    const FigureResult result = figure("wire", cells.lookup());
    EXPECT_NEAR(number(result, "communication in deepep's layer").ours, 0.704, 1e-9);
    EXPECT_TRUE(result.claims[0].holds);
    EXPECT_EQ(result.claims[0].found, "dysharp-basic 95 %");
}

TEST(DysharpFigures, claims_of_ablations_are_decided_both_ways) {
    const auto make = [](double basic, double fusion, Bytes bytes) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const std::map<std::string, double> times{
                {"dysharp", 100},       {"dysharp-basic", basic}, {"fusion-only", fusion},
                {"dysharp-comet", 150}, {"comet", 180},           {"deepep", 230},
                {"steps-only", 230}};
            cell.time = static_cast<Ps>(times.at(key.system) * 1e6);
            cell.bytes_up = cell.bytes_down = key.system == "dysharp-basic" ? bytes : 1000;
        });
        return figure("ablation", cells.lookup());
    };
    const FigureResult paper = make(225, 185, 550);
    ASSERT_EQ(paper.claims.size(), 4u);
    for (const PublishedClaim& one : paper.claims) EXPECT_TRUE(one.holds) << one.what;
    EXPECT_EQ(paper.tables[0].rows.size(), 7u);
    const FigureResult other = make(90, 120, 900);
    for (const PublishedClaim& one : other.claims) EXPECT_FALSE(one.holds) << one.what;
}

TEST(DysharpFigures, the_lead_grows_in_every_series) {
    const auto make = [](double at_most) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const double lead = 1 + 0.01 * std::min<double>(key.gpus, at_most);
            cell.time = static_cast<Ps>(key.system == "dysharp" ? 1e8 : lead * 1e8);
        });
        return figure("gpus", cells.lookup());
    };
    const FigureResult grows = make(1000);
    EXPECT_TRUE(grows.claims[0].holds);
    EXPECT_EQ(grows.claims[0].found,
              "S top-8: 4 1.04×, 8 1.08×, 16 1.16×, 32 1.32×, 64 1.64×; "
              "M top-8: 4 1.04×, 8 1.08×, 16 1.16×, 32 1.32×, 64 1.64×");
    EXPECT_FALSE(make(32).claims[0].holds) << "64 GPUs as 32";
}

TEST(DysharpFigures, a_size_is_a_sweet_spot_between_less_and_more) {
    const auto make = [](double least, double most) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            EXPECT_EQ(key.grain, Grain::packet);
            const std::string& change = key.changes.back();
            cell.time = static_cast<Ps>(change == "dysharp.tlb_entries=64"     ? least
                                        : change == "dysharp.tlb_entries=2048" ? most
                                                                               : 1000);
        });
        return figure("tlb", cells.lookup());
    };
    const FigureResult spot = make(1100, 995);
    ASSERT_EQ(spot.claims.size(), 2u);
    EXPECT_TRUE(spot.claims[0].holds && spot.claims[1].holds);
    const FigureResult other = make(1000, 900);
    EXPECT_FALSE(other.claims[0].holds || other.claims[1].holds);
    EXPECT_EQ(spot.claims[0].found, "with 64 1.100 of the time with 512");
}

TEST(DysharpCells, are_the_papers_configurations) {
    const DysharpScope scope = whole_dysharp();
    const auto keys = cells_asked([&](const Lookup& cell) {
        figure("layer", cell);
        figure("training", cell);
        figure("traffic", cell);
    });
    EXPECT_EQ(keys.size(), 11u * 8u) << "six baselines, dysharp and dualpipe; each once";
    for (const CellKey& key : keys) {
        const Model model = load_model(key.model);
        const bool quarter = key.model == "dysharp-l" && key.changes.front() != "model.top_k=8";
        EXPECT_EQ(key.tokens, std::int64_t{model.sequence} * 32 / (quarter ? 4 : 1)) << key.model;
        EXPECT_EQ(key.gpus, 32);
    }
    const auto layers = cells_asked([&](const Lookup& cell) { figure("layer", cell); });
    EXPECT_EQ(layers.size(), 11u * 7u);
    for (const CellKey& key : layers) EXPECT_EQ(key.work, CellWork::layer) << "nothing backward";
    const CellKey more = DysharpPoint{scope.usual, 64, "uniform"}.under("dysharp");
    EXPECT_EQ(more.changes, (std::vector<std::string>{"model.top_k=8", "switches=18"}));
}

TEST(DysharpCells, are_few_where_it_is_quick) {
    const auto keys = cells_asked([](const Lookup& cell) {
        for (const PaperFigure& one : dysharp_cells(true).figures) one.make(cell);
    });
    EXPECT_LE(keys.size(), 64u);
    for (const CellKey& key : keys) EXPECT_LE(key.tokens, 8192) << key.system;
}

TEST(DysharpCells, are_layers_under_the_same_software) {
    const CellKey key =
        DysharpPoint{{"", "dysharp-s", 64, 16, 4}, 32, "uniform"}.under("deepep", CellWork::layer);
    const ReproducedCell cell = simulate_cell(dysharp_cells(false).setup, key);
    const Machine machine =
        load_machine("gh200-nvl32", dysharp_cells(false).setup.readings.front().changes);
    EXPECT_DOUBLE_EQ(machine.gpu.bf16_flops, machine.gpu.fp8_flops);
    EXPECT_DOUBLE_EQ(machine.gpu.kernels.gemm_load, 2 * machine.gpu.kernels.fp8_load);
    EXPECT_DOUBLE_EQ(machine.gpu.kernels.grouped_load, 2 * machine.gpu.kernels.fp8_grouped_load);
    const Model model = load_model("dysharp-s", {"top_k=16"});
    const Routing routing = make_routing(parse_routing("uniform"), model, 128);
    const Placement placement = contiguous_placement(model.experts, 32);
    const SystemSpec system = with_software(load_system("deepep"), {HostMode::graph, true, false});
    const LayerResult layer = simulate_layer({machine, model, routing, placement}, system, {});
    EXPECT_EQ(cell.time, layer.time);
    EXPECT_EQ(cell.bytes_up, layer.bytes_up);
    EXPECT_EQ(cell.communication, layer.breakdown.communication);
    EXPECT_EQ(cell.model_time, 0) << "the layer alone";
    EXPECT_GT(cell.busier_way, 0);
    EXPECT_LE(cell.busier_way, cell.time);
}

TEST(DysharpCells, have_training_and_rows_alone) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 4}, 4, "uniform"};
    const PaperSetup setup = dysharp_cells(false).setup;
    const ReproducedCell layer = simulate_cell(setup, point.under("deepep", CellWork::layer));
    const ReproducedCell whole = simulate_cell(setup, point.under("deepep", CellWork::training));
    EXPECT_EQ(whole.time, layer.time);
    EXPECT_GT(whole.model_time, 32 * 2 * layer.time) << "32 layers, both ways";
    const ReproducedCell rows =
        simulate_cell(setup, point.under("deepep", CellWork::communication));
    EXPECT_LT(rows.time, layer.time);
}

TEST(DysharpCells, a_layer_is_found_in_training) {
    ReproducedCell cell{{"a", 32, 64, "uniform", "dysharp"}, 5, 0, 9};
    cell.reading = "one";
    cell.work = CellWork::training;
    const std::vector<ReproducedCell> cells{cell};
    CellKey key{"a", 32, 64, "uniform", "dysharp"};
    key.work = CellWork::layer;
    EXPECT_EQ(lookup_in(cells, "one")(key).time, 5);
    key.work = CellWork::communication;
    EXPECT_THROW(lookup_in(cells, "one")(key), std::logic_error);
}

TEST(DysharpCells, sixty_four_gpus_are_one_node) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 2}, 64, "uniform"};
    const ReproducedCell cell =
        simulate_cell(dysharp_cells(false).setup, point.under("deepep", CellWork::layer));
    EXPECT_EQ(cell.refusal, "");
    EXPECT_GT(cell.time, 0);
}

TEST(DysharpCells, a_system_that_there_is_not_is_refused) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 2}, 4, "uniform"};
    const ReproducedCell cell =
        simulate_cell(dysharp_cells(false).setup, point.under("no-such-system", CellWork::layer));
    EXPECT_NE(cell.refusal.find("no-such-system"), std::string::npos) << cell.refusal;
}

TEST(DysharpRouting, a_deviation_is_of_what_it_is_said_to_be_of) {
    const DysharpConfig config{"", "dysharp-s", 64, 8, 1};
    EXPECT_EQ(dysharp_routing(config, 0.032), "normal:0.0005") << "of 1/64";
    EXPECT_EQ(dysharp_routing(config, 0.032, DeviationOf::tokens), "normal:0.004") << "of 8/64";
    EXPECT_EQ(dysharp_routing(config, 0.032, DeviationOf::choices), "normal:0.032");
    for (const DysharpConfig& one : whole_dysharp().configs)
        EXPECT_EQ(load_model(one.model).experts, one.experts) << one.name;
}

TEST(BusierWay, counts_one_direction_at_a_time_of_the_busiest_gpu) {
    const std::vector<LinkUse> links{
        {"gpu 0", "switch 0 of node 0", 0, 0, 100, {100, 20, 0}},
        {"switch 0 of node 0", "gpu 0", 0, 0, 100, {30, 60}},
        {"gpu 1", "switch 0 of node 0", 0, 0, 100, {0, 0, 90}},
    };
    EXPECT_EQ(busier_way(links), 160);
    const std::vector<LinkUse> wide{{"gpu 0", "switch 0 of node 0", 0, 0, 50, {50, 50, 10, 0}},
                                    {"switch 0 of node 0", "gpu 0", 0, 0, 100, {30, 60}}};
    EXPECT_EQ(busier_way(wide), 160) << "in bins of 100";
    EXPECT_EQ(busier_way({}), 0);
}

TEST(DysharpPage, says_that_means_are_geometric) {
    Reproduction all;
    all.means = Means::geometric;
    all.numbers = {{"layer", "over comet", NumberKind::ratio, 1.78, 1.8, 1.8}};
    const std::string page = markdown_of(answer_of(all), "");
    EXPECT_NE(page.find("Means are geometric means"), std::string::npos);
    EXPECT_NE(page.find("| layer | over comet | 1.780 | 1.800 | 1.01 | yes |\n"),
              std::string::npos);
    const auto json = nlohmann::json::parse(json_text(answer_of(all)));
    EXPECT_EQ(json["numbers"][0]["geometric_mean"], 1.8);
}

TEST(DysharpJson, has_what_tells_cells_apart) {
    Reproduction all;
    all.cells = {{{"a", 32, 64, "uniform", "dysharp"}, 1'000'000}};
    all.cells[0].work = CellWork::communication;
    all.cells[0].changes = {"dysharp.tlb_entries=64"};
    all.cells[0].grain = Grain::packet;
    all.cells[0].bytes_up = 7;
    const auto json = nlohmann::json::parse(json_text(answer_of(all)))["cells"][0];
    EXPECT_EQ(json["work"], "communication");
    EXPECT_EQ(json["changes"][0], "dysharp.tlb_entries=64");
    EXPECT_EQ(json["grain"], "packet");
    EXPECT_EQ(json["traffic_bytes"]["up"], 7);
}

}  // namespace
}  // namespace moehub::reproduce_dysharp_test
