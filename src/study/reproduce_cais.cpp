// Sub-layers and whole models against nine baselines:
//
//     lead of a cell = time of the baseline / time of CAIS,
//
// and published are the geometric mean and the largest of the leads, and CAIS over CAIS-Base. More
// GPUs with a model that grows with them, the paper's full scale, and what it does not run: few
// tokens, and larger machines as they are.
#include "study/reproduce_cais.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr int kUnlimited = 100'000;  ///< entries of a port, more than any sub-layer needs

Leads nine_baselines(Ps ReproducedCell::*time) {
    return {"cais",
            {"tp-nvls", "sp-nvls", "coconet", "fuselib", "t3", "coconet-nvls", "fuselib-nvls",
             "t3-nvls", "ladm", "cais-base"},
            time};
}

/// CAIS against who matters where the paper does not run anything.
Leads few_leads() {
    return {"cais", {"cais-uncoordinated", "cais-base", "tp-nvls"}};
}

/// Baselines from the one that CAIS leads least, and how many pairs that the paper tells apart
/// stand as there. CAIS-Base, of which it has no largest lead, is none.
PublishedClaim same_order(const Publication& paper, const FigureTable& table,
                          std::string_view what) {
    constexpr double kAlike = 0.021;  ///< published leads this close have no order
    struct Baseline {
        double ours;
        double published;
        std::string name;
    };
    std::vector<Baseline> order;
    for (std::size_t i = 1; i < table.columns.size(); ++i) {
        const std::string& over = table.columns[i].title;
        if (paper.find(table.figure, over + ", largest"))
            order.push_back({geometric_mean_of(column_of(table, i)).value_or(0),
                             paper.find(table.figure, over)->value.value_or(0),
                             over.substr(over.find(' ') + 1)});
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.ours < b.ours; });
    int pairs = 0;
    int alike = 0;
    std::vector<std::string> names;
    for (std::size_t a = 0; a < order.size(); ++a) {
        names.push_back(order[a].name);
        for (std::size_t b = a + 1; b < order.size(); ++b) {
            const double apart = order[b].published - order[a].published;
            if (apart > -kAlike && apart < kAlike) continue;
            ++pairs;
            if (apart > 0) ++alike;
        }
    }
    return paper.claim(
        table.figure, what, pairs > 0 && alike == pairs,
        fmt::format("{} of {} pairs; fastest first: {}", alike, pairs, fmt::join(names, ", ")));
}

/// A figure whose leads are published, over models or their sub-layers.
LeadsFigure published_figure(const char* name, std::string title, std::vector<std::string> labels,
                             Ps ReproducedCell::*time) {
    return {.name = name,
            .title = std::move(title),
            .labels = std::move(labels),
            .leads = nine_baselines(time),
            .rows = {},
            .claims = {{always_ahead, "ahead of every baseline in every cell"},
                       {same_order, "the baselines' order"}},
            .means = true};
}

/// Exposed communication of tp-nvls over the compute of ideal, which has the same GEMMs and a norm
/// that no GPU repeats; all sub-layers together.
PublishedNumber communication_over_compute(const CaisScope& scope, const Lookup& cell) {
    double communication = 0;
    double compute = 0;
    for (const std::string& part : scope.parts) {
        communication +=
            static_cast<double>(cell(cais_cell(scope.usual, part, "tp-nvls")).communication);
        compute += static_cast<double>(cell(cais_cell(scope.usual, part, "ideal")).compute);
    }
    return cais_paper().number("sub-layer",
                               "tp-nvls's exposed communication over ideal's compute, LLaMA-7B",
                               compute > 0 ? communication / compute : 0);
}

FigureResult sub_layer_figure(const CaisScope& scope, const Lookup& cell) {
    LeadsFigure figure =
        published_figure("sub-layer", "One sub-layer: time of the baseline / cais's",
                         {"model", "sub-layer"}, &ReproducedCell::time);
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts)
            figure.rows.push_back({{model.name, part}, cais_cell(model, part)});
    FigureResult result = make_leads(cais_paper(), figure, cell);
    result.numbers.push_back(communication_over_compute(scope, cell));
    return result;
}

PaperFigure models_figure(const CaisScope& scope, LeadsFigure figure) {
    for (const CaisModel& model : scope.models) {
        CellKey key{model.model, kCaisGpus, model.tokens, "", ""};
        key.work = CellWork::training;  // the forward pass is in it, too
        figure.rows.push_back({{model.name}, key});
    }
    return figure_of(cais_paper(), std::move(figure));
}

/// Changes that make LLaMA-7B `scale` times as wide.
std::vector<std::string> wider(int scale) {
    return {fmt::format("model.hidden={}", 4096 * scale),
            fmt::format("model.dense_ffn={}", 11264 * scale),
            fmt::format("model.attention.heads={}", 32 * scale),
            fmt::format("model.attention.kv_heads={}", 32 * scale)};
}

/// The sub-layers of a sweep, one after the other.
Ps time_of(const CaisScope& scope, std::string_view system, const Lookup& cell, int gpus,
           const std::vector<std::string>& changes) {
    Ps sum = 0;
    for (const std::string& part : scope.few_parts) {
        CellKey key = cais_cell(scope.usual, part, system);
        key.gpus = gpus;
        key.changes = changes;
        sum += cell(key).time;
    }
    return sum;
}

/// With `scale` times the GPUs the model's work is scale² times as much: throughput of a GPU is
/// scale · time before / time after.
FigureResult scaling_figure(const CaisScope& scope, const Lookup& cell) {
    constexpr double kLeast = 0.95;  ///< share of the throughput per GPU that is left
    const int fewest = scope.gpus.front();
    FigureTable table{"scaling",
                      fmt::format("{}, as many times as wide as there are GPUs more: throughput "
                                  "of a GPU, of that with {}",
                                  scope.usual.name, fewest),
                      {"GPUs", "hidden"},
                      {{"cais µs", NumberKind::time}, {"cais"}, {"tp-nvls"}}};
    bool holds = true;
    std::vector<std::string> found;
    for (const int gpus : scope.gpus) {
        const int scale = gpus / kCaisGpus;
        const auto at = [&](std::string_view system, int on) {
            return time_of(scope, system, cell, on, wider(on / kCaisGpus));
        };
        const auto of_first = [&](std::string_view system) -> std::optional<double> {
            const std::optional<double> ratio = faster(at(system, fewest), at(system, gpus));
            return ratio ? std::optional(*ratio * scale) : std::nullopt;
        };
        const std::optional<double> own = of_first("cais");
        table.rows.push_back({{std::to_string(gpus), std::to_string(4096 * scale)},
                              {to_us(at("cais", gpus)), own, of_first("tp-nvls")}});
        holds = holds && own.value_or(0) > kLeast;
        found.push_back(fmt::format("{} {:.3f}", gpus, own.value_or(0)));
    }
    return {
        {},
        {cais_paper().claim("scaling", "throughput of a GPU falls by less than 5 % up to 32 GPUs",
                            holds, fmt::format("{}", fmt::join(found, ", ")))},
        {std::move(table)}};
}

/// The figure is made by the first reading: full scale has twice its SMs.
FigureResult full_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{
        "full",
        fmt::format("{} at half and at full scale: time of tp-nvls / cais's", scope.usual.name),
        {"scale"},
        {{"cais µs", NumberKind::time}, {"over tp-nvls"}}};
    FigureResult result;
    const auto add = [&](const char* scale, const std::vector<std::string>& changes) {
        const Ps own = time_of(scope, "cais", cell, kCaisGpus, changes);
        const std::optional<double> lead =
            faster(time_of(scope, "tp-nvls", cell, kCaisGpus, changes), own);
        table.rows.push_back({{scale}, {to_us(own), lead}});
        result.numbers.push_back(cais_paper().number(
            "full", fmt::format("over tp-nvls, {} scale", scale), lead.value_or(0)));
    };
    std::vector<std::string> full = wider(2);
    full.insert(full.end(), {"gpu.sms=132", "gpu.bf16_flops=3957.6 TFLOP/s"});
    add("half", {});
    add("full", full);
    result.tables.push_back(std::move(table));
    return result;
}

std::vector<LeadsRow> decode_rows(const CaisScope& scope) {
    std::vector<LeadsRow> rows;
    for (const std::string& part : scope.few_parts)
        for (const std::int64_t tokens : scope.decode)
            rows.push_back({{part, std::to_string(tokens)},
                            cais_cell({scope.usual.name, scope.usual.model, tokens}, part)});
    return rows;
}

std::vector<LeadsRow> machine_rows(const CaisScope& scope) {
    std::vector<LeadsRow> rows;
    for (const CaisMachine& machine : scope.machines)
        for (const std::string& part : scope.few_parts) {
            CellKey key = cais_cell(scope.usual, part);
            key.gpus = machine.gpus;
            key.machine = machine.machine;
            key.changes = wider(2);
            rows.push_back({{machine.machine, part, std::to_string(machine.gpus)}, key});
        }
    return rows;
}

CaisScope whole_cais() {
    constexpr std::int64_t kGiB = std::int64_t{1} << 30;
    const CaisModel usual{"LLaMA-7B", "llama-7b", 9216};
    return {.models = {{"Mega-GPT-4B", "mega-gpt-4b", 16384},
                       {"Mega-GPT-8B", "mega-gpt-8b", 12288},
                       usual},
            .usual = usual,
            .parts = {"L1", "L2", "L3", "L4"},
            .few_parts = {"L1", "L2"},
            .merge_entries = {40, 80, 160, kCaisMergeEntries, 640, 1280, 2560, kUnlimited},
            .gpus = {8, 16, 32},
            .all_reduce = {kGiB, 2 * kGiB, 4 * kGiB, 8 * kGiB, 16 * kGiB},
            .decode = {8, 32, 128, 512},
            .machines = {{"gh200-nvl32", 16}, {"gh200-nvl32", 32}, {"gb200-nvl72", 72}}};
}

CaisScope quick_cais() {
    const CaisModel usual{"LLaMA-7B", "llama-7b", 1024};
    return {.models = {usual},
            .usual = usual,
            .parts = {"L1"},
            .few_parts = {"L1"},
            .merge_entries = {40, kCaisMergeEntries, kUnlimited},
            .gpus = {8, 16},
            .all_reduce = {1 << 26},
            .decode = {8, 128},
            .machines = {{"gh200-nvl32", 16}}};
}

}  // namespace

const Publication& cais_paper() {
    return publication("cais");
}

CellKey cais_cell(const CaisModel& model, std::string_view part, std::string_view system) {
    CellKey key{model.model, kCaisGpus, model.tokens, "", std::string(system)};
    key.work = CellWork::sub_layer;
    key.part = part;
    return key;
}

/// One parameter set for every figure; 32 GPUs are still one node.
PaperOfCells cais_cells(bool quick) {
    const Publication& paper = cais_paper();
    const CaisScope scope = quick ? quick_cais() : whole_cais();
    PaperSetup setup = setup_of(paper);
    setup.eager = false;
    setup.residual = false;
    return {
        paper,
        setup,
        {figure_of("sub-layer", sub_layer_figure, scope),
         models_figure(scope,
                       published_figure("inference",
                                        "The whole model, forward: time of the baseline / cais's",
                                        {"model"}, &ReproducedCell::forward_time)),
         models_figure(scope, published_figure("training",
                                               "The whole model, forward and backward: time of "
                                               "the baseline / cais's",
                                               {"model"}, &ReproducedCell::model_time)),
         figure_of("table", cais_table, scope), figure_of("utilisation", cais_utilisation, scope),
         figure_of("scaling", scaling_figure, scope), figure_of("full", full_figure, scope, false),
         figure_of("nvls", cais_nvls, scope, false),
         figure_of(paper, {.name = "decode",
                           .title = fmt::format("{}, few tokens: cais's time, and others' over it",
                                                scope.usual.name),
                           .labels = {"sub-layer", "tokens"},
                           .leads = few_leads(),
                           .rows = decode_rows(scope)}),
         figure_of(paper,
                   {.name = "gpus",
                    .title = fmt::format("{} at full scale on machines as they are: others' "
                                         "time over cais's",
                                         scope.usual.name),
                    .labels = {"machine", "sub-layer", "GPUs"},
                    .leads = few_leads(),
                    .rows = machine_rows(scope)},
                   false)}};
}

}  // namespace moehub
