/// How far is row grain from packet grain? Random machines, models, routings and systems, each
/// simulated in both:
///
///     moehub_grain_study [RUNS]     300 runs, half a minute
///
/// prints the distribution of |row / packet − 1| of a layer's time by system, and the worst runs
/// with the settings that give them again.
#include "base/rng.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace {

using namespace moehub;

constexpr double kMostBytes = 24e6;  ///< of rows: packet grain takes some tenths of a second
constexpr std::size_t kShown = 15;

struct Sized {
    const char* machine;
    std::vector<int> gpus;
};
const std::vector<Sized> kMachines = {
    {"dgx-h100", {2, 4, 8}},    {"dgx-h800", {2, 4, 8}},          {"dgx-b200", {4, 8}},
    {"gb200-nvl72", {4, 16}},   {"gh200-nvl32", {8, 16}},         {"h100-cluster", {16}},
    {"h800-cluster", {16, 24}}, {"ascend-910b-cluster", {8, 16}}, {"single-switch", {3, 8}}};

class Draw {
  public:
    explicit Draw(std::uint64_t seed) : rng_(seed) {}
    int below(int many) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(many))); }
    template <class Item>
    const Item& of(const std::vector<Item>& items) {
        return items[rng_.below(items.size())];
    }
    /// Small values as often as large ones.
    int between(double least, double most) {
        return static_cast<int>(least * std::exp(rng_.uniform() * std::log(most / least)));
    }

  private:
    Rng rng_;
};

Overrides settings(Draw& draw) {
    const Overrides all = {fmt::format("link.bandwidth={} GB/s", draw.between(50, 1800)),
                           fmt::format("link.latency={} ns", draw.between(50, 2000)),
                           fmt::format("link.buffer_flits={}", draw.between(16, 2048)),
                           fmt::format("link.payload={} B", 64 << draw.below(3)),
                           fmt::format("link.request_channels={}", 1 + draw.below(31)),
                           fmt::format("hub.read_latency={} ns", draw.between(100, 2000)),
                           fmt::format("moe_hub.store_bytes={} B", 32 << draw.below(3)),
                           fmt::format("moe_hub.rpm_entries={}", 1 << draw.below(8)),
                           fmt::format("moe_hub.rat_entries={}", 16 << draw.below(11)),
                           fmt::format("collective.outstanding_loads={}", draw.between(64, 16000)),
                           fmt::format("switch.sum_packets={}", draw.between(8, 4096)),
                           fmt::format("gpu.bf16_flops={} TFLOP/s", draw.between(50, 3000))};
    Overrides some;
    for (const std::string& one : all)
        if (draw.below(4) == 0) some.push_back(one);
    return some;
}

Model random_model(Draw& draw, int gpus) {
    Model model;
    model.name = "random";
    model.layers = 1;
    model.hidden = 256 * (1 + draw.below(24));
    model.experts = gpus << draw.below(4);
    model.top_k = std::min(model.experts, 1 << draw.below(4));
    model.expert_ffn = 256 * (1 + draw.below(16));
    model.gated = draw.below(2) == 0;
    return model;
}

struct Run {
    std::string system;
    double error = 0;  ///< row / packet − 1
    std::string what;
};

/// Nothing where the settings or the system are refused.
std::optional<Run> run(std::uint64_t seed) {
    Draw draw(seed);
    const Sized& sized = draw.of(kMachines);
    const int gpus = draw.of(sized.gpus);
    const Overrides set = settings(draw);
    const Model model = random_model(draw, gpus);
    const double most = kMostBytes / (2.0 * model.hidden * model.top_k);
    const std::int64_t tokens = std::max(gpus, std::min(draw.between(32, 8192), int(most)));
    const std::string routing =
        draw.of(std::vector<std::string>{"uniform", "zipf:0.8", "normal:0.02", "balanced"});
    const std::string system = draw.of(preset_names("systems"));
    try {
        const LayerInput input{with_gpus(load_machine(sized.machine, set), gpus), model,
                               make_routing(parse_routing(routing), model, tokens),
                               contiguous_placement(model.experts, gpus)};
        LayerOptions options;
        options.grain = Grain::packet;
        const auto packet = static_cast<double>(simulate_layer(input, system, options).time);
        options.grain = Grain::row;
        const auto row = static_cast<double>(simulate_layer(input, system, options).time);
        return Run{system, row / packet - 1,
                   fmt::format("{} on {} of {}, {} tokens of {}, top-{} of {}, FFN {}, {}: {}",
                               system, gpus, sized.machine, tokens, model.hidden, model.top_k,
                               model.experts, model.expert_ffn, routing, fmt::join(set, "; "))};
    } catch (const InputError&) {
        return std::nullopt;
    }
}

void print_spread(const std::string& name, std::vector<double> errors) {
    std::sort(errors.begin(), errors.end());
    const auto at = [&](double share) {
        return 100 * errors[static_cast<std::size_t>(share * double(errors.size() - 1))];
    };
    const auto within = std::upper_bound(errors.begin(), errors.end(), 0.05) - errors.begin();
    fmt::print(
        "{:<12} {:>5} runs  median {:5.2f}  p95 {:5.2f}  p99 {:5.2f}  max {:5.2f} %  "
        "within 5 %: {:.1f} %\n",
        name, errors.size(), at(0.5), at(0.95), at(0.99), at(1),
        100.0 * double(within) / double(errors.size()));
}

}  // namespace

int main(int count, char** arguments) {
    const int wanted = count > 1 ? std::atoi(arguments[1]) : 300;
    std::vector<Run> runs;
    for (std::uint64_t seed = 1; static_cast<int>(runs.size()) < wanted; ++seed)
        if (std::optional<Run> one = run(seed)) runs.push_back(std::move(*one));
    std::map<std::string, std::vector<double>> by_system;
    for (const Run& one : runs) {
        by_system["all"].push_back(std::abs(one.error));
        by_system[one.system].push_back(std::abs(one.error));
    }
    for (const auto& [name, errors] : by_system) print_spread(name, errors);
    std::sort(runs.begin(), runs.end(),
              [](const Run& a, const Run& b) { return std::abs(a.error) > std::abs(b.error); });
    for (std::size_t i = 0; i < std::min(kShown, runs.size()); ++i)
        fmt::print("{:+.1f} %  {}\n", 100 * runs[i].error, runs[i].what);
}
