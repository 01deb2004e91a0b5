#include "study/serving/costs.hpp"

#include "sim/kernels/kernels.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace moehub {
namespace {

constexpr int kSmallest = 10;  ///< collectives below 1 KiB take as long
constexpr int kLargest = 32;

std::vector<std::string> split(const std::string& names) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= names.size();) {
        const std::size_t comma = std::min(names.find(',', at), names.size());
        std::string part = names.substr(at, comma - at);
        std::erase(part, ' ');
        if (!part.empty()) parts.push_back(std::move(part));
        at = comma + 1;
    }
    return parts;
}

bool has(const KernelLibrary& l, const GemmCall& c) {
    return gemm_of(l, c.format).start > 0;
}
bool has(const KernelLibrary& l, const MoeCall& c) {
    return moe_of(l, c.format).start > 0;
}
bool has(const KernelLibrary& l, const PrefillCall&) {
    return l.prefill.start > 0;
}
bool has(const KernelLibrary& l, const DecodeCall&) {
    return l.decode.start > 0;
}
bool has(const KernelLibrary& l, const MlaPrefillCall&) {
    return l.mla_prefill.start > 0;
}
bool has(const KernelLibrary& l, const MlaDecodeCall&) {
    return l.mla_decode.start > 0;
}

/// The first that has the kernel; if none has, the first that the card knows, which then says so.
std::string first_with(const Gpu& gpu, const std::string& libraries, const KernelCall& call) {
    std::string known;
    for (const std::string& name : split(libraries)) {
        const auto library = gpu.libraries.find(name);
        if (library == gpu.libraries.end()) continue;
        if (known.empty()) known = name;
        if (std::visit([&](const auto& one) { return has(library->second, one); }, call))
            return name;
    }
    return known.empty() ? libraries : known;
}

}  // namespace

const std::string& ServingCosts::library(const std::string& libraries, const KernelCall& call) {
    std::string& name = chosen_[{libraries, call.index(), format_of(call)}];
    if (name.empty()) name = first_with(machine_.gpu, libraries, call);
    return name;
}

const KernelCost& ServingCosts::random_moe(const std::string& libraries, const MoeCall& call) {
    const std::string& name = library(libraries, call);
    const std::pair key(name,
                        MoeKey{static_cast<std::int64_t>(call.format), call.tokens, call.hidden,
                               call.expert_ffn, call.top_k, call.experts, call.tp, call.ep,
                               call.gated ? 1 : 0, std::bit_cast<std::int64_t>(call.skew)});
    const auto known = random_moe_.find(key);
    if (known != random_moe_.end()) return known->second;
    MoeCall even = call;
    even.skew = 0;
    predict_kernel(machine_.gpu, name, even);  // which refuses what cannot be
    const auto i = [](std::int64_t value) { return static_cast<int>(value); };
    const ExpertRows rows =
        random_rows({call.tokens, i(call.top_k), i(call.experts), i(call.ep), call.skew});
    const KernelLibrary& constants = machine_.gpu.libraries.at(name);
    return random_moe_[key] = fused_moe(machine_.gpu, moe_of(constants, call.format), call, rows);
}

const KernelCost& ServingCosts::kernel(const std::string& libraries, const KernelCall& call) {
    const std::string& name = library(libraries, call);
    auto cache = kernels_.find(name);
    if (cache == kernels_.end())
        cache = kernels_.try_emplace(name, PredictionCache(machine_.gpu, name)).first;
    return cache->second.cost(call);
}

double ServingCosts::simulated(Collective::Op op, int gpus, int exponent, bool one_shot) {
    const auto key = std::tuple(op, gpus, exponent, one_shot);
    const auto known = collectives_.find(key);
    if (known != collectives_.end()) return known->second;
    Collective collective;
    collective.op = op;
    collective.gpus = gpus;
    collective.bytes = Bytes{1} << exponent;
    collective.algorithm = op == Collective::Op::all_to_all ? Collective::Algorithm::direct
                                                            : Collective::Algorithm::automatic;
    const Machine worker = with_gpus(machine_, gpus);
    Ps time = run_collective(worker, collective).time;
    if (one_shot && op == Collective::Op::all_reduce && gpus <= machine_.gpus_per_node) {
        collective.algorithm = Collective::Algorithm::one_shot;
        time = std::min(time, run_collective(worker, collective).time);
    }
    return collectives_[key] = to_seconds(time);
}

double ServingCosts::collective(Collective::Op op, int gpus, double bytes, bool one_shot) {
    if (gpus == 1) return 0;
    const auto size = static_cast<std::uint64_t>(std::ceil(std::max(bytes, 1.0)));
    const int below = std::clamp(static_cast<int>(std::bit_width(size)) - 1, kSmallest, kLargest);
    const double at_below = simulated(op, gpus, below, one_shot);
    const double part = bytes / static_cast<double>(std::uint64_t{1} << below) - 1;
    if (part <= 0) return at_below;
    return at_below + part * (simulated(op, gpus, below + 1, one_shot) - at_below);
}

}  // namespace moehub
