// Are a paper's numbers computed as the paper defines them, and each cell simulated once? Cells
// here are made by hand; reproduce_cli_test.cpp runs the program.
#include "answers/question.hpp"
#include "base/parallel.hpp"
#include "paper_cells.hpp"
#include "report/answer_forms.hpp"
#include "study/reproduce_paper.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <atomic>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::reproduce_test {
namespace {

TEST(Parallel, threads_do_every_piece_once) {
    for (const int threads : {1, 2, 7, 64}) {
        std::vector<std::atomic<int>> done(50);
        run_parallel(done.size(), [&](std::size_t i) { ++done[i]; }, {threads, {}});
        for (const auto& count : done) EXPECT_EQ(count, 1) << threads;
    }
    run_parallel(0, [](std::size_t) { FAIL(); });
}

TEST(Parallel, threads_report_one_at_a_time) {
    std::vector<std::size_t> reports;  // no lock: one thread at a time
    run_parallel(20, [](std::size_t) {}, {4, [&](std::size_t done, std::size_t total) {
                                              EXPECT_EQ(total, 20u);
                                              reports.push_back(done);
                                          }});
    ASSERT_EQ(reports.size(), 20u);
    for (std::size_t i = 0; i < reports.size(); ++i) EXPECT_EQ(reports[i], i + 1);
}

TEST(Parallel, threads_tell_the_first_failure) {
    for (const int threads : {1, 2, 8}) {
        try {
            run_parallel(100,
                         [](std::size_t i) {
                             if (i >= 5) throw std::runtime_error(std::to_string(i));
                         },
                         {threads, {}});
            FAIL();
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "5") << threads;
        }
    }
}

FigureResult figure(const char* name, const Lookup& cell) {
    return make_figure(moe_hub_cells(false).figures, name, cell);
}

TEST(MoeHubFigures, leads_are_means_of_times_over_moe_hubs) {
    ByHand cells = with_times({{"ideal", 90},
                               {"moe-hub", 100},
                               {"megatron-te", 220},
                               {"fastermoe", 300},
                               {"tutel", 200},
                               {"comet", 140},
                               {"ccfuser", 150}});
    const FigureResult layer = figure("layer", cells.lookup());
    ASSERT_EQ(layer.numbers.size(), 6u);
    EXPECT_NEAR(number(layer, "over megatron-te").ours, 2.2, 1e-9);
    EXPECT_EQ(number(layer, "over megatron-te").paper, 2.195);
    EXPECT_TRUE(number(layer, "over megatron-te").as_published());
    EXPECT_NEAR(number(layer, "over ccfuser").geometric, 1.5, 1e-9);
    EXPECT_NEAR(number(layer, "share of ideal").ours, 0.9, 1e-9);
    ASSERT_EQ(layer.tables.size(), 1u);
    EXPECT_EQ(layer.tables[0].rows.size(), 12u + 2u) << "3 models, 2 sizes, 2 lengths, 2 means";

    const FigureResult whole = figure("end-to-end", cells.lookup());
    EXPECT_NEAR(number(whole, "over megatron-te").ours, 320.0 / 200.0, 1e-9);
    EXPECT_NEAR(number(whole, "over comet").ours, 240.0 / 200.0, 1e-9);
}

TEST(MoeHubFigures, units_are_measured_with_and_without_the_other) {
    ByHand cells =
        with_times({{"mh-base", 240}, {"mh-pkt", 200}, {"mh-dep", 160}, {"moe-hub", 100}});
    const FigureResult result = figure("ablation", cells.lookup());
    EXPECT_NEAR(number(result, "gain of RPM").ours, (240.0 / 200 + 160.0 / 100) / 2, 1e-9);
    EXPECT_NEAR(number(result, "gain of DAM").ours, (240.0 / 160 + 200.0 / 100) / 2, 1e-9);
    for (const PublishedClaim& claim : result.claims)
        EXPECT_EQ(claim.holds, claim.what == "RPM gains more the more tokens")
            << claim.what << ": all cells are alike";
}

TEST(MoeHubFigures, the_ranges_of_tokens_are_apart_and_together) {
    const Lookup cell = [](const CellKey& key) -> const ReproducedCell& {
        static ReproducedCell hub, few, many;
        hub.time = 100;
        few.time = 470;
        many.time = 214;
        if (key.system == "moe-hub") return hub;
        return key.tokens < 4096 ? few : many;
    };
    const FigureResult result = figure("tokens", cell);
    ASSERT_EQ(result.numbers.size(), 3u);
    EXPECT_NEAR(result.numbers[0].ours, 4.70, 1e-9);
    EXPECT_NEAR(result.numbers[1].ours, 2.14, 1e-9);
    EXPECT_NEAR(result.numbers[2].ours, (5 * 4.70 + 4 * 2.14) / 9, 1e-9);
    EXPECT_NEAR(result.numbers[2].ratio(), 1, 0.01) << "the paper's own means agree";
}

TEST(MoeHubFigures, who_cannot_run_is_left_out_and_named) {
    ByHand cells =
        with_times({{"moe-hub", 100}, {"megatron-te", 150}, {"fastermoe", 160}, {"tutel", 99}});
    const FigureResult result = figure("scaling", cells.lookup());
    const FigureTable& leads = result.tables[0];
    EXPECT_FALSE(leads.rows[0].values[4].has_value()) << "comet";
    EXPECT_EQ(leads.notes.size(), 2u * leads.rows.size()) << "comet and ccfuser in every row";
    EXPECT_EQ(leads.notes[0], "mixtral-8x7b, 2 GPUs: comet cannot run this: by hand");
    EXPECT_FALSE(result.claims[0].holds) << "tutel is faster";
    EXPECT_EQ(result.claims[0].found, "smallest lead 0.99× (mixtral-8x7b, 2: over tutel)");
    EXPECT_FALSE(result.claims[1].holds) << "nobody's throughput grows";
}

TEST(MoeHubFigures, each_cell_is_asked_for_once) {
    const auto layer = cells_asked([&](const Lookup& cell) { figure("layer", cell); });
    EXPECT_EQ(layer.size(), 12u * 7u);
    const auto both = cells_asked([&](const Lookup& cell) {
        figure("layer", cell);
        figure("end-to-end", cell);
    });
    EXPECT_EQ(both, layer) << "the whole model needs no further layer";
}

TEST(MoeHubFigures, a_cell_is_the_layer_that_compare_simulates) {
    const ReproducedCell cell =
        simulate_cell(moe_hub_cells(false).setup, {"mixtral-8x7b", 4, 128, "uniform", "moe-hub"});
    const Machine machine = with_gpus(load_machine("dgx-h800"), 4);
    const Model model = load_model("mixtral-8x7b", {"gated=false"});
    const Routing routing = make_routing(parse_routing("uniform"), model, 128);
    const Placement placement = contiguous_placement(model.experts, 4);
    const LayerResult layer = simulate_layer({machine, model, routing, placement}, "moe-hub", {});
    EXPECT_EQ(cell.time, layer.time);
    EXPECT_EQ(cell.first_gemm, layer.first_gemm);
    EXPECT_GT(cell.model_time, model.layers * cell.time);
}

TEST(MoeHubReadings, are_machines_that_a_cell_is_simulated_on) {
    const std::vector<Reading>& readings = publication("moe-hub").readings;
    ASSERT_EQ(readings.size(), 2u);
    EXPECT_TRUE(readings[0].changes.empty()) << "the machine as it is";
    CellKey key{"mixtral-8x7b", 4, 128, "uniform", "moe-hub"};
    const Ps usual = simulate_cell(moe_hub_cells(false).setup, key).time;
    key.reading = readings[0].name;
    EXPECT_EQ(simulate_cell(moe_hub_cells(false).setup, key).time, usual);
    key.reading = readings[1].name;
    const ReproducedCell other = simulate_cell(moe_hub_cells(false).setup, key);
    EXPECT_EQ(other.reading, readings[1].name);
    const Machine machine = with_gpus(load_machine("dgx-h800", readings[1].changes), 4);
    EXPECT_EQ(machine.link.bandwidth, 400e9);
    EXPECT_DOUBLE_EQ(machine.gpu.bf16_flops, load_machine("dgx-h800").gpu.bf16_flops / 2);
    const Model model = load_model("mixtral-8x7b", {"gated=false"});
    const Routing routing = make_routing(parse_routing("uniform"), model, 128);
    const Placement placement = contiguous_placement(model.experts, 4);
    const LayerInput input{machine, model, routing, placement};
    EXPECT_EQ(other.time, simulate_layer(input, "moe-hub", {}).time);
}

TEST(MoeHubReadings, stand_beside_every_number) {
    ReproduceOptions options;
    options.quick = true;
    options.figure = "tokens";
    const Reproduction all = reproduce("moe-hub", options);
    EXPECT_EQ(all.cells.size(), 2u * 3u * 2u) << "readings, counts, systems";
    for (const PublishedNumber& one : all.numbers) {
        ASSERT_EQ(one.otherwise.size(), 1u);
        EXPECT_GT(one.read(1), 0);
        EXPECT_NE(one.read(1), one.read(0));
    }
    options.figure = "imbalance";
    for (const PublishedClaim& one : reproduce("moe-hub", options).claims)
        EXPECT_TRUE(one.otherwise.empty()) << "no number: the first reading alone";
}

TEST(MoeHubFigures, gpus_share_experts_where_there_are_more) {
    EXPECT_GT(
        simulate_cell(moe_hub_cells(false).setup, {"mixtral-8x7b", 16, 64, "uniform", "moe-hub"})
            .time,
        0);
    const auto refused =
        simulate_cell(moe_hub_cells(false).setup, {"mixtral-8x7b", 16, 64, "uniform", "comet"});
    EXPECT_EQ(refused.time, 0);
    EXPECT_NE(refused.refusal.find("comet cannot run this"), std::string::npos);
}

TEST(MoeHubFigures, threads_get_the_same_reproduction) {
    ReproduceOptions options;
    options.quick = true;
    options.figure = "tokens";
    options.threads = 1;
    const std::string one = json_text(answer_of(reproduce("moe-hub", options)));
    options.threads = 3;
    EXPECT_EQ(json_text(answer_of(reproduce("moe-hub", options))), one);
}

Reproduction small_reproduction() {
    Reproduction all;
    all.paper = "moe-hub";
    all.title = "MoE-Hub";
    all.setup = {"Made by hand."};
    all.numbers = {{"layer", "over comet", NumberKind::ratio, 1.4, 1.45, 1.44, ""},
                   {"layer", "share of ideal", NumberKind::share, 0.968, 0.8, 0.79, "The wire."}};
    all.claims = {{"scaling", "ahead", false, "smallest lead 0.99×", "The wire."}};
    FigureTable table{"layer", "A layer", {"model"}, {}, {}, {"comet cannot run this"}};
    table.columns = {{"moe-hub µs", NumberKind::time}, {"over comet", NumberKind::ratio}};
    table.rows = {{{"a"}, {1234.5, 1.45}, false},
                  {{"b"}, {10.0, std::nullopt}, false},
                  {{"mean"}, {std::nullopt, 1.45}, true}};
    all.tables = {table};
    all.cells = {{{"a", 8, 4096, "uniform", "moe-hub"}, 1'234'500'000, 1, 2},
                 {{"b", 8, 4096, "uniform", "comet"}, 0, 0, 0, "comet cannot run this"}};
    return all;
}

TEST(ReproductionPage, has_numbers_cells_and_reasons) {
    const std::string page = markdown_of(answer_of(small_reproduction()), "moehub reproduce x");
    for (const auto* part :
         {"# MoE-Hub", "    moehub reproduce x\n", "- Made by hand.\n",
          "Of 2 numbers 1 are within 10 %.", "| layer | over comet | 1.400 | 1.450 | 1.04 | yes |",
          "| layer | share of ideal | 96.8 % | 80.0 % | 0.83 | no |",
          "| ✗ | scaling | ahead | smallest lead 0.99× |",
          "| layer, share of ideal; scaling, ahead | The wire. |", "| a | 1,234.5 | 1.45 |\n",
          "| b | 10.0 | – |\n", "| mean |   | 1.45 |\n", "- comet cannot run this\n"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("Quick"), std::string::npos);
}

Reproduction read_in_two_ways() {
    Reproduction all = small_reproduction();
    all.readings = {{"as it is", "Nothing is changed.", {}},
                    {"faster", "The wire is faster.", {"link.bandwidth=400 GB/s"}}};
    all.numbers[0].otherwise = {2.0};
    all.numbers[1].otherwise = {0.95};
    all.claims[0].otherwise = {true};
    return all;
}

TEST(ReproductionPage, says_what_each_reading_explains) {
    const std::string page = markdown_of(answer_of(read_in_two_ways()), "");
    for (const auto* part :
         {"| over comet | 1.400 | 1.450 | 1.04 | yes | 2.000 | 1.43 |",
          "| 96.8 % | 80.0 % | 0.83 | no | 95.0 % | 0.98 |",
          "| as it is | Nothing is changed. | 1 of 2 | layer, over comet |",
          "| faster | The wire is faster. (link.bandwidth=400 GB/s) | 1 of 2 | layer, share of "
          "ideal |",
          "| smallest lead 0.99× | ✓ |"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(markdown_of(answer_of(small_reproduction()), "").find("How the paper is read"),
              std::string::npos);
}

/// A number that ran by one reading alone counts for it alone.
TEST(ReproductionPage, leaves_out_what_a_reading_did_not_run) {
    Reproduction all = read_in_two_ways();
    all.numbers[1].otherwise.clear();
    const std::string page = markdown_of(answer_of(all), "");
    EXPECT_NE(page.find("| 96.8 % | 80.0 % | 0.83 | no | – | – |"), std::string::npos) << page;
    EXPECT_NE(page.find("(link.bandwidth=400 GB/s) | 0 of 1 |  |"), std::string::npos) << page;
}

TEST(ReproductionPage, marks_what_no_reason_holds_for) {
    Reproduction all = small_reproduction();
    all.numbers[1].explained = false;
    EXPECT_NE(markdown_of(answer_of(all), "").find("| 0.83 | no, unexplained |"),
              std::string::npos);
}

TEST(ReproductionJson, has_every_reading) {
    const auto json = nlohmann::json::parse(json_text(answer_of(read_in_two_ways())));
    EXPECT_EQ(json["readings"][1]["changes"][0], "link.bandwidth=400 GB/s");
    EXPECT_EQ(json["numbers"][0]["otherwise"]["faster"]["ours"], 2.0);
    EXPECT_EQ(json["numbers"][1]["otherwise"]["faster"]["as_published"], true);
    EXPECT_EQ(json["claims"][0]["otherwise"]["faster"]["holds"], true);
}

TEST(ReproductionText, shows_every_reading) {
    const std::string text = text_of(answer_of(read_in_two_ways()), {});
    EXPECT_NE(text.find("faster  /paper"), std::string::npos);
    EXPECT_NE(text.find("The wire is faster."), std::string::npos);
}

TEST(ReproductionText, has_the_same_and_says_when_it_is_quick) {
    Reproduction all = small_reproduction();
    const std::string whole = text_of(answer_of(all), {});
    EXPECT_NE(whole.find("Why they differ"), std::string::npos);
    EXPECT_NE(whole.find("✗  scaling  ahead"), std::string::npos) << whole;
    EXPECT_EQ(whole.find("not comparable"), std::string::npos);
    all.quick = true;
    EXPECT_NE(text_of(answer_of(all), {}).find("not comparable"), std::string::npos);
}

TEST(ReproductionJson, has_numbers_claims_and_cells) {
    const auto json = nlohmann::json::parse(json_text(answer_of(small_reproduction())));
    EXPECT_EQ(json["paper"], "moe-hub");
    EXPECT_EQ(json["numbers"][0]["figure"], "layer");
    EXPECT_EQ(json["numbers"][0]["what"], "over comet");
    EXPECT_EQ(json["numbers"][0]["paper"], 1.4);
    EXPECT_NEAR(json["numbers"][0]["ratio"], 1.45 / 1.4, 1e-12);
    EXPECT_TRUE(json["numbers"][0]["reason"].is_null());
    EXPECT_EQ(json["numbers"][1]["reason"], "The wire.");
    EXPECT_EQ(json["claims"][0]["holds"], false);
    EXPECT_EQ(json["cells"][0]["time_us"], 1234.5);
    EXPECT_TRUE(json["cells"][1]["time_us"].is_null());
    EXPECT_EQ(json["cells"][1]["refusal"], "comet cannot run this");
    EXPECT_EQ(json["tables"][0]["rows"][0]["over comet"], 1.45) << "means are no rows";
    EXPECT_EQ(json["tables"][0]["rows"].size(), 2u);
}

TEST(Reproduce, an_unknown_figure_is_refused) {
    ReproduceOptions options;
    options.figure = "tokns";
    for (const PaperInfo& paper : papers())
        EXPECT_THROW(reproduce(paper.name, options), InputError) << paper.name;
    EXPECT_THROW(reproduce("moehub"), InputError);
}

/// What long work calls now and then may throw: so Ctrl-C ends it.
TEST(Reproduce, is_ended_by_its_progress) {
    struct Enough {};
    for (const PaperInfo& paper : papers()) {
        ReproduceOptions options;
        options.quick = true;
        options.progress = [](std::size_t, std::size_t) { throw Enough(); };
        EXPECT_THROW(reproduce(paper.name, options), Enough) << paper.name;
    }
}

}  // namespace
}  // namespace moehub::reproduce_test
