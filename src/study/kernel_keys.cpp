#include "study/kernel_keys.hpp"

#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <array>

namespace moehub {
namespace {

std::vector<CallKey> keys(GemmCall& c) {
    return {{"m", &c.m}, {"n", &c.n}, {"k", &c.k}};
}

std::vector<CallKey> keys(PrefillCall& c) {
    return {{"batch", &c.batch},        {"tokens", &c.tokens},     {"context", &c.context, 1, 0},
            {"heads", &c.heads},        {"kv_heads", &c.kv_heads}, {"head_dim", &c.head_dim},
            {"window", &c.window, 0, 0}};
}

std::vector<CallKey> keys(DecodeCall& c) {
    return {{"batch", &c.batch},       {"context", &c.context},   {"heads", &c.heads},
            {"kv_heads", &c.kv_heads}, {"head_dim", &c.head_dim}, {"window", &c.window, 0, 0}};
}

std::vector<CallKey> keys(MlaPrefillCall& c) {
    return {{"batch", &c.batch}, {"tokens", &c.tokens}, {"heads", &c.heads}};
}

std::vector<CallKey> keys(MlaDecodeCall& c) {
    return {{"batch", &c.batch}, {"context", &c.context}, {"heads", &c.heads}};
}

std::vector<CallKey> keys(MoeCall& c) {
    return {{"tokens", &c.tokens}, {"hidden", &c.hidden},   {"expert_ffn", &c.expert_ffn},
            {"top_k", &c.top_k},   {"experts", &c.experts}, {"tp", &c.tp, 1, 1},
            {"ep", &c.ep, 1, 1}};
}

const std::array<KernelCall, std::variant_size_v<KernelCall>>& empty_calls() {
    static const std::array<KernelCall, std::variant_size_v<KernelCall>> calls = {
        GemmCall{}, PrefillCall{}, DecodeCall{}, MlaPrefillCall{}, MlaDecodeCall{}, MoeCall{}};
    return calls;
}

constexpr std::array kFormats = {NumberFormat::bf16, NumberFormat::fp8, NumberFormat::fp8_block,
                                 NumberFormat::nvfp4, NumberFormat::w4a16};

}  // namespace

std::vector<CallKey> keys_of(KernelCall& call) {
    return std::visit([](auto& one) { return keys(one); }, call);
}

std::optional<KernelCall> call_named(std::string_view kernel) {
    for (const KernelCall& call : empty_calls())
        if (kernel_name(call) == kernel) return call;
    return std::nullopt;
}

std::vector<std::string_view> kernel_names() {
    std::vector<std::string_view> names;
    for (const KernelCall& call : empty_calls()) names.push_back(kernel_name(call));
    return names;
}

std::optional<NumberFormat> format_named(std::string_view name) {
    for (const NumberFormat format : kFormats)
        if (name_of(format) == name) return format;
    return std::nullopt;
}

std::vector<std::string_view> format_names() {
    std::vector<std::string_view> names;
    for (const NumberFormat format : kFormats) names.push_back(name_of(format));
    return names;
}

std::optional<double> skew_named(std::string_view distribution) {
    constexpr std::string_view kPower = "power-law-";
    if (distribution == "balanced") return 0;
    if (!distribution.starts_with(kPower)) return std::nullopt;
    try {
        const double skew = parse_number(distribution.substr(kPower.size()));
        if (skew > 0 && skew <= 10) return skew;
    } catch (const InputError&) {
    }
    return std::nullopt;
}

void set_formats(KernelCall& call, NumberFormat format, NumberFormat cache) {
    if (auto* gemm = std::get_if<GemmCall>(&call)) gemm->format = format;
    if (auto* moe = std::get_if<MoeCall>(&call)) moe->format = format;
    if (auto* prefill = std::get_if<PrefillCall>(&call)) {
        prefill->format = format;
        prefill->cache = cache;
    }
    if (auto* decode = std::get_if<DecodeCall>(&call)) decode->cache = cache;
    if (auto* mla = std::get_if<MlaPrefillCall>(&call)) mla->cache = cache;
    if (auto* mla = std::get_if<MlaDecodeCall>(&call)) mla->cache = cache;
}

}  // namespace moehub
