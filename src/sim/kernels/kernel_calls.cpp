#include "sim/kernels/kernels.hpp"

#include <moehub/kernel_calls.hpp>

#include <algorithm>

namespace moehub {

std::string_view name_of(NumberFormat format) {
    constexpr std::array<std::string_view, 5> kNames = {"bf16", "fp8", "fp8-block", "nvfp4",
                                                        "w4a16"};
    return kNames[static_cast<std::size_t>(format)];
}

std::string_view kernel_name(const KernelCall& call) {
    constexpr std::array<std::string_view, std::variant_size_v<KernelCall>> kNames = {
        "gemm", "prefill", "decode", "mla-prefill", "mla-decode", "moe"};
    return kNames[call.index()];
}

// What a call takes in memory, and in which format it multiplies.

namespace {

double d(std::int64_t value) {
    return static_cast<double>(value);
}

double memory(const GemmCall& c) {
    return bytes_of(c.format) * d(c.m) * d(c.k) + weight_bytes_of(c.format) * d(c.k) * d(c.n) +
           kBf16 * d(c.m) * d(c.n);
}

double memory(const PrefillCall& c) {
    const double rows = d(c.tokens) * kBf16 * (2 * d(c.heads) + 2 * d(c.kv_heads));
    const double cache = 2 * d(std::max(c.context, c.tokens)) * bytes_of(c.cache) * d(c.kv_heads);
    return d(c.batch) * d(c.head_dim) * (rows + cache);
}

double memory(const DecodeCall& c) {
    const double sequences = d(c.batch) * d(c.head_dim);
    return sequences *
           (2 * kBf16 * d(c.heads) + 2 * bytes_of(c.cache) * d(c.kv_heads) * d(c.context + 1));
}

double memory(const MlaPrefillCall& c) {
    const double head = kBf16 * (2 * d(kMlaNope + kMlaRope) + 2 * d(kMlaNope));
    return d(c.batch) * d(c.tokens) * (d(c.heads) * head + bytes_of(c.cache) * d(kMlaKey));
}

double memory(const MlaDecodeCall& c) {
    return d(c.batch) * (kBf16 * d(c.heads) * d(kMlaKey + kMlaRank) +
                         bytes_of(c.cache) * d(kMlaKey) * d(c.context + 1));
}

double memory(const MoeCall& c) {
    const double weights = (c.gated ? 3.0 : 2.0) * d(c.hidden) * d(c.expert_ffn / c.tp) *
                           d(c.experts / c.ep) * weight_bytes_of(c.format);
    return weights + 2 * kBf16 * d(c.tokens) * d(c.hidden);
}

template <class Call>
NumberFormat format(const Call& call) {
    if constexpr (requires { call.format; })
        return call.format;
    else
        return NumberFormat::bf16;
}

template <class Call>
NumberFormat cache(const Call& call) {
    if constexpr (requires { call.cache; })
        return call.cache;
    else
        return format(call);
}

}  // namespace

double bytes_of(NumberFormat format) {
    constexpr double kBytes[] = {2, 1, 1, 0.5 + 1.0 / 16, 2};
    return kBytes[static_cast<std::size_t>(format)];
}

double weight_bytes_of(NumberFormat format) {
    return format == NumberFormat::w4a16 ? 0.5 + 1.0 / 32 : bytes_of(format);
}

double flops_of(const Gpu& gpu, NumberFormat format) {
    if (bytes_of(format) == kBf16) return gpu.bf16_flops;
    return format == NumberFormat::nvfp4 ? gpu.nvfp4_flops : gpu.fp8_flops;
}

double memory_of(const KernelCall& call) {
    return std::visit([](const auto& one) { return memory(one); }, call);
}

NumberFormat format_of(const KernelCall& call) {
    return std::visit([](const auto& one) { return format(one); }, call);
}

std::array<NumberFormat, 2> formats_of(const KernelCall& call) {
    return std::visit([](const auto& one) { return std::array{format(one), cache(one)}; }, call);
}

}  // namespace moehub
