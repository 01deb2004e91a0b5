#include "study/validate_serving.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <array>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Where a card's workers run: one node where they fit in it.
struct CardMachines {
    std::string_view gpu;
    std::string_view node;
    int gpus = 8;  ///< in it
    std::string_view cluster;
};
constexpr std::array<CardMachines, 4> kMachines = {{
    {"h100-sxm", "dgx-h100", 8, "h100-cluster"},
    {"h200-sxm", "dgx-h200", 8, "h200-cluster"},
    {"b200", "dgx-b200", 8, "dgx-b200"},
    {"gb200", "gb200-nvl72", 72, "gb200-nvl72"},
}};

std::string machine_name(const std::string& gpu, int gpus) {
    for (const CardMachines& one : kMachines)
        if (one.gpu == gpu) return std::string(gpus <= one.gpus ? one.node : one.cluster);
    throw InputError("no machine with such a card is known");
}

NumberFormat weights_named(const std::string& name) {
    if (name.empty() || name == "bf16") return NumberFormat::bf16;
    if (name == "fp8") return NumberFormat::fp8;
    if (name == "fp8_block") return NumberFormat::fp8_block;
    if (name == "nvfp4") return NumberFormat::nvfp4;
    if (name == "int4_wo") return NumberFormat::w4a16;
    throw InputError(
        fmt::format("number format {}, known: bf16, fp8, fp8_block, nvfp4, int4_wo", name));
}

int whole_root(int square) {
    int root = 1;
    while (root * root < square) ++root;
    return root * root == square ? root : 0;
}

/// The worker has n GPUs where both ways of counting give n².
void mend_squared(ServingRow& row) {
    ServingLayout& layout = row.layout;
    const int n = whole_root(layout.gpus());
    const bool squared = n > 1 && layout.moe_tp * layout.moe_ep == n * n;
    if (squared && layout.moe_tp == n) {
        layout.attention_tp = layout.attention_dp == 1 ? n : 1;
        layout.attention_dp = layout.attention_dp == 1 ? 1 : n;
    } else if (squared && layout.attention_tp == n) {
        layout.attention_dp = 1;
    } else {
        return;
    }
    layout.moe_tp = 1;
    layout.moe_ep = n;
}

/// What cannot be shared as it stands.
void mend_impossible(ServingLayout& layout, const Model& model) {
    const int gpus = layout.gpus();
    if (model.attention.heads % layout.attention_tp != 0) {
        layout.attention_dp = gpus;
        layout.attention_tp = 1;
    }
    constexpr int kNarrowest = 128;
    if (model.experts == 0) return;
    if (layout.moe_tp * layout.moe_ep != gpus) {
        layout.moe_tp = layout.attention_dp > 1 ? 1 : gpus;
        layout.moe_ep = gpus / layout.moe_tp;
    }
    if (model.expert_ffn / layout.moe_tp < kNarrowest || model.expert_ffn % layout.moe_tp != 0) {
        layout.moe_tp = 1;
        layout.moe_ep = gpus;
    }
}

}  // namespace

std::vector<ServingRow> parse_serving(const CsvRow& row) {
    constexpr std::int64_t kMost = 1'000'000;
    const auto count = [&](std::string_view column) {
        return row.field(column).empty()
                   ? 1
                   : static_cast<int>(std::max<std::int64_t>(1, row.integer(column, 0, 65535)));
    };
    ServingRow parsed;
    parsed.engine = row.text("engine");
    parsed.model = row.text("model");
    parsed.gpu = row.text("gpu");
    parsed.weights = row.field("experts").empty() ? row.field("gemm") : row.field("experts");
    parsed.layout = {count("tp"), count("attention_dp"), count("moe_tp"), count("moe_ep")};
    const std::string mode = row.text("mode");
    if (mode != "decode" && mode != "mixed") row.reject("mode", "decode, mixed");
    parsed.load.input = row.integer("input", 1, kMost);
    parsed.load.output = row.integer("output", 1, kMost);
    parsed.load.requests =
        row.integer("requests_per_worker", 1, kMost) * parsed.layout.attention_dp;
    parsed.load.prefills = mode == "mixed";
    mend_squared(parsed);
    Measurement& measurement = parsed.measurement;
    measurement.name = fmt::format("{} {} {} {}", parsed.engine, parsed.model, parsed.gpu, mode);
    for (const auto* column : {"engine", "model", "gpu", "experts", "mode", "input", "output",
                               "requests_per_worker", "tp", "attention_dp", "moe_tp", "moe_ep"})
        measurement.shape.emplace_back(column, row.field(column));
    measurement.value = row.positive("tpot_ms") * 1000;
    measurement.unit = "us";
    measurement.card = parsed.gpu;
    return {parsed};
}

EngineSpec& ServingBench::engine(const std::string& name) {
    const auto known = engines_.find(name);
    return known != engines_.end() ? known->second : engines_[name] = load_engine(name);
}

const Machine& ServingBench::machine(const std::string& gpu, int gpus) {
    const std::string name = machine_name(gpu, gpus);
    const auto known = machines_.find(name);
    return known != machines_.end() ? known->second : machines_[name] = load_machine(name);
}

ServingCase ServingBench::serving_case(const ServingRow& row) {
    const auto known = models_.find(row.model);
    ServingCase what;
    what.model =
        known != models_.end() ? known->second : models_[row.model] = load_model(row.model);
    what.layout = row.layout;
    mend_impossible(what.layout, what.model);
    what.machine = machine(row.gpu, what.layout.gpus());
    what.engine = engine(row.engine);
    what.formats = checkpoint_formats(what.model, what.machine.gpu, weights_named(row.weights));
    return what;
}

ServingClock ServingBench::clock(ServingCase what) {
    std::shared_ptr<ServingCosts>& costs = costs_[what.machine.name];
    ServingClock clock(std::move(what), costs);
    costs = clock.costs();
    return clock;
}

double predicted_tpot(const ServingClock& clock, const ServingRow& row) {
    const double plain = request_times(clock, row.load).tpot;
    const bool speculative =
        clock.what().model.mtp_layers > 0 && row.measurement.value * 1e-6 < kSpeculative * plain;
    if (!speculative) return plain;
    RequestLoad load = row.load;
    load.drafts = kDrafts;
    load.accepted = kAccepted;
    return request_times(clock, load).tpot;
}

Prediction predict_serving(const ServingRow& row, const PredictContext& context) {
    try {
        ServingBench& bench = *context.serving;
        return {predicted_tpot(bench.clock(bench.serving_case(row)), row) * 1e6, {}};
    } catch (const InputError& error) {
        return {std::nullopt, error.what()};
    }
}

}  // namespace moehub
