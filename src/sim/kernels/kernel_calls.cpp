#include <moehub/kernel_calls.hpp>

#include <array>

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

}  // namespace moehub
