/// The field table of Gpu: a new field is one member in <moehub/gpu.hpp> and one row here.
#include "model/records.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr Limits kSmRate = {1e6, 1e15};
constexpr Limits kScores = {1e6, 1e18};
constexpr Limits kPasses = {0, 1e6};
constexpr Limits kHostBytes = {0, 1e15};
constexpr Limits kLaunches = {0, 1e3};

/// Optional: what a file leaves out is as fitted on the measured H200.
Fields fields_of(Kernels& k) {
    using enum FieldKind;
    return optional_fields({
        {"tensor_efficiency", &k.tensor_efficiency, number, kShare, "of bf16_flops, all SMs"},
        {"throttled_clock", &k.throttled_clock, number, kShare, "of the clock, at the power limit"},
        {"other_power", &k.other_power, number, kShare, "of tensor cores', with these at rest"},
        {"boost_time", &k.boost_time, time, {1, 1e15}, "of an operator before the clock drops"},
        {"hbm_efficiency", &k.hbm_efficiency, number, kShare, "of hbm_bandwidth, long reads"},
        {"hbm_narrow", &k.hbm_narrow, number, kShare, "of hbm_bandwidth, narrow reads"},
        {"hbm_write", &k.hbm_write, number, kShare, "of hbm_bandwidth, writes"},
        {"l2_resident", &k.l2_resident, number, kShare, "of l2_capacity, kept between replays"},
        {"gemm_load", &k.gemm_load, rate, kSmRate, "into the shared memory of one SM"},
        {"gemm_store", &k.gemm_store, rate, kSmRate, "of output from one SM"},
        {"grouped_load", &k.grouped_load, rate, kSmRate, "gemm_load of the grouped GEMM"},
        {"grouped_store", &k.grouped_store, rate, kSmRate, "gemm_store of the grouped GEMM"},
        {"stream_load", &k.stream_load, rate, kSmRate, "of one SM in a memory-bound kernel"},
        {"row_load", &k.row_load, rate, kSmRate, "of rows that one SM sends, from L2"},
        {"row_load_hbm", &k.row_load_hbm, rate, kSmRate, "the same from HBM"},
        {"row_store", &k.row_store, rate, kSmRate, "the same, stored"},
        {"gemm_start", &k.gemm_start, time, kTime, "launch to first tile"},
        {"grouped_start", &k.grouped_start, time, kTime, "gemm_start of the grouped GEMM"},
        {"stream_start", &k.stream_start, time, kTime, "launch of a memory-bound kernel"},
        {"narrow_start", &k.narrow_start, time, kTime, "stream_start of a sum of rows"},
        {"split_k_reduce", &k.split_k_reduce, time, kTime, "launch of the split-K sum"},
        {"graph_replay", &k.graph_replay, time, kTime, "CUDA graph beyond its kernels"},
        {"graph_replay_floor", &k.graph_replay_floor, time, kTime, "shortest replay"},
        {"sort_block", &k.sort_block, time, kTime, "sort by one thread block"},
        {"sort_block_rate", &k.sort_block_rate, rate, kSmRate, "of keys in that sort"},
        {"sort_pass", &k.sort_pass, time, kTime, "one of 8 radix passes"},
        {"route_start", &k.route_start, time, kTime, "top-k and softmax of a router"},
        {"route_row", &k.route_row, time, kTime, "of that, for each token"},
        {"route_logits", &k.route_logits, number, {1, 1e15}, "logits per second of that"},
        {"scatter_add", &k.scatter_add, rate, {1e6, 1e15}, "rows weighted and added at random"},
        {"index_add", &k.index_add, rate, {1e6, 1e15}, "of that, the adding alone"},
    });
}

/// Constants of the rest of a transformer layer; they stand in the same table.
Fields layer_fields_of(Kernels& k) {
    using enum FieldKind;
    return optional_fields({
        {"hbm_copy", &k.hbm_copy, number, kShare, "of hbm_bandwidth, tensors in order"},
        {"copy_load", &k.copy_load, rate, kSmRate, "stream_load, element by element"},
        {"plain_elements", &k.plain_elements, number, kScores,
         "per second of one SM, plain kernels"},
        {"norm_load", &k.norm_load, rate, kSmRate, "stream_load, reducing each row first"},
        {"norm_l1", &k.norm_l1, bytes, {1, 1e15}, "of an SM's rows near for a second read"},
        {"norm_row", &k.norm_row, time, kTime, "mean and variance of a row, one SM"},
        {"quantise_load", &k.quantise_load, rate, kSmRate, "norm_load of a quantisation by rows"},
        {"fp8_efficiency", &k.fp8_efficiency, number, kShare, "of FP8 beside bf16 in a GEMM"},
        {"fp8_load", &k.fp8_load, rate, kSmRate, "gemm_load of FP8"},
        {"fp8_grouped_efficiency", &k.fp8_grouped_efficiency, number, kShare, "when grouped"},
        {"fp8_grouped_load", &k.fp8_grouped_load, rate, kSmRate, "grouped_load of FP8"},
        {"fp8_grouped_start", &k.fp8_grouped_start, time, kTime, "grouped_start of FP8"},
        {"attention_start", &k.attention_start, time, kTime, "launch of attention"},
        {"attention_block", &k.attention_block, time, kTime, "of 128 queries, beyond scores"},
        {"attention_softmax", &k.attention_softmax, number, kScores, "scores per second of one SM"},
        {"attention_back_softmax", &k.attention_back_softmax, number, kScores, "on the way back"},
        {"attention_back_passes", &k.attention_back_passes, number, kPasses, "bytes over Q's"},
        {"flash2_tensor", &k.flash2_tensor, number, kShare, "of bf16_flops, FlashAttention-2"},
        {"flash2_block", &k.flash2_block, time, kTime, "attention_block of FlashAttention-2"},
        {"flash2_softmax", &k.flash2_softmax, number, kScores, "scores per second of one SM"},
        {"flash2_back_softmax", &k.flash2_back_softmax, number, kScores, "on the way back"},
        {"flash2_back_passes", &k.flash2_back_passes, number, kPasses, "bytes over Q's"},
        {"attention_clock", &k.attention_clock, number, kShare, "throttled_clock of attention"},
        {"hbm_mixed", &k.hbm_mixed, number, kShare, "of hbm_bandwidth, many tensors at once"},
        {"cast_load", &k.cast_load, rate, kSmRate, "copy_load, tensors of two types"},
        {"softmax_load", &k.softmax_load, rate, kSmRate, "norm_load of a vocabulary's softmax"},
        {"slow_replay", &k.slow_replay, time, kTime, "graph_replay on a slow host"},
        {"slow_replay_floor", &k.slow_replay_floor, time, kTime, "shortest on a slow host"},
    });
}

Fields fields_of(Overheads& o) {
    using enum FieldKind;
    return optional_fields({
        {"graph_launch", &o.graph_launch, time, kTime, "a kernel inside a CUDA graph"},
        {"eager_launch", &o.eager_launch, time, kTime, "an operator of an eager framework"},
        {"autograd_notes", &o.autograd_notes, number, kLaunches, "for the way back"},
        {"autograd_issues", &o.autograd_issues, number, kLaunches, "on the way back"},
        {"eager_latency", &o.eager_latency, time, kTime, "launch to kernel on an idle card"},
        {"host_sync", &o.host_sync, time, kTime, "a kernel, 1 KB to the host, its wait"},
        {"atomic_latency", &o.atomic_latency, time, kTime, "atomic add to global memory"},
        {"flag_round_trip", &o.flag_round_trip, time, kTime, "between two SMs through L2"},
    });
}

Fields fields_of(Exchange& e) {
    using enum FieldKind;
    return optional_fields({
        {"push", &e.push, rate, kSmRate, "of an SM into its peers' queues"},
        {"push_row", &e.push_row, time, kTime, "of a row in it, beyond its bytes"},
        {"copy_row", &e.copy_row, time, kTime, "of a row that the copy engine moves"},
        {"copy_sum", &e.copy_sum, rate, kSmRate, "of rows that it fetches to be added up"},
        {"post_row", &e.post_row, time, kTime, "of a row that the NIC is to send"},
        {"push_token", &e.push_token, time, kTime, "of a token that is looked at"},
        {"sum_load", &e.sum_load, rate, kSmRate, "of rows that one SM adds up"},
        {"sum_store", &e.sum_store, rate, kSmRate, "of sums, or of rows that it packs"},
        {"first_load", &e.first_load, rate, kSmRate, "sum_load of one warp alone"},
        {"first_store", &e.first_store, rate, kSmRate, "sum_store of one warp alone"},
        {"cast_token", &e.cast_token, time, kTime, "one SM casts and sends a token"},
        {"cast", &e.cast, rate, kSmRate, "of that, by its bytes"},
        {"scatter", &e.scatter, rate, kSmRate, "of rows that all SMs store away, each by a warp"},
        {"dispatch_start", &e.dispatch_start, time, kTime, "of a dispatch on all SMs"},
        {"combine_start", &e.combine_start, time, kTime, "of a combine on all SMs"},
        {"dispatch_expert", &e.dispatch_expert, time, kTime, "more for each expert of an SM"},
        {"combine_expert", &e.combine_expert, time, kTime, "the same of the combine"},
        {"call", &e.call, time, kTime, "an eager call, beyond its kernel"},
    });
}

}  // namespace

Fields fields_of(Gpu& gpu) {
    using enum FieldKind;
    constexpr Need optional = Need::optional;
    Fields fields = {
        {"generation", &gpu.generation, text, {}, "whose constants it inherits", optional},
        {"sms", &gpu.sms, count, {2, 4096}, "streaming multiprocessors"},
        {"clock", &gpu.clock, frequency, {1e6, 1e11}, "largest of the SMs"},
        {"bf16_flops", &gpu.bf16_flops, flops, {1e9, 1e18}, "dense, of the whole card"},
        {"fp8_flops", &gpu.fp8_flops, flops, {0, 1e18}, "dense; 0: no FP8 units", optional},
        {"nvfp4_flops", &gpu.nvfp4_flops, flops, {0, 1e18}, "dense; 0: no FP4 units", optional},
        {"hbm_bandwidth", &gpu.hbm_bandwidth, rate, {1e6, 1e15}, "datasheet"},
        {"hbm_capacity", &gpu.hbm_capacity, bytes, {1, 1e15}, "memory of the card"},
        {"host_capacity", &gpu.host_capacity, bytes, kHostBytes,
         "of the host's memory, a GPU's share; 0: not known", optional},
        {"host_bandwidth", &gpu.host_bandwidth, rate, kSmRate, "to the host's memory, one way",
         optional},
        {"l2_capacity", &gpu.l2_capacity, bytes, {1, 1e15}, "last-level cache"},
    };
    nest(fields, "kernels.torch.", fields_of(gpu.kernels));
    nest(fields, "kernels.torch.", layer_fields_of(gpu.kernels));
    nest(fields, "overheads.", fields_of(gpu.overheads));
    for (auto& [name, library] : gpu.libraries)
        nest(fields, fmt::format("kernels.{}.", name), fields_of(library));
    nest(fields, "exchange.", fields_of(gpu.exchange));
    return fields;
}

/// A GPU's title is for `moehub list` only: Gpu has no such field.
Gpu gpu_from(std::vector<Document> chain, const Overrides& overrides) {
    for (Document& document : chain)
        std::erase_if(document.entries, [](const Entry& e) { return e.key == "title"; });
    Gpu own;  // what the files alone say: the datasheet that inherited rates are scaled to
    for (const Document& document : chain) add_libraries(own, document.entries, "");
    const std::map<std::string, KernelLibrary> libraries = own.libraries;
    add_generations_libraries(own, chain);  // so that `--set` finds their constants
    const Given given = fill(fields_of(own), chain, overrides);
    Gpu gpu = own;
    if (!own.generation.empty()) {
        gpu = inherited_by(own, given);
        gpu.inherited = missing_tables(gpu, given);
        for (const auto& [name, library] : libraries) gpu.libraries[name];
        fill(fields_of(gpu), chain, overrides);
    }
    require_whole_kernels(gpu, given, libraries);
    return gpu;
}

}  // namespace moehub
