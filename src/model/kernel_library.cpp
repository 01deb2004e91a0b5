/// The field tables of kernel libraries: a new constant is one member in
/// <moehub/kernel_library.hpp> and one row here.
#include "model/records.hpp"

#include <set>

namespace moehub {
namespace {

constexpr Limits kTile = {1, 1 << 20};
constexpr Limits kDivisor = {1e-6, 1e9};  ///< divides: never 0
constexpr Limits kCost = {0, 1e9};

Fields fields_of(GemmKernel& k) {
    using enum FieldKind;
    return {
        one_of("tiles", k.tiles, {"hopper", "blackwell"}, "shapes"),
        {"hbm", &k.hbm, number, kShare, "of hbm_bandwidth"},
        {"load", &k.load, number, kDivisor, "bytes per cycle into one SM"},
        {"store", &k.store, number, kDivisor, "bytes per cycle of output from one SM"},
        {"split_finish", &k.split_finish, time, kTime, "adds the parts of a split k"},
        {"absent_row", &k.absent_row, number, kCost, "cycles per k and row a tile lacks"},
    };
}

Fields fields_of(GemmFormat& k) {
    using enum FieldKind;
    return {
        {"start", &k.start, time, kTime, "launches"},
        {"tensor", &k.tensor, number, kShare, "of the tensor cores' peak, all SMs"},
        {"chain", &k.chain, number, kCost, "cycles of a tile for a step of 1 in k, at least"},
        {"quantise", &k.quantise, number, kDivisor, "activations an SM quantises per cycle"},
    };
}

Fields fields_of(MoeKernel& k) {
    using enum FieldKind;
    return {
        one_of("style", k.style, {"cutlass", "trtllm-gen", "triton"},
               "how the work is cut into kernels"),
        {"start", &k.start, time, kTime, "launches"},
        {"choice", &k.choice, time, kTime, "for each of the top k"},
        {"expert", &k.expert, time, kTime, "for each local expert"},
        {"slot", &k.slot, time, kTime, "for each token and choice"},
        {"tensor", &k.tensor, number, kShare, "of the tensor cores' peak"},
        {"tile", &k.tile, time, kTime, "prologue and epilogue of a tile"},
        {"step", &k.step, time, kTime, "for 128 bytes of the inner dimension"},
        {"hbm", &k.hbm, number, kShare, "of hbm_bandwidth, products"},
        {"stream", &k.stream, number, kCost, "bytes per cycle into an SM; 0: no limit"},
        {"pass", &k.pass, number, kShare, "of hbm_bandwidth, passes over rows"},
    };
}

Fields fields_of(PrefillKernel& k) {
    using enum FieldKind;
    return {
        {"query_tile", &k.query_tile, count, kTile, "queries of a block"},
        {"most_keys", &k.most_keys, count, {64, 1 << 20}, "of one step, at most"},
        {"start", &k.start, time, kTime, "launches"},
        {"row_cycles", &k.row_cycles, number, kCost, "of an SM per query row, RoPE and cache"},
        {"pass_bytes", &k.pass_bytes, number, kDivisor, "of an SM per cycle in that pass"},
        {"tensor", &k.tensor, number, kShare, "of the tensor cores' peak"},
        {"softmax", &k.softmax, number, kCost, "cycles of a score beyond its products"},
        {"fp8_softmax", &k.fp8_softmax, number, kCost, "further, when rounded to fp8"},
        {"tail", &k.tail, number, {0, 10}, "of the longest block, that SMs wait for the last"},
        {"fp8_window", &k.fp8_window, number, {1, 100}, "times a score in windowed fp8 kernels"},
    };
}

Fields fields_of(DecodeKernel& k) {
    using enum FieldKind;
    return {
        {"split_waves", &k.split_waves, number, {1, 1e6}, "blocks for an SM, by splitting"},
        {"old_bf16", &k.old_bf16, flag, {}, "bf16 cache: blocks before a window start too"},
        {"start", &k.start, time, kTime, "launches"},
        {"hbm", &k.hbm, number, kShare, "of hbm_bandwidth, the cache"},
        {"load_bytes", &k.load_bytes, number, kDivisor, "of the cache into an SM per cycle"},
        {"block", &k.block, time, kTime, "of an SM for a block, bf16 cache"},
        {"fp8_block", &k.fp8_block, time, kTime, "the same, fp8 cache or vector kernel"},
        {"head", &k.head, time, kTime, "of an SM for a query head of a block"},
        {"merge", &k.merge, time, kTime, "for each part of a sequence"},
        {"vector_rate", &k.vector_rate, number, kCost, "elements into an SM per cycle; 0: none"},
        {"vector_merge", &k.vector_merge, time, kTime, "when its blocks are split"},
    };
}

Fields fields_of(MlaPrefillKernel& k) {
    using enum FieldKind;
    return {
        {"absorbed", &k.absorbed, flag, {}, "the latent is every head's key and value"},
        {"rows", &k.rows, count, kTile, "queries of one block"},
        {"tail", &k.tail, number, {0, 10}, "of the longest block, that SMs wait for the last"},
        {"hbm", &k.hbm, number, kShare, "of hbm_bandwidth, copies and quantisation"},
        {"conversion", &k.conversion, number, kDivisor, "fp8 values to bf16, an SM per cycle"},
        {"start", &k.start, time, kTime, "launches"},
        {"fp8_start", &k.fp8_start, time, kTime, "further, fp8 cache: quantisation"},
        {"pass_bytes", &k.pass_bytes, number, kCost, "per token and head: RoPE, copies"},
        {"tensor", &k.tensor, number, kShare, "of the tensor cores' peak"},
        {"softmax", &k.softmax, number, kDivisor, "exponentials of an SM per cycle"},
        {"block", &k.block, time, kTime, "of a block beyond its scores"},
    };
}

Fields fields_of(MlaDecodeKernel& k) {
    using enum FieldKind;
    return {
        {"tile", &k.tile, count, kTile, "heads of one block"},
        {"few_heads", &k.few_heads, count, {0, 1 << 20}, "up to so many another kernel runs"},
        {"few_tile", &k.few_tile, count, kTile, "heads of its blocks"},
        {"keys", &k.keys, count, kTile, "cached tokens of one step"},
        {"converts", &k.converts, flag, {}, "fp8 cache to bf16 in every call"},
        {"start", &k.start, time, kTime, "launches"},
        {"hbm", &k.hbm, number, kShare, "of hbm_bandwidth, bf16 cache"},
        {"hbm_fp8", &k.hbm_fp8, number, kShare, "of hbm_bandwidth, fp8 cache"},
        {"tensor", &k.tensor, number, kShare, "of the bf16 peak"},
        {"tensor_fp8", &k.tensor_fp8, number, kShare, "of the fp8 peak"},
        {"sm_bytes", &k.sm_bytes, number, kDivisor, "of the cache into an SM per cycle"},
        {"split", &k.split, time, kTime, "one more split into the sum"},
        {"passes", &k.passes, number, {0, 1e6}, "moves of queries and outputs"},
        {"conversion", &k.conversion, number, kDivisor, "fp8 values to bf16, an SM per cycle"},
        {"conversion_start", &k.conversion_start, time, kTime, "launches of the conversion"},
    };
}

/// "kernels.trtllm.decode.start" → "kernels.trtllm.decode."
std::string table_before_last(const std::string& key) {
    return key.substr(0, key.rfind('.') + 1);
}

}  // namespace

Fields without_absent_kernels(Fields fields, std::string_view prefix) {
    const std::string front = fmt::format("{}kernels.", prefix);
    std::set<std::string> present;
    for (const Field& field : fields) {
        if (!field.key.starts_with(front) || !field.key.ends_with(".start")) continue;
        const std::string table = table_before_last(field.key);
        if (number_in(field.pointer).value_or(0) <= 0) continue;
        present.insert(table);
        // What all formats of a GEMM share: "gemm." beside "gemm_bf16.".
        if (const auto at = table.find(".gemm_"); at != std::string::npos)
            present.insert(table.substr(0, at) + ".gemm.");
    }
    const std::string torch = front + "torch.";
    std::erase_if(fields, [&](const Field& field) {
        return field.key.starts_with(front) && !field.key.starts_with(torch) &&
               !present.contains(table_before_last(field.key));
    });
    return fields;
}

Fields fields_of(KernelLibrary& library) {
    Fields fields;
    nest(fields, "gemm.", fields_of(library.gemm));
    nest(fields, "gemm_bf16.", fields_of(library.gemm_bf16));
    nest(fields, "gemm_fp8.", fields_of(library.gemm_fp8));
    nest(fields, "gemm_fp8_block.", fields_of(library.gemm_fp8_block));
    nest(fields, "gemm_nvfp4.", fields_of(library.gemm_nvfp4));
    nest(fields, "prefill.", fields_of(library.prefill));
    nest(fields, "decode.", fields_of(library.decode));
    nest(fields, "mla_prefill.", fields_of(library.mla_prefill));
    nest(fields, "mla_decode.", fields_of(library.mla_decode));
    nest(fields, "moe_bf16.", fields_of(library.moe_bf16));
    nest(fields, "moe_fp8.", fields_of(library.moe_fp8));
    nest(fields, "moe_fp8_block.", fields_of(library.moe_fp8_block));
    nest(fields, "moe_nvfp4.", fields_of(library.moe_nvfp4));
    return optional_fields(std::move(fields));
}

}  // namespace moehub
