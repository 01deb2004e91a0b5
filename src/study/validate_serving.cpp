#include "base/input_error.hpp"
#include "study/validate_kinds.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// Where a card's workers run: one node where they fit in it.
struct CardMachines {
    std::string_view gpu;
    std::string_view node;
    int gpus = 8;  ///< GPUs in a node
    std::string_view cluster;
};
constexpr CardMachines kMachines[] = {
    {"h100-sxm", "dgx-h100", 8, "h100-cluster"},
    {"h200-sxm", "dgx-h200", 8, "h200-cluster"},
    {"b200", "dgx-b200", 8, "dgx-b200"},
    {"gb200", "gb200-nvl72", 72, "gb200-nvl72"},
};

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
    throw input_error("number format {}, known: bf16, fp8, fp8_block, nvfp4, int4_wo", name);
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

/// GPUs of a deployment that reads prompts elsewhere, counted together: heads do not divide.
bool several_workers(const ServingLayout& layout, const Model& model) {
    return model.attention.heads % layout.attention_tp != 0;
}

/// The layout, changed where it cannot share the model as it stands.
ServingLayout possible(ServingLayout layout, const Model& model) {
    constexpr int kNarrowest = 128;
    const int gpus = layout.gpus();
    if (several_workers(layout, model)) {
        layout.attention_dp = gpus;
        layout.attention_tp = 1;
    }
    if (model.experts == 0) return layout;
    if (layout.moe_tp * layout.moe_ep != gpus) {
        layout.moe_tp = layout.attention_dp > 1 ? 1 : gpus;
        layout.moe_ep = gpus / layout.moe_tp;
    }
    if (model.expert_ffn / layout.moe_tp < kNarrowest || model.expert_ffn % layout.moe_tp != 0) {
        layout.moe_tp = 1;
        layout.moe_ep = gpus;
    }
    return layout;
}

/// Seconds in which HBM at its peak gives the weights that a step needs, and the cache.
double least_seconds(const ServingClock& clock, const ServingRow& row) {
    const ServingCase& what = clock.what();
    const ServingMemory memory = serving_memory(what);
    const double requests = static_cast<double>(row.load.requests) / what.layout.attention_dp;
    const double context =
        static_cast<double>(row.load.input) + static_cast<double>(row.load.output) / 2;
    double unread = 0;  // share of experts that no token chose
    if (what.model.experts > 0) {
        unread = 1;
        const double chance = static_cast<double>(what.model.top_k) / what.model.experts;
        for (std::int64_t i = 0; i < row.load.requests; ++i) unread *= 1 - chance;
    }
    const double bytes = memory.weights - unread * memory.experts - memory.ends / 2 +
                         requests * (context * memory.cache_per_token + memory.window_cache);
    return bytes / what.machine.gpu.hbm_bandwidth;
}

}  // namespace

ServingRow parse_serving(const CsvRow& row) {
    constexpr std::int64_t kMost = 1'000'000;
    const auto count = [&](std::string_view column) {
        return row.field(column).empty() ? 1 : std::max(1, whole(row, column, 0, 65535));
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
    parsed.measurement = {fmt::format("{} {} {} {}", parsed.engine, parsed.model, parsed.gpu, mode),
                          {},
                          value_in(row, "tpot_ms") * 1000,
                          "us",
                          parsed.gpu};
    return parsed;
}

EngineSpec& ServingBench::engine(const std::string& name) {
    return remembered(engines_, name, [&] { return load_engine(name); });
}

const Machine& ServingBench::machine(const std::string& gpu, int gpus) {
    const std::string name = machine_name(gpu, gpus);
    return remembered(machines_, name, [&] { return load_machine(name, settings_); });
}

ServingCase ServingBench::serving_case(const ServingRow& row) {
    ServingCase what;
    what.model = remembered(models_, row.model, [&] { return load_model(row.model); });
    what.layout = possible(row.layout, what.model);
    what.machine = machine(row.gpu, what.layout.gpus());
    what.engine = engine(row.engine);
    what.formats =
        engine_formats(what.engine, what.model, what.machine.gpu, weights_named(row.weights));
    return what;
}

ServingClock ServingBench::clock(ServingCase what) {
    std::shared_ptr<ServingCosts>& costs = costs_[what.machine.name];
    ServingClock clock(std::move(what), costs);
    costs = clock.costs();
    return clock;
}

ServingTpot predicted_tpot(const ServingClock& clock, const ServingRow& row) {
    RequestLoad load = row.load;
    if (several_workers(row.layout, clock.what().model)) load.prefills = false;
    const double measured = row.measurement.value * 1e-6;
    const double plain = request_times(clock, load).tpot;
    const bool guesses = clock.what().model.mtp_layers > 0;
    if (!guesses && measured < least_seconds(clock, row)) return {0, false};
    if (!guesses || measured >= kSpeculative * plain) return {plain, false};
    load.drafts = kDrafts;
    load.accepted = kAccepted;
    return {request_times(clock, load).tpot, true};
}

Cases serving_cases(const CsvRow& row) {
    const ServingRow what = parse_serving(row);
    return {{what.measurement, [what](const PredictContext& context) -> Prediction {
                 ServingBench& bench = *context.serving;
                 const ServingTpot tpot =
                     predicted_tpot(bench.clock(bench.serving_case(what)), what);
                 if (tpot.seconds == 0)
                     return skip("measured faster than HBM gives its weights and cache");
                 return {tpot.seconds * 1e6};
             }}};
}

}  // namespace moehub
