// Kernels of serving engines: what their files call them, and the library whose constants they are.
#include "study/kernel_keys.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/predict.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// The fused MoE kernels of the files, and the library whose constants they are.
struct MoeKernelName {
    std::string_view kernel;
    std::string_view library;
    bool gated = true;
};
constexpr MoeKernelName kMoeKernels[] = {
    {"trtllm_cutlass", "trtllm"},
    {"trtllm_nongated", "trtllm", false},
    {"trtllm_min_latency", "trtllm-min-latency"},
    {"fused_moe_triton", "sglang"},
    {"deepgemm", "trtllm"},  // DeepGEMM's kernel for scales by blocks
    {"flashinfer_cutlass_moe", "flashinfer-cutlass"},
    {"flashinfer_trtllm_moe", "flashinfer-trtllm"},
};

NumberFormat format_in(const CsvRow& row, std::string_view column) {
    const auto format = format_named(row.text(column));
    if (!format) row.reject(column, fmt::format("{}", fmt::join(format_names(), ", ")));
    return *format;
}

void read_call(const CsvRow& row, KernelCall& call) {
    for (const CallKey& key : keys_of(call))
        *key.value = row.integer(key.name, key.least, kMostOfACall);
}

/// Prefill, or decode where the row has one new token: `context` counts it and those before it.
KernelCall phase_of(const CsvRow& row, KernelCall prefill, KernelCall decode) {
    const std::int64_t tokens = row.integer("tokens", 1, kMostOfACall);
    const std::int64_t context = row.integer("context", 1, kMostOfACall);
    if (tokens == 1) return decode;
    if (context < tokens) row.reject("context", "the row's tokens, or more");
    return prefill;
}

/// A row's measurement, named by the card, then `what`, then `more`.
Measurement measured(const CsvRow& row, std::string_view what, std::string_view more) {
    return {fmt::format("{} {}{}{}", row.text("gpu"), what, more.empty() ? "" : " ", more),
            {},
            value_in(row, "us"),
            "us",
            row.text("gpu")};
}

/// What the files do not say but the models behind their rows do: Nemotron's experts (hidden 2688,
/// or 22 choices) are not gated, and DeepSeek-V3's router, which all rows of the min-latency kernel
/// have, chooses within 4 of 8 groups.
void read_unsaid(const CsvRow& row, MoeCall& moe) {
    if (moe.hidden == 2688 || moe.top_k == 22) moe.gated = false;
    const bool deepseek =
        row.text("kernel") == "flashinfer_trtllm_moe" && moe.hidden == 7168 && moe.experts == 256;
    if (deepseek || row.text("kernel") == "trtllm_min_latency") {
        moe.groups = 8;
        moe.kept_groups = 4;
    }
}

}  // namespace

KernelCase parse_gemm(const CsvRow& row) {
    KernelCall call = GemmCall{};
    read_call(row, call);
    const NumberFormat format = format_in(row, "dtype");
    set_formats(call, format, format);
    return {measured(row, "gemm", name_of(format)), "trtllm", call};
}

KernelCase parse_attention(const CsvRow& row) {
    KernelCall call = phase_of(row, PrefillCall{}, DecodeCall{});
    read_call(row, call);
    if (row.integer("heads", 1) % row.integer("kv_heads", 1) != 0)
        row.reject("kv_heads", "a divisor of the row's heads");
    set_formats(call, format_in(row, "dtype"), format_in(row, "kv_dtype"));
    return {measured(row, kernel_name(call), ""), "trtllm", call};
}

KernelCase parse_mla(const CsvRow& row) {
    KernelCall call = phase_of(row, MlaPrefillCall{}, MlaDecodeCall{});
    read_call(row, call);
    if (std::holds_alternative<MlaPrefillCall>(call) && row.field("context") != row.field("tokens"))
        row.reject("context", "the row's tokens, or one token behind any context");
    set_formats(call, format_in(row, "dtype"), format_in(row, "kv_dtype"));
    return {measured(row, kernel_name(call), row.text("engine")), row.text("engine"), call};
}

KernelCase parse_moe(const CsvRow& row) {
    MoeCall moe;
    const auto skew = skew_named(row.text("distribution"));
    if (!skew) row.reject("distribution", "balanced, or power-law- and an exponent up to 10");
    moe.skew = *skew;
    std::string library = row.text("kernel");  // an unknown library is skipped later
    for (const MoeKernelName& one : kMoeKernels) {
        if (one.kernel != row.text("kernel")) continue;
        library = one.library;
        moe.gated = one.gated;
    }
    KernelCall call = moe;
    read_call(row, call);
    const NumberFormat format = format_in(row, "dtype");
    set_formats(call, format, format);
    read_unsaid(row, std::get<MoeCall>(call));
    return {measured(row, row.text("kernel"), name_of(format)), library, call};
}

Prediction predict_kernel_case(const KernelCase& what, const PredictContext& context) {
    const NamedCard& card = context.cards.at(what.measurement.card);
    if (!card.gpu) return skip(card.why, what.measurement.card);
    return {predict_kernel(*card.gpu, what.library, what.call).seconds * 1e6};
}

}  // namespace moehub
