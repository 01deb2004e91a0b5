#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "sim/kernels/kernels.hpp"

#include <moehub/error.hpp>
#include <moehub/predict.hpp>

#include <bit>
#include <initializer_list>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24;  ///< most tokens of a fused MoE
constexpr double kMostSkew = 10;

void require_extents(const KernelCall& call, std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t extent : extents)
        if (extent < 1 || extent > kMostOfACall)
            throw InputError(fmt::format("{}: found an extent of {}, allowed: 1 to {}",
                                         kernel_name(call), extent, kMostOfACall));
}

/// 0 means that there is none.
void require_extents_or_none(const KernelCall& call, std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t extent : extents)
        if (extent != 0) require_extents(call, {extent});
}

void require_divides(std::string_view part, std::int64_t by, std::string_view whole,
                     std::int64_t value) {
    if (value % by != 0)
        throw InputError(fmt::format("{} = {}: does not divide {} = {}", part, by, whole, value));
}

/// Attention and its cache know no scales by blocks.
void require_plain(std::initializer_list<NumberFormat> formats) {
    for (const NumberFormat format : formats)
        if (format != NumberFormat::bf16 && format != NumberFormat::fp8)
            throw InputError(fmt::format("attention of {}, allowed: bf16, fp8", name_of(format)));
}

void check_extents(const GemmCall& c) {
    require_extents(c, {c.m, c.n, c.k});
}
void check_extents(const PrefillCall& c) {
    require_extents(c, {c.batch, c.tokens, c.heads, c.kv_heads, c.head_dim});
    require_extents_or_none(c, {c.window, c.context});
    require_divides("kv_heads", c.kv_heads, "heads", c.heads);
    require_plain({c.format, c.cache});
    if (c.context != 0 && c.context < c.tokens)
        throw InputError(
            fmt::format("context = {}: less than the tokens, {}", c.context, c.tokens));
    if (c.format == NumberFormat::fp8 && c.cache != NumberFormat::fp8)
        throw InputError("prefill in fp8 needs a cache in fp8");
}
void check_extents(const DecodeCall& c) {
    require_extents(c, {c.batch, c.context, c.heads, c.kv_heads, c.head_dim});
    require_extents_or_none(c, {c.window});
    require_divides("kv_heads", c.kv_heads, "heads", c.heads);
    require_plain({c.cache});
}
void check_extents(const MlaPrefillCall& c) {
    require_extents(c, {c.batch, c.tokens, c.heads});
    require_plain({c.cache});
}
void check_extents(const MlaDecodeCall& c) {
    require_extents(c, {c.batch, c.context, c.heads});
    require_plain({c.cache});
}
void check_extents(const MoeCall& c) {
    require_extents(c, {c.tokens, c.hidden, c.expert_ffn, c.top_k, c.experts, c.tp, c.ep});
    require_divides("ep", c.ep, "experts", c.experts);
    require_divides("tp", c.tp, "expert_ffn", c.expert_ffn);
    if (c.experts > kMostExperts || c.top_k > kMostChoices)
        throw InputError(fmt::format("{} experts and top_k = {}: at most {} and {}", c.experts,
                                     c.top_k, kMostExperts, kMostChoices));
    if (c.top_k > c.experts)
        throw InputError(fmt::format("top_k = {}: more than the experts, {}", c.top_k, c.experts));
    require_extents(c, {c.groups, c.kept_groups});
    if (c.groups > kMostChoices || c.kept_groups > c.groups || c.experts % c.groups != 0 ||
        c.kept_groups * (c.experts / c.groups) < c.top_k)
        throw InputError(
            fmt::format("{} of {} groups of experts: allowed: at most {} equal groups, "
                        "of which as many are kept as hold top_k experts",
                        c.kept_groups, c.groups, kMostChoices));
    if (!(c.skew >= 0 && c.skew <= kMostSkew))
        throw InputError(fmt::format("skew = {}: allowed 0 to {}", c.skew, kMostSkew));
    if (c.tokens > kMostTokens)
        throw InputError(fmt::format("tokens = {}: at most {}", c.tokens, kMostTokens));
}

// A kernel that the library does not have costs nothing, which the caller refuses.
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call) {
    return gemm_of(library, call.format).start > 0 ? linear(gpu, library, call) : KernelCost{};
}
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const MoeCall& call) {
    const MoeKernel& kernel = moe_of(library, call.format);
    return kernel.start > 0 ? fused_moe(gpu, kernel, call, rows_of(call)) : KernelCost{};
}
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const PrefillCall& call) {
    return library.prefill.start > 0 ? prefill_attention(gpu, library.prefill, call) : KernelCost{};
}
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const DecodeCall& call) {
    return library.decode.start > 0 ? decode_attention(gpu, library.decode, call) : KernelCost{};
}
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const MlaPrefillCall& call) {
    return library.mla_prefill.start > 0 ? mla_prefill(gpu, library.mla_prefill, call)
                                         : KernelCost{};
}
KernelCost cost(const Gpu& gpu, const KernelLibrary& library, const MlaDecodeCall& call) {
    return library.mla_decode.start > 0 ? mla_decode(gpu, library.mla_decode, call) : KernelCost{};
}

using Key = std::array<std::int64_t, 13>;

std::int64_t number(NumberFormat format) {
    return static_cast<std::int64_t>(format);
}

Key key(const GemmCall& c) {
    return {number(c.format), c.m, c.n, c.k};
}
Key key(const PrefillCall& c) {
    return {number(c.format), number(c.cache), c.batch,    c.tokens, c.context,
            c.heads,          c.kv_heads,      c.head_dim, c.window};
}
Key key(const DecodeCall& c) {
    return {number(c.cache), c.batch, c.context, c.heads, c.kv_heads, c.head_dim, c.window};
}
Key key(const MlaPrefillCall& c) {
    return {number(c.cache), c.batch, c.tokens, c.heads};
}
Key key(const MlaDecodeCall& c) {
    return {number(c.cache), c.batch, c.context, c.heads};
}
Key key(const MoeCall& c) {
    return {number(c.format),
            c.tokens,
            c.hidden,
            c.expert_ffn,
            c.top_k,
            c.experts,
            c.tp,
            c.ep,
            c.groups,
            c.kept_groups,
            c.gated ? 1 : 0,
            std::bit_cast<std::int64_t>(c.skew)};
}

}  // namespace

const KernelLibrary& library_of(const Gpu& gpu, const std::string& name) {
    const auto found = gpu.libraries.find(name);
    if (found != gpu.libraries.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, library] : gpu.libraries) names.push_back(known);
    if (names.empty())
        throw InputError(
            fmt::format("no kernel library {}: the card names no generation", quoted(name)));
    throw InputError(fmt::format("no kernel library {}, found {}{}", quoted(name),
                                 fmt::join(names, ", "), did_you_mean(name, names)));
}

KernelCost predict_kernel(const Gpu& gpu, const std::string& name, const KernelCall& call) {
    const KernelLibrary& library = library_of(gpu, name);
    std::visit([](const auto& one) { check_extents(one); }, call);
    for (const NumberFormat format : formats_of(call))
        if (!(flops_of(gpu, format) > 0))
            throw InputError(fmt::format("no tensor cores of the format {}", name_of(format)));
    if (memory_of(call) > static_cast<double>(gpu.hbm_capacity))
        throw InputError(fmt::format("{} takes {:.0f} GB of memory, of {:.0f} GB there are",
                                     kernel_name(call), memory_of(call) / 1e9,
                                     static_cast<double>(gpu.hbm_capacity) / 1e9));
    const KernelCost found =
        std::visit([&](const auto& one) { return cost(gpu, library, one); }, call);
    if (found.seconds == 0)
        throw InputError(fmt::format("kernel library {} has no {} of {}", quoted(name),
                                     kernel_name(call), name_of(format_of(call))));
    return found;
}

Gpu with_kernels(const Gpu& gpu, const std::string& name) {
    Gpu changed = gpu;
    if (name == "torch") return changed;
    if (library_of(gpu, name).gemm_bf16.start == 0)
        throw InputError(fmt::format("kernel library {} has no GEMMs of bf16", name));
    changed.library = name;
    return changed;
}

PredictionCache::PredictionCache(Gpu gpu, std::string library)
    : gpu_(std::move(gpu)), library_(std::move(library)) {}

std::size_t PredictionCache::Hash::operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::int64_t value : key) {
        hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 32U;
    }
    return hash;
}

PredictionCache::Key PredictionCache::key_of(const KernelCall& call) {
    Key key = std::visit([](const auto& one) { return moehub::key(one); }, call);
    key.back() = static_cast<std::int64_t>(call.index());
    return key;
}

const KernelCost& PredictionCache::cost(const KernelCall& call) {
    const Key key = key_of(call);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = predict_kernel(gpu_, library_, call);
}

}  // namespace moehub
