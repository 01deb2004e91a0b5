/// Files of kernel measurements of serving engines, as published (validation/kernels): a row names
/// its card.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/kernel_calls.hpp>

namespace moehub {

struct KernelCase {
    Measurement measurement;
    std::string library;
    KernelCall call;
};

std::vector<KernelCase> parse_gemm(const CsvRow& row);
std::vector<KernelCase> parse_attention(const CsvRow& row);  ///< prefill, and decode: one token
std::vector<KernelCase> parse_mla(const CsvRow& row);        ///< likewise
std::vector<KernelCase> parse_moe(const CsvRow& row);

Prediction predict_kernel_case(const KernelCase& what, const PredictContext& context);

}  // namespace moehub
