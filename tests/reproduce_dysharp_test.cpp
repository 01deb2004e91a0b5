// Are the DySHARP paper's numbers computed as it defines them? Cells here are made by hand, but for
// a few that show what a cell is.
#include "study/reproduce_dysharp.hpp"

#include "report/reproduction.hpp"
#include "study/busier_way.hpp"
#include "study/figure_table.hpp"

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

namespace moehub {
namespace {

/// Makes cells up; references stay.
class ByHand {
  public:
    using Fill = std::function<void(const CellKey&, ReproducedCell&)>;
    explicit ByHand(Fill fill) : fill_(std::move(fill)) {}

    Lookup lookup() {
        return [this](const CellKey& key) -> const ReproducedCell& {
            ReproducedCell& cell = cells_.emplace_back();
            cell.model = key.model;
            cell.system = key.system;
            fill_(key, cell);
            return cell;
        };
    }

  private:
    Fill fill_;
    std::deque<ReproducedCell> cells_;
};

/// Times in µs by system, the same in every cell; a system without one refuses.
ByHand with_times(std::map<std::string, double> times) {
    return ByHand([times = std::move(times)](const CellKey& key, ReproducedCell& cell) {
        const auto known = times.find(key.system);
        if (known == times.end()) {
            cell.refusal = key.system + " cannot run this: by hand";
            return;
        }
        cell.time = static_cast<Ps>(known->second * 1e6);
        cell.model_time = cell.time + 100'000'000;
    });
}

const PublishedNumber& number(const FigureResult& result, std::string_view what) {
    for (const PublishedNumber& one : result.numbers)
        if (one.what == what) return one;
    throw std::logic_error("no such number");
}

const PublishedClaim& claim(const FigureResult& result, std::string_view what) {
    for (const PublishedClaim& one : result.claims)
        if (one.what == what) return one;
    throw std::logic_error("no such claim");
}

TEST(DysharpFigures, AreLeadsGeometricMeansAndLargest) {
    // Over comet: 1 in the models of configuration S, 4 in L, 2 in all others.
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        const double lead = key.model == "dysharp-s" ? 1 : key.model == "dysharp-l" ? 4 : 2;
        cell.time = static_cast<Ps>(key.system == "comet" ? lead * 1e8 : 1e8);
        cell.model_time = 2 * cell.time;
    });
    const FigureResult layer = dysharp_layer_figure(whole_dysharp(), cells.lookup());
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

    const FigureResult training = dysharp_training_figure(whole_dysharp(), cells.lookup());
    ASSERT_EQ(training.numbers.size(), 14u);
    EXPECT_EQ(number(training, "over dualpipe").paper, 1.66);
    EXPECT_NEAR(number(training, "over comet").ours, 2, 1e-9);
}

TEST(DysharpFigures, IsWhoCannotRunLeftOutAndNamed) {
    ByHand cells = with_times({{"dysharp", 100}, {"comet", 150}});
    const FigureResult result = dysharp_layer_figure(whole_dysharp(), cells.lookup());
    EXPECT_FALSE(result.tables[0].rows[0].values[1].has_value()) << "deepep";
    EXPECT_EQ(result.tables[0].notes.size(), 5u * 11u);
    EXPECT_EQ(result.tables[0].notes[0], "S top-8: deepep cannot run this: by hand");
    EXPECT_EQ(number(result, "over deepep").ours, 0);
    EXPECT_TRUE(result.claims[0].holds) << "ahead of who ran";

    ByHand none = with_times({{"comet", 150}});
    const FigureResult without = dysharp_layer_figure(whole_dysharp(), none.lookup());
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

TEST(DysharpFigures, IsTrafficWhatNobodyAskedFor) {
    ByHand cells(seven_copies);
    const FigureResult result = dysharp_traffic_figure(whole_dysharp(), cells.lookup());
    ASSERT_EQ(result.numbers.size(), 1u);
    EXPECT_NEAR(result.numbers[0].ours, 24.0 / 7, 1e-9) << "31 others have a token, 7 want it";
    EXPECT_TRUE(result.numbers[0].as_published());
    EXPECT_TRUE(claim(result, "nearly halves deepep's traffic").holds) << "8 of 14";
    EXPECT_TRUE(claim(result, "nvls moves more than deepep").holds);

    ByHand alike([](const CellKey&, ReproducedCell& cell) {
        cell.time = 100;
        cell.bytes_up = cell.bytes_down = 10;
    });
    for (const PublishedClaim& one : dysharp_traffic_figure(whole_dysharp(), alike.lookup()).claims)
        EXPECT_FALSE(one.holds) << one.what;
}

TEST(DysharpFigures, IsTheWireMeasuredWithRowsAlone) {
    ByHand cells([](const CellKey& key, ReproducedCell& cell) {
        const bool rows = key.work == CellWork::communication;
        cell.time = 1000;
        cell.communication = rows ? 0 : 704;
        cell.busier_way = key.system == "dysharp-basic" ? 950 : 690;
    });
    const FigureResult result = dysharp_wire_figure(whole_dysharp(), cells.lookup());
    EXPECT_NEAR(number(result, "communication in deepep's layer").ours, 0.704, 1e-9);
    EXPECT_TRUE(result.claims[0].holds);
    EXPECT_EQ(result.claims[0].found, "dysharp-basic 95 %");
}

TEST(DysharpFigures, AreAblationsClaimsDecidedBothWays) {
    const auto make = [](double basic, double fusion, Bytes bytes) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const std::map<std::string, double> times{
                {"dysharp", 100},       {"dysharp-basic", basic}, {"fusion-only", fusion},
                {"dysharp-comet", 150}, {"comet", 180},           {"deepep", 230},
                {"steps-only", 230}};
            cell.time = static_cast<Ps>(times.at(key.system) * 1e6);
            cell.bytes_up = cell.bytes_down = key.system == "dysharp-basic" ? bytes : 1000;
        });
        return dysharp_ablation_figure(whole_dysharp(), cells.lookup());
    };
    const FigureResult paper = make(225, 185, 550);
    ASSERT_EQ(paper.claims.size(), 4u);
    for (const PublishedClaim& one : paper.claims) EXPECT_TRUE(one.holds) << one.what;
    EXPECT_EQ(paper.tables[0].rows.size(), 7u);
    const FigureResult other = make(90, 120, 900);
    for (const PublishedClaim& one : other.claims) EXPECT_FALSE(one.holds) << one.what;
}

TEST(DysharpFigures, DoesTheLeadGrowInEverySeries) {
    const auto make = [](double at_most) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            const double lead = 1 + 0.01 * std::min<double>(key.gpus, at_most);
            cell.time = static_cast<Ps>(key.system == "dysharp" ? 1e8 : lead * 1e8);
        });
        return dysharp_gpus_figure(whole_dysharp(), cells.lookup());
    };
    const FigureResult grows = make(1000);
    EXPECT_TRUE(grows.claims[0].holds);
    EXPECT_EQ(grows.claims[0].found,
              "S top-8: 4 1.04×, 8 1.08×, 16 1.16×, 32 1.32×, 64 1.64×; "
              "M top-8: 4 1.04×, 8 1.08×, 16 1.16×, 32 1.32×, 64 1.64×");
    EXPECT_FALSE(make(32).claims[0].holds) << "64 GPUs as 32";
}

TEST(DysharpFigures, IsASizeASweetSpotBetweenLessAndMore) {
    const auto make = [](double least, double most) {
        ByHand cells([=](const CellKey& key, ReproducedCell& cell) {
            EXPECT_EQ(key.grain, Grain::packet);
            const std::string& change = key.changes.back();
            cell.time = static_cast<Ps>(change == "dysharp.tlb_entries=64"     ? least
                                        : change == "dysharp.tlb_entries=2048" ? most
                                                                               : 1000);
        });
        return dysharp_tlb_figure(whole_dysharp(), cells.lookup());
    };
    const FigureResult spot = make(1100, 995);
    ASSERT_EQ(spot.claims.size(), 2u);
    EXPECT_TRUE(spot.claims[0].holds && spot.claims[1].holds);
    const FigureResult other = make(1000, 900);
    EXPECT_FALSE(other.claims[0].holds || other.claims[1].holds);
    EXPECT_EQ(spot.claims[0].found, "with 64 1.100 of the time with 512");
}

TEST(DysharpCells, AreThePapersConfigurations) {
    const DysharpScope scope = whole_dysharp();
    const auto keys = cells_asked([&](const Lookup& cell) {
        dysharp_layer_figure(scope, cell);
        dysharp_training_figure(scope, cell);
        dysharp_traffic_figure(scope, cell);
    });
    EXPECT_EQ(keys.size(), 11u * 8u) << "six baselines, dysharp and dualpipe; each once";
    for (const CellKey& key : keys) {
        const Model model = load_model(key.model);
        const bool quarter = key.model == "dysharp-l" && key.changes.front() != "model.top_k=8";
        EXPECT_EQ(key.tokens, std::int64_t{model.sequence} * 32 / (quarter ? 4 : 1)) << key.model;
        EXPECT_EQ(key.gpus, 32);
    }
    const auto layers = cells_asked([&](const Lookup& cell) { dysharp_layer_figure(scope, cell); });
    EXPECT_EQ(layers.size(), 11u * 7u);
    for (const CellKey& key : layers) EXPECT_EQ(key.work, CellWork::layer) << "nothing backward";
    const CellKey more = DysharpPoint{scope.usual, 64, "uniform"}.under(kDysharp, CellWork::layer);
    EXPECT_EQ(more.changes, (std::vector<std::string>{"model.top_k=8", "switches=18"}));
}

TEST(DysharpCells, AreFewWhereItIsQuick) {
    const DysharpScope scope = quick_dysharp();
    const auto keys = cells_asked([&](const Lookup& cell) {
        for (const auto make :
             {dysharp_layer_figure, dysharp_training_figure, dysharp_traffic_figure,
              dysharp_wire_figure, dysharp_ablation_figure, dysharp_gpus_figure,
              dysharp_sequence_figure, dysharp_deviation_figure, dysharp_skew_figure,
              dysharp_tlb_figure, dysharp_buffer_figure})
            make(scope, cell);
    });
    EXPECT_LE(keys.size(), 64u);
    for (const CellKey& key : keys) EXPECT_LE(key.tokens, 8192) << key.system;
}

TEST(DysharpCells, AreLayersUnderTheSameSoftware) {
    const CellKey key =
        DysharpPoint{{"", "dysharp-s", 64, 16, 4}, 32, "uniform"}.under("deepep", CellWork::layer);
    const ReproducedCell cell = simulate_cell(dysharp_setup(), key);
    const Machine machine = load_machine("gh200-nvl32", dysharp_readings().front().changes);
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

TEST(DysharpCells, HaveTrainingAndRowsAlone) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 4}, 4, "uniform"};
    const PaperSetup setup = dysharp_setup();
    const ReproducedCell layer = simulate_cell(setup, point.under("deepep", CellWork::layer));
    const ReproducedCell whole = simulate_cell(setup, point.under("deepep", CellWork::training));
    EXPECT_EQ(whole.time, layer.time);
    EXPECT_GT(whole.model_time, 32 * 2 * layer.time) << "32 layers, both ways";
    const ReproducedCell rows =
        simulate_cell(setup, point.under("deepep", CellWork::communication));
    EXPECT_LT(rows.time, layer.time);
}

TEST(DysharpCells, IsALayerFoundInTraining) {
    ReproducedCell cell{"a", 32, 64, "uniform", "dysharp", 5, 0, 9, ""};
    cell.reading = "one";
    cell.work = CellWork::training;
    const std::vector<ReproducedCell> cells{cell};
    CellKey key{"a", 32, 64, "uniform", "dysharp"};
    key.work = CellWork::layer;
    EXPECT_EQ(lookup_in(cells, "one")(key).time, 5);
    key.work = CellWork::communication;
    EXPECT_THROW(lookup_in(cells, "one")(key), std::logic_error);
}

TEST(DysharpCells, SixtyFourGpusAreOneNode) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 2}, 64, "uniform"};
    const ReproducedCell cell =
        simulate_cell(dysharp_setup(), point.under("deepep", CellWork::layer));
    EXPECT_EQ(cell.refusal, "");
    EXPECT_GT(cell.time, 0);
}

TEST(DysharpCells, IsASystemThatThereIsNotRefused) {
    const DysharpPoint point{{"", "dysharp-s", 64, 8, 2}, 4, "uniform"};
    const ReproducedCell cell =
        simulate_cell(dysharp_setup(), point.under("no-such-system", CellWork::layer));
    EXPECT_NE(cell.refusal.find("no-such-system"), std::string::npos) << cell.refusal;
}

TEST(DysharpRouting, IsADeviationOfWhatItIsSaidToBeOf) {
    const DysharpConfig config{"", "dysharp-s", 64, 8, 1};
    EXPECT_EQ(dysharp_routing(config, 0.032), "normal:0.0005") << "of 1/64";
    EXPECT_EQ(dysharp_routing(config, 0.032, DeviationOf::tokens), "normal:0.004") << "of 8/64";
    EXPECT_EQ(dysharp_routing(config, 0.032, DeviationOf::choices), "normal:0.032");
    for (const DysharpConfig& one : whole_dysharp().configs)
        EXPECT_EQ(load_model(one.model).experts, one.experts) << one.name;
}

TEST(BusierWay, CountsOneDirectionAtATimeOfTheBusiestGpu) {
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

/// Digits that are not part of a name such as GEMM-1.
bool has_number(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
            (i == 0 || std::string_view(" (.,×").find(text[i - 1]) != std::string_view::npos))
            return true;
    return false;
}

TEST(DysharpReasons, HoldNoFigureThatWasMeasured) {
    ByHand cells = with_times({});
    for (const auto make : {dysharp_layer_figure, dysharp_training_figure, dysharp_wire_figure}) {
        const FigureResult result = make(whole_dysharp(), cells.lookup());
        for (const PublishedNumber& one : result.numbers)
            for (const Side side : {Side::above, Side::below})
                EXPECT_FALSE(has_number(dysharp_reason(one.figure, one.what, side))) << one.what;
    }
    EXPECT_EQ(dysharp_reason("layer", "something else", Side::above), kNoExplanation);
    EXPECT_NE(dysharp_reason("layer", "over comet", Side::below), kNoExplanation);
    EXPECT_EQ(dysharp_reason("layer", "over comet", Side::above), kNoExplanation);
}

/// The cells of a Markdown row.
std::vector<std::string> cells_of_line(const std::string& line) {
    std::vector<std::string> cells;
    std::size_t from = line.find("| ");
    while (from != std::string::npos) {
        const std::size_t to = line.find(" |", from + 1);
        if (to == std::string::npos) break;
        cells.push_back(line.substr(from + 2, to - from - 2));
        from = line.find("| ", to);
    }
    return cells;
}

TEST(DysharpPage, ExplainsWhatIsOffByMoreThanAFewParts) {
    std::ifstream page(MOEHUB_SOURCE_DIR "/docs/reproduction/dysharp.md");
    if (!page) GTEST_SKIP() << "no page: moehub reproduce dysharp writes it";
    std::vector<std::string> off;
    std::string unexplained;
    int numbers = 0;
    for (std::string line; std::getline(page, line);) {
        if (line.find(kNoExplanation) != std::string::npos) unexplained = line;
        const std::vector<std::string> cells = cells_of_line(line);
        if (cells.size() < 6 || (cells[5] != "yes" && cells[5] != "**no**")) continue;
        ++numbers;
        const double ratio = std::stod(cells[4]);
        if (ratio < 0.85 || ratio > 1.15) off.push_back(cells[0] + ", " + cells[1]);
    }
    EXPECT_EQ(numbers, 12 + 14 + 1 + 1);
    // Names end in "." or ";": "over comet" is not "over comet, largest".
    for (const std::string& one : off)
        for (const char* end : {".", ";"})
            EXPECT_EQ(unexplained.find(one + end), std::string::npos) << one;
}

TEST(DysharpPage, SaysThatMeansAreGeometric) {
    Reproduction all;
    all.paper = "dysharp";
    all.means = Means::geometric;
    all.numbers = {{"layer", "over comet", NumberKind::ratio, 1.78, 1.8, 1.8, ""}};
    const std::string page = reproduction_page(all);
    EXPECT_NE(page.find("Means are geometric means"), std::string::npos);
    EXPECT_EQ(page.find("geometric mean |"), std::string::npos) << "no column beside";
    EXPECT_NE(page.find("| layer | over comet | 1.780 | 1.800 | 1.01 | yes |\n"),
              std::string::npos);
    const auto json = nlohmann::json::parse(reproduction_json(all).dump(2));
    EXPECT_EQ(json["numbers"][0]["geometric_mean"], 1.8);
}

TEST(DysharpPage, LeavesOutWhatAReadingDidNotRun) {
    Reproduction all;
    all.readings = {{"a", "A.", {}}, {"b", "B.", {}}};
    all.numbers = {{"layer", "over comet", NumberKind::ratio, 1.78, 1.8, 1.8, ""},
                   {"training", "over comet", NumberKind::ratio, 1.59, 1.6, 1.6, ""}};
    all.numbers[0].otherwise = {1.2};
    EXPECT_EQ(explained_by(all, 0).numbers, 2u);
    EXPECT_EQ(explained_by(all, 1).of, 1u);
    EXPECT_EQ(explained_by(all, 0).alone, std::vector<std::string>{"layer, over comet"});
    const std::string page = reproduction_page(all);
    EXPECT_NE(
        page.find("| training | over comet | 1.590 | 1.600 | 1.01 | yes | 1.600 | – | – | – |"),
        std::string::npos)
        << page;
    EXPECT_NE(page.find("| b | B. | none | 0 of 1 | – |"), std::string::npos) << page;
    EXPECT_NE(
        reproduction_text(all, {}).find("training  over comet  1.590  1.600        1.01      –"),
        std::string::npos)
        << reproduction_text(all, {});
}

TEST(DysharpJson, HasWhatTellsCellsApart) {
    Reproduction all;
    all.cells = {ReproducedCell{"a", 32, 64, "uniform", "dysharp", 1'000'000, 0, 0, ""}};
    all.cells[0].work = CellWork::communication;
    all.cells[0].changes = {"dysharp.tlb_entries=64"};
    all.cells[0].grain = Grain::packet;
    all.cells[0].bytes_up = 7;
    const auto json = nlohmann::json::parse(reproduction_json(all).dump(2))["cells"][0];
    EXPECT_EQ(json["work"], "communication");
    EXPECT_EQ(json["changes"][0], "dysharp.tlb_entries=64");
    EXPECT_EQ(json["grain"], "packet");
    EXPECT_EQ(json["traffic_bytes"]["up"], 7);
}

TEST(Reproduce, IsAnUnknownFigureOfDysharpRefused) {
    ReproduceOptions options;
    options.figure = "leyer";
    EXPECT_THROW(reproduce_dysharp(options), InputError);
}

}  // namespace
}  // namespace moehub
