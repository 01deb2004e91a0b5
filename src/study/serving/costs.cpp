#include "base/portable_math.hpp"
#include "sim/kernels/kernels.hpp"
#include "study/serving/operators.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

namespace moehub {
namespace {

constexpr int kSmallest = 10;  ///< exponent of 1 KiB: smaller collectives take as long
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

/// What a call's kernel takes to start; 0: the library has none.
struct StartOf {
    const KernelLibrary& library;

    Ps operator()(const GemmCall& call) const { return gemm_of(library, call.format).start; }
    Ps operator()(const MoeCall& call) const { return moe_of(library, call.format).start; }
    Ps operator()(const PrefillCall&) const { return library.prefill.start; }
    Ps operator()(const DecodeCall&) const { return library.decode.start; }
    Ps operator()(const MlaPrefillCall&) const { return library.mla_prefill.start; }
    Ps operator()(const MlaDecodeCall&) const { return library.mla_decode.start; }
};

/// The first library with the kernel; if none has it, the first that the card knows, which says so.
std::string first_with(const Gpu& gpu, const std::string& libraries, const KernelCall& call) {
    std::string known;
    for (const std::string& name : split(libraries)) {
        const auto library = gpu.libraries.find(name);
        if (library == gpu.libraries.end()) continue;
        if (known.empty()) known = name;
        if (std::visit(StartOf{library->second}, call) > 0) return name;
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
    predict_kernel(machine_.gpu, name, even);  // refuses impossible calls
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

// An expert's rows X follow a binomial law of n = tokens and p = its share of top_k:
//
//   experts with rows = local · mean of P(X > 0)     (even routing would fill top_k · tokens)
//   tiles of h rows   = local · mean of Σ_j P(X > j·h)
//
// Of `ep` ranks the fullest decides: its counts lie z standard deviations above the mean, with z
// the expected largest of ep normal numbers.

namespace {

constexpr double kMany = 300;  ///< rows of an expert, beyond which tails are not added up

double largest_of(int ranks) {
    if (ranks == 1) return 0;
    const double log = portable_log(ranks);
    const double root = std::sqrt(2 * log);
    const double below =
        (portable_log(std::max(log, 1.0)) + portable_log(4 * std::numbers::pi)) / (2 * root);
    return std::max(0.5, root - below);
}

/// Σ_j P(X > j·h) for every tile height, and P(X > 0) as `present`.
struct Tails {
    double present = 0;
    std::array<double, kTileRows.size()> tiles{};
};

Tails tails_of(double tokens, double chance) {
    Tails tails;
    const double mean = tokens * chance;
    if (mean > kMany) {
        tails.present = 1;
        for (std::size_t i = 0; i < kTileRows.size(); ++i)
            tails.tiles[i] = mean / kTileRows[i] + 0.5;
        return tails;
    }
    const double never = chance < 1 ? portable_exp(tokens * portable_log(1 - chance)) : 0;
    tails.present = 1 - never;
    double here = never;  // P(X = x)
    double above = 1 - never;
    const double odds = chance < 1 ? chance / (1 - chance) : 0;
    for (double x = 0; above > 1e-9 && x <= tokens; ++x) {
        for (std::size_t i = 0; i < kTileRows.size(); ++i)
            if (std::fmod(x, kTileRows[i]) == 0) tails.tiles[i] += above;
        if (chance == 1) {
            if (x + 1 >= tokens) break;
            continue;
        }
        here *= (tokens - x) / (x + 1) * odds;
        above -= here;
    }
    return tails;
}

/// How likely a token takes an expert, in a few steps from the most to the least liked: the i-th
/// of E has a share in proportion to (i + 1/2)^-alpha. None can be taken more than once.
std::vector<double> chances_of(const RowDraw& draw) {
    const double even = static_cast<double>(draw.top_k) / draw.experts;
    if (draw.alpha == 0) return {even};
    constexpr int kSteps = 16;
    std::vector<double> shares;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
        shares.push_back(portable_exp(-draw.alpha * portable_log((i + 0.5) / kSteps)));
        sum += shares.back();
    }
    for (double& share : shares) share = std::min(1.0, share * kSteps / sum * even);
    return shares;
}

}  // namespace

ExpertRows random_rows(const RowDraw& draw) {
    const auto tokens = static_cast<double>(draw.tokens);
    const double local = static_cast<double>(draw.experts) / draw.ep;
    Tails mean;
    double chance_squares = 0;
    const std::vector<double> chances = chances_of(draw);
    for (const double chance : chances) {
        const Tails one = tails_of(tokens, chance);
        const double part = 1.0 / static_cast<double>(chances.size());
        mean.present += part * one.present;
        for (std::size_t i = 0; i < kTileRows.size(); ++i) mean.tiles[i] += part * one.tiles[i];
        chance_squares += part * chance * chance;
    }
    // A rank's experts are any of them: what they have differs by luck and by how liked they are.
    const double present_variance = std::max(0.0, mean.present * (1 - mean.present));
    const double chance = static_cast<double>(draw.top_k) / draw.experts;
    const double liked = std::max(0.0, chance_squares - chance * chance) * tokens * tokens;
    const double z = largest_of(draw.ep);
    const double mean_rows = tokens * draw.top_k / draw.ep;
    const double mean_experts = local * mean.present;
    const double others = 1 - 1.0 / draw.ep;
    ExpertRows rows;
    rows.experts = std::min(local, mean_experts + z * std::sqrt(local * present_variance));
    rows.rows = mean_rows + z * std::sqrt((mean_rows + local * liked) * others);
    rows.fullest = rows.rows / rows.experts;
    const double more = std::max(rows.experts / mean_experts, rows.rows / mean_rows);
    for (std::size_t i = 0; i < kTileRows.size(); ++i)
        rows.tiles[i] = std::max(rows.experts, local * mean.tiles[i] * more);
    return rows;
}

}  // namespace moehub
