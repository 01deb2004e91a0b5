// Are the CAIS paper's numbers computed as it defines them? Cells here are made by hand, but for a
// few that show what a cell is.
#include "study/reproduce_cais.hpp"

#include "answers/question.hpp"
#include "paper_cells.hpp"
#include "report/answer_forms.hpp"

#include <moehub/error.hpp>
#include <moehub/model_time.hpp>
#include <moehub/presets.hpp>

#include <cctype>
#include <deque>
#include <fstream>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::reproduce_cais_test {
namespace {

FigureResult figure(const char* name, const Lookup& cell) {
    return make_figure(cais_cells(false).figures, name, cell);
}

/// The means that the paper publishes of its sub-layers.
const std::map<std::string, double> kPaper{
    {"tp-nvls", 1.39},      {"sp-nvls", 1.91},          {"coconet", 1.99}, {"fuselib", 1.91},
    {"t3", 1.64},           {"coconet-nvls", 1.24},     {"ladm", 7.9},     {"fuselib-nvls", 1.20},
    {"t3-nvls", 1.47},      {"cais-base", 1.47},        {"cais", 1},       {"ideal", 0.8},
    {"cais-partial", 1.05}, {"cais-uncoordinated", 1.2}};

void as_published(const CellKey& key, ReproducedCell& cell) {
    cell.time = static_cast<Ps>(kPaper.at(key.system) * 1e8);
    cell.forward_time = cell.time;
    cell.model_time = 3 * cell.time;
    cell.compute = 100;
    cell.communication = 160;
}

TEST(CaisFigures, leads_are_geometric_means_and_largest) {
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        as_published(key, cell);
        if (key.system == "t3" && key.part == "L1") cell.time *= 2;
        if (key.system == "t3" && key.part == "L2") cell.time /= 2;
    });
    const FigureResult result = figure("sub-layer", cells.lookup());
    ASSERT_EQ(result.numbers.size(), 10u + 9u + 1u);
    EXPECT_NEAR(number(result, "over t3").ours, 1.64, 1e-9);
    EXPECT_NEAR(number(result, "over t3, largest").ours, 3.28, 1e-9);
    EXPECT_EQ(number(result, "over cais-base").paper, 1.47);
    EXPECT_NEAR(result.numbers.back().ours, 1.6, 1e-9) << "communication over compute";
    EXPECT_EQ(result.tables[0].rows.size(), 12u + 2u);
    EXPECT_FALSE(claim(result, "ahead of every baseline in every cell").holds) << "T3 in L2";
}

TEST(CaisFigures, the_order_is_that_of_the_paper) {
    ByHand paper(as_published);
    const FigureResult same = figure("inference", paper.lookup());
    EXPECT_TRUE(claim(same, "the baselines' order").holds)
        << claim(same, "the baselines' order").found;
    EXPECT_NE(claim(same, "the baselines' order").found.find("fastest first: fuselib-nvls"),
              std::string::npos);
    ByHand other([](const CellKey& key, ReproducedCell& cell) {
        as_published(key, cell);
        if (key.system == "tp-nvls") cell.model_time *= 2;
    });
    const FigureResult result = figure("training", other.lookup());
    EXPECT_FALSE(claim(result, "the baselines' order").holds);
    EXPECT_NEAR(number(result, "over tp-nvls").ours, 2.78, 1e-9);
}

TEST(CaisFigures, the_table_is_what_it_needs_without_limit) {
    const auto make = [](double together) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const bool apart = key.system == "cais-uncoordinated";
            const bool small = key.changes.front() == "cais.merge_entries=320";
            cell.time = static_cast<Ps>(1e8 * (small && apart ? 1.4 : 1));
            cell.merge = {apart ? 2000 : together, apart ? 35.0 : 2.0, 100};
            if (key.changes.size() > 2) {
                EXPECT_EQ(key.changes.front(), "cais.merge_entries=100000");
            }
        });
        return figure("table", cells.lookup());
    };
    const FigureResult paper = make(260);
    EXPECT_NEAR(paper.numbers[0].ours, 250, 1e-9) << "2000 lines of 128 B";
    EXPECT_NEAR(paper.numbers[1].ours, 0.87, 1e-9);
    EXPECT_NEAR(paper.numbers[2].ours, 35, 1e-9);
    for (const PublishedClaim& one : paper.claims) EXPECT_TRUE(one.holds) << one.what;
    const FigureResult other = make(1500);
    EXPECT_FALSE(other.claims[0].holds);
    EXPECT_FALSE(claim(other, "coordinated, a port needs less than 40 KB").holds);
}

TEST(CaisFigures, links_in_use_are_the_mean_over_sub_layers) {
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        cell.time = 1000;
        cell.busier_way = 950;
        cell.link_use = key.system == "cais-base" ? 0.624 : key.system == "cais" ? 0.902 : 0.847;
    });
    const FigureResult result = figure("utilisation", cells.lookup());
    for (const PublishedNumber& one : result.numbers) EXPECT_NEAR(one.ratio(), 1, 1e-9);
    EXPECT_TRUE(result.claims[0].holds);
}

TEST(CaisFigures, throughput_of_a_gpu_is_its_share_of_a_model_that_grows) {
    const auto make = [](double loss) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const int scale = key.gpus / 8;
            EXPECT_EQ(key.changes.front(), "model.hidden=" + std::to_string(4096 * scale));
            cell.time = static_cast<Ps>(1e8 * scale * (scale == 4 ? loss : 1));
        });
        return figure("scaling", cells.lookup());
    };
    EXPECT_TRUE(make(1.04).claims[0].holds);
    EXPECT_FALSE(make(1.06).claims[0].holds);
}

TEST(CaisFigures, an_all_reduce_is_compared_with_what_was_measured) {
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        EXPECT_EQ(key.work, CellWork::all_reduce);
        const double bus = key.machine == "dgx-h800" ? 215 : 476;
        cell.time = static_cast<Ps>(1.75 * static_cast<double>(key.tokens) / bus * 1e3);
    });
    const FigureResult result = figure("nvls", cells.lookup());
    EXPECT_TRUE(result.claims.at(0).holds) << result.claims[0].found;
    EXPECT_EQ(result.tables[0].rows.size(), 4u + 3u);
}

TEST(CaisCells, are_the_papers_sub_layers) {
    const auto keys = cells_asked([](const Lookup& cell) { figure("sub-layer", cell); });
    EXPECT_EQ(keys.size(), 12u * 11u + 4u) << "nine baselines, two of CAIS; ideal of one model";
    for (const CellKey& key : keys) {
        const Model model = load_model(key.model);
        EXPECT_EQ(key.tokens, std::int64_t{model.sequence} * model.batch) << key.model;
    }
}

TEST(CaisCells, are_few_where_it_is_quick) {
    const auto keys = cells_asked([](const Lookup& cell) {
        for (const PaperFigure& one : cais_cells(true).figures) one.make(cell);
    });
    EXPECT_LE(keys.size(), 64u);
}

TEST(CaisCells, are_sub_layers_of_the_papers_machine) {
    CellKey key = cais_cell({"", "llama-7b", 256}, "L2", "cais");
    key.changes = {"cais.merge_entries=640"};
    const PaperSetup setup = cais_cells(false).setup;
    const ReproducedCell cell = simulate_cell(setup, key);
    ASSERT_EQ(cell.refusal, "");
    Overrides changes = setup.changes;
    changes.pop_back();  // the model's
    const std::vector<std::string>& read = setup.readings.front().changes;
    changes.insert(changes.end(), read.begin(), read.end());
    changes.emplace_back("cais.merge_entries=640");
    const Machine machine = with_gpus(load_machine("dgx-h100", changes), 8);
    const Model model = load_model("llama-7b", {"gated=false"});
    const LayerResult layer =
        simulate_tp({machine, model, 256, SubLayer::l2}, "cais", {.residual = false});
    EXPECT_EQ(cell.time, layer.time);
    EXPECT_EQ(cell.communication, layer.breakdown.communication);
    EXPECT_GT(cell.merge.deepest, 0);
    EXPECT_GT(cell.link_use, 0);
    EXPECT_LE(cell.link_use, 1);
}

TEST(CaisCells, have_both_ways_of_a_model) {
    CellKey key{"llama-7b", 8, 256, "", "tp-nvls"};
    key.work = CellWork::training;
    const ReproducedCell both = simulate_cell(cais_cells(false).setup, key);
    key.work = CellWork::model;
    const ReproducedCell forward = simulate_cell(cais_cells(false).setup, key);
    EXPECT_NEAR(to_us(both.forward_time), to_us(forward.model_time), to_us(both.forward_time) / 100)
        << "in training some more is kept";
    EXPECT_EQ(forward.forward_time, forward.model_time);
    EXPECT_GT(both.model_time, 2 * both.forward_time);
}

TEST(CaisCells, a_machine_of_its_own_is_as_it_is) {
    CellKey key{"", 8, 1 << 26, "", "nvls"};
    key.work = CellWork::all_reduce;
    key.machine = "dgx-h800";
    const Collective collective{.op = Collective::Op::all_reduce,
                                .algorithm = Collective::Algorithm::nvls,
                                .bytes = 1 << 26};
    EXPECT_EQ(simulate_cell(cais_cells(false).setup, key).time,
              run_collective(load_machine("dgx-h800"), collective).time);
}

TEST(CaisCells, what_cannot_run_is_refused) {
    EXPECT_NE(simulate_cell(cais_cells(false).setup, cais_cell({"", "llama-7b", 64}, "L9", "cais"))
                  .refusal.find("L9"),
              std::string::npos);
    EXPECT_NE(simulate_cell(cais_cells(false).setup,
                            cais_cell({"", "llama-7b", 64}, "L1", "no-such-system"))
                  .refusal.find("no-such-system"),
              std::string::npos);
}

TEST(CaisJson, has_what_tells_cells_apart) {
    Reproduction all;
    all.cells = {{{"a", 8, 64, "", "cais"}, 1'000'000}};
    all.cells[0].work = CellWork::sub_layer;
    all.cells[0].part = "L3";
    all.cells[0].machine = "gb200-nvl72";
    all.cells[0].merge.deepest = 7;
    const auto json = nlohmann::json::parse(json_text(answer_of(all)))["cells"][0];
    EXPECT_EQ(json["work"], "sub-layer");
    EXPECT_EQ(json["part"], "L3");
    EXPECT_EQ(json["machine"], "gb200-nvl72");
    EXPECT_EQ(json["merge"]["deepest"], 7);
}

TEST(ReproduceCais, quick_cais_is_all_figures) {
    ReproduceOptions options;
    options.quick = true;
    const Reproduction all = reproduce("cais", options);
    EXPECT_EQ(all.paper, "cais");
    for (const ReproducedCell& cell : all.cells) EXPECT_EQ(cell.refusal, "") << cell.system;
    for (const NamedFigure& one : publication("cais").figures) {
        bool found = false;
        for (const FigureTable& table : all.tables) found = found || table.figure == one.name;
        EXPECT_TRUE(found) << one.name;
    }
}

}  // namespace
}  // namespace moehub::reproduce_cais_test
