// What a layer's communication costs that nothing in it hides:
//
//     exposed = time of the layer under the system − time of the layer with every row in place
//
// both with the same kernels around (a CUDA graph, activations fused), so that what remains are
// rows on their way, passes over them, waits. Rows grow in proportion to tokens, and so does time
// but for a start: time = a + b · tokens, from two simulated counts.
#include "base/input_error.hpp"
#include "plan/layer_work.hpp"
#include "plan/simulated.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <utility>

namespace moehub {
namespace {

constexpr std::int64_t kTableTokens = 4096;   // tokens of a GPU
constexpr std::int64_t kTableRows = 1 << 18;  // rows of all GPUs
constexpr std::int64_t kExactRows = 1 << 19;
constexpr std::int64_t kLargeRows = 1 << 17;  // rows of large groups, which cross many wires
constexpr int kLargeGroup = 64;               // GPUs; of larger ones less is simulated
constexpr int kSomeExperts = 16;              // experts of a GPU
constexpr std::int64_t kLeastTokens = 16;
constexpr std::int64_t kFewerTimes = 4;

LayerInput input_of(const Machine& machine, const Model& model, const RoutingSpec& routing,
                    const MoeCase& one) {
    const int gpus = one.ep * one.etp;
    return {.machine = machine_of(machine, shape_of(machine, {gpus, 1})),
            .model = model,
            .routing = make_routing(routing, model, one.tokens * gpus),
            .placement = contiguous_placement(model.experts, one.ep)};
}

SystemSpec system_of(const std::string& name, const MoeCase& one) {
    Software software;
    software.host = HostMode::graph;
    software.fused_activation = true;
    software.fp8 = one.fp8;
    SystemSpec system = with_software(load_system(name), software);
    if (!one.fp8_rows) system.dispatch_element = kBf16;
    return system;
}

LayerOptions options_of(const MoeCase& one) {
    LayerOptions options;
    options.tensor_parallel = one.etp;
    options.pass = one.pass;
    options.router = false;
    return options;
}

/// A layer with fewer experts to simulate: where nothing travels and experts are asked for alike,
/// GPUs do not know how many they are, and many experts take a multiple of what some do.
struct SmallLayer {
    MoeCase one;
    Model model;
    double times = 1;  ///< how often the whole layer takes the small one's time
};

/// A layer on as few GPUs, with their experts, as have enough of them for a token; on one GPU with
/// some of its many experts, and their tokens.
SmallLayer smaller(const MoeCase& one, const Model& model) {
    SmallLayer small{one, model};
    const auto serves = [&](int ranks) {
        return one.ep % ranks == 0 && model.experts * ranks % one.ep == 0 &&
               model.experts / one.ep * ranks >= model.top_k;
    };
    for (small.one.ep = 1; small.one.ep < one.ep && !serves(small.one.ep);) ++small.one.ep;
    small.model.experts = model.experts * small.one.ep / one.ep;
    small.model.expert_groups = small.model.top_groups = 1;
    while (small.one.ep == 1 && small.model.experts % 2 == 0 && small.one.tokens % 2 == 0 &&
           small.model.experts / 2 >= std::max(kSomeExperts, model.top_k)) {
        small.model.experts /= 2;
        small.one.tokens /= 2;
        small.times *= 2;
    }
    return small;
}

double seconds_of(const LayerInput& input, const SystemSpec& system, const LayerOptions& options) {
    return to_seconds(simulate_layer(input, system, options).time);
}

LayerResult run_layer(const LayerInput& input, const SystemSpec& system, const MoeCase& one) {
    try {
        return simulate_layer(input, system, options_of(one));
    } catch (const InputError& error) {
        if (!one.fp8 || one.fp8_rows) throw;
        throw input_error(
            "{}; with --set trainer.fp8_rows=true rows travel in FP8, under all systems",
            error.what());
    }
}

/// Libraries send rows by thread blocks of their own; those of an Ascend's have engines for it.
int sms_of(const Machine& machine, const SystemSpec& system) {
    const int set_aside = system.communication_sms + system.sending_sms + system.combining_sms;
    if (set_aside > 0) return set_aside;
    return machine.topology == NodeTopology::mesh ? 0 : machine.nccl.peer_channels;
}

}  // namespace

/// Balanced is a draw in which all experts are as likely, as trainers force it: a token's experts
/// then lie as near to each other as chance has them, and those of a node share what crosses.
ExchangeTimes::ExchangeTimes(Machine machine, Model model, RoutingSpec routing)
    : machine_(std::move(machine)), model_(std::move(model)), routing_(routing) {
    using Shares = RoutingSpec::Shares;
    if (routing_.shares == Shares::balanced) routing_.shares = Shares::uniform;
}

std::int64_t ExchangeTimes::affordable(const MoeCase& one, std::int64_t rows) const {
    const std::int64_t gpus = std::int64_t{one.ep} * one.etp;
    const std::int64_t most = gpus > kLargeGroup ? std::min(rows, kLargeRows) : rows;
    return std::max(kLeastTokens, most / (gpus * std::max(1, model_.top_k)));
}

double ExchangeTimes::ideal(const MoeCase& one) {
    MoeCase key = one;
    key.system.clear();
    return ideals_.get(key, [&] {
        const bool alike = routing_.shares == RoutingSpec::Shares::uniform;
        const SmallLayer small = alike ? smaller(one, model_) : SmallLayer{one, model_};
        const LayerInput input = input_of(machine_, small.model, routing_, small.one);
        const LayerOptions options = options_of(small.one);
        return small.times * seconds_of(input, system_of("ideal", one), options);
    });
}

MoeCommunication ExchangeTimes::simulated(const MoeCase& one) {
    return simulated_.get(one, [&] {
        const SystemSpec system = system_of(one.system, one);
        const LayerResult result =
            run_layer(input_of(machine_, model_, routing_, one), system, one);
        MoeCommunication found;
        found.exposed = std::max(0.0, to_seconds(result.time) - ideal(one));
        const bool in_steps = result.dispatch > 0 && result.combine > 0;
        found.alone = in_steps ? to_seconds(result.dispatch + result.combine) : found.exposed;
        found.sms = sms_of(machine_, system);
        return found;
    });
}

ExchangeTimes::Line ExchangeTimes::line_of(const MoeCase& one) {
    MoeCase point = one;
    Line line;
    line.many = std::min(kTableTokens, affordable(one, kTableRows));
    line.few = line.many / kFewerTimes;
    point.tokens = line.few;
    line.at_few = simulated(point);
    point.tokens = line.many;
    line.at_many = simulated(point);
    return line;
}

MoeCommunication ExchangeTimes::along(const Line& line, std::int64_t tokens) {
    const auto value = [&](double few, double many) {
        const double slope = std::max(0.0, many - few) / static_cast<double>(line.many - line.few);
        return std::max(0.0, many + slope * static_cast<double>(tokens - line.many));
    };
    MoeCommunication result = line.at_many;
    result.exposed = value(line.at_few.exposed, line.at_many.exposed);
    result.alone = value(line.at_few.alone, line.at_many.alone);
    return result;
}

MoeCommunication ExchangeTimes::at(const MoeCase& one) {
    if (one.ep * one.etp <= 1 || one.tokens <= 0) return {};
    MoeCase key = one;
    key.tokens = 0;
    return along(lines_.get(key, [&] { return line_of(key); }), one.tokens);
}

MoeCommunication ExchangeTimes::exact(const MoeCase& one) {
    if (one.ep * one.etp <= 1 || one.tokens <= 0) return {};
    MoeCase largest = one;
    largest.tokens = std::min(one.tokens, affordable(one, kExactRows));
    const MoeCommunication found = simulated(largest);
    if (largest.tokens == one.tokens) return found;
    MoeCase fewer = largest;
    fewer.tokens = largest.tokens / kFewerTimes;
    return along({fewer.tokens, largest.tokens, simulated(fewer), found}, one.tokens);
}

}  // namespace moehub
