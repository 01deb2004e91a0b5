// Do kernels of serving engines take longer for more work and no longer on a better card, are they
// never faster than memory, and do their parts follow closed forms?
#include "sim/kernels/kernels.hpp"

#include "error_of.hpp"
#include "sim/gpu/transformer.hpp"
#include "study/kernel_keys.hpp"

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>

#include <functional>
#include <numeric>

#include <gtest/gtest.h>

namespace moehub::kernels_test {
namespace {

const std::vector<std::string> kCards = {"h100-sxm", "h200-sxm", "b200", "gb200", "gb300", "h20"};

double seconds(const Gpu& gpu, const KernelCall& call, const std::string& library = "trtllm") {
    return predict_kernel(gpu, library, call).seconds;
}

struct Asked {
    std::string library;
    KernelCall call;
};

/// Calls of every kernel, in every format that any card has.
std::vector<Asked> calls() {
    using enum NumberFormat;
    std::vector<Asked> all;
    for (const NumberFormat format : {bf16, fp8, fp8_block, nvfp4})
        for (const std::int64_t m : {1, 64, 65, 500, 4096})
            for (const std::int64_t k : {256, 7168})
                all.push_back({"trtllm", GemmCall{format, m, 4096, k}});
    for (const NumberFormat cache : {bf16, fp8})
        for (const std::int64_t batch : {1, 16, 200}) {
            for (const std::int64_t window : {0, 128}) {
                all.push_back(
                    {"trtllm", PrefillCall{cache, cache, batch, 900, 0, 32, 8, 128, window}});
                all.push_back({"trtllm", DecodeCall{cache, batch, 3000, 32, 8, 128, window}});
            }
            for (const std::string library : {"trtllm", "sglang"}) {
                all.push_back({library, MlaPrefillCall{cache, batch, 700, 16}});
                all.push_back({library, MlaDecodeCall{cache, batch, 3000, 16}});
            }
        }
    for (const std::int64_t tokens : {8, 300, 5000})
        for (const std::int64_t ep : {1, 8}) {
            MoeCall moe{bf16, tokens, 4096, 1536, 8, 128, 1, ep};
            all.push_back({"trtllm", moe});
            all.push_back({"sglang", moe});
            moe.format = fp8_block;
            all.push_back({"trtllm", moe});
        }
    return all;
}

bool runs(const Gpu& gpu, const Asked& asked) {
    for (const NumberFormat format : formats_of(asked.call))
        if (flops_of(gpu, format) <= 0) return false;
    return memory_of(asked.call) <= static_cast<double>(gpu.hbm_capacity);
}

/// Calls `check` with every call that the card can run.
void on_every(const Gpu& gpu, const std::function<void(const Asked&)>& check) {
    for (const Asked& asked : calls())
        if (runs(gpu, asked)) check(asked);
}

/// Where the measured kernels themselves are faster for more (docs/cards.md): scales by blocks on
/// Hopper fill row tiles badly; heads that share keys take another kernel.
bool falls_when_measured(const KernelCall& call, std::string_view key, const Gpu& gpu) {
    const bool hopper = gpu.generation == "hopper";
    const auto* gemm = std::get_if<GemmCall>(&call);
    if (gemm != nullptr && gemm->format == NumberFormat::fp8_block) return key == "m" && hopper;
    if (std::holds_alternative<PrefillCall>(call))
        return hopper && (key == "head_dim" || key == "window");
    if (std::holds_alternative<DecodeCall>(call)) return key == "kv_heads";
    if (std::holds_alternative<MlaDecodeCall>(call)) return key == "heads" && !hopper;
    // More experts, or more cards to share them, is not more work: the same rows are spread
    // thinner. With kept groups fewer experts may be chosen.
    return key == "ep" || key == "tp" || key == "experts" || key == "groups" ||
           key == "kept_groups";
}

TEST(Kernels, more_work_never_takes_less_time) {
    for (const std::string& name : kCards) {
        const Gpu gpu = load_gpu(name);
        on_every(gpu, [&](const Asked& asked) {
            const double before = seconds(gpu, asked.call, asked.library);
            KernelCall more = asked.call;
            for (const CallKey& key : keys_of(more)) {
                if (falls_when_measured(more, key.name, gpu) || *key.value == 0) continue;
                const std::int64_t was = *key.value;
                for (const std::int64_t times : {2, 4}) {
                    *key.value = was * times;
                    if (!runs(gpu, {asked.library, more})) continue;
                    EXPECT_GE(seconds(gpu, more, asked.library), before * (1 - 1e-9))
                        << name << ' ' << asked.library << ' ' << kernel_name(more) << ' '
                        << key.name << " = " << was << " * " << times;
                }
                *key.value = was;
            }
        });
    }
}

TEST(Kernels, a_row_more_never_takes_less_time) {
    for (const std::string& name : kCards) {
        const Gpu gpu = load_gpu(name);
        for (const NumberFormat format : {NumberFormat::bf16, NumberFormat::fp8}) {
            double before = 0;
            for (std::int64_t m = 1; m < 700; ++m) {
                const double now = seconds(gpu, GemmCall{format, m, 7168, 2048});
                EXPECT_GE(now, before * (1 - 1e-9)) << name << " m = " << m;
                before = now;
            }
        }
    }
}

TEST(Kernels, a_better_card_is_never_slower) {
    using Change = std::function<void(Gpu&)>;
    const std::vector<std::pair<std::string, Change>> changes = {
        {"HBM", [](Gpu& g) { g.hbm_bandwidth *= 1.5; }},
        {"clock", [](Gpu& g) { g.clock *= 1.2; }},
        {"peak", [](Gpu& g) { g.bf16_flops *= 2, g.fp8_flops *= 2, g.nvfp4_flops *= 2; }},
    };
    for (const std::string& name : kCards) {
        const Gpu gpu = load_gpu(name);
        for (const auto& one : changes) {
            const std::string& what = one.first;
            Gpu better = gpu;
            one.second(better);
            on_every(gpu, [&](const Asked& asked) {
                EXPECT_LE(seconds(better, asked.call, asked.library),
                          seconds(gpu, asked.call, asked.library) * (1 + 1e-9))
                    << name << ' ' << what << ' ' << kernel_name(asked.call);
            });
        }
    }
}

TEST(Kernels, cold_weights_come_no_faster_than_memory_allows) {
    for (const std::string& name : kCards) {
        const Gpu gpu = load_gpu(name);
        on_every(gpu, [&](const Asked& asked) {
            const auto* gemm = std::get_if<GemmCall>(&asked.call);
            if (gemm == nullptr) return;
            const double weights = bytes_of(gemm->format) * static_cast<double>(gemm->n) *
                                   static_cast<double>(gemm->k);
            EXPECT_GE(seconds(gpu, asked.call), weights / gpu.hbm_bandwidth) << name;
        });
        MoeCall moe{NumberFormat::bf16, 4096, 4096, 1536, 8, 128, 1, 1};
        EXPECT_GE(seconds(gpu, moe), 3.0 * 2 * 4096 * 1536 * 128 / gpu.hbm_bandwidth) << name;
    }
}

/// FP8 quantises its inputs first and scales its results last, which short calls and small k wait
/// for longer than they gain; the products themselves must not be slower.
TEST(Kernels, products_in_fp8_are_no_slower_than_in_bf16) {
    for (const std::string& name : kCards) {
        const Gpu gpu = load_gpu(name);
        for (const std::int64_t m : {1, 100, 1000, 8192})
            for (const std::int64_t n : {512, 7168})
                for (const std::int64_t k : {2048, 16384}) {
                    const auto products = [&](NumberFormat format) {
                        const KernelCost cost =
                            predict_kernel(gpu, "trtllm", GemmCall{format, m, n, k});
                        return std::max(cost.tensor, cost.memory);
                    };
                    EXPECT_LE(products(NumberFormat::fp8),
                              products(NumberFormat::bf16) * (1 + 1e-9))
                        << name << ' ' << m << ' ' << n << ' ' << k;
                }
        EXPECT_LT(seconds(gpu, GemmCall{NumberFormat::fp8, 8192, 8192, 8192}),
                  seconds(gpu, GemmCall{NumberFormat::bf16, 8192, 8192, 8192}))
            << name;
    }
}

TEST(Kernels, parts_add_up) {
    const Gpu gpu = load_gpu("b200");
    on_every(gpu, [&](const Asked& asked) {
        const KernelCost cost = predict_kernel(gpu, asked.library, asked.call);
        const double apart = cost.start + cost.other;
        EXPECT_GE(cost.seconds, (apart + std::max(cost.tensor, cost.memory)) * (1 - 1e-9));
        EXPECT_LE(cost.seconds, (apart + cost.tensor + cost.memory) * (1 + 1e-9));
        EXPECT_LE(cost.flops, cost.seconds * cost.peak) << kernel_name(asked.call);
        EXPECT_GE(cost.bytes, 0);
    });
}

TEST(Kernels, a_gemm_reads_and_writes_each_element_once) {
    const KernelCost cost =
        predict_kernel(load_gpu("h200-sxm"), "trtllm", GemmCall{NumberFormat::bf16, 100, 200, 300});
    EXPECT_DOUBLE_EQ(cost.bytes, 2.0 * (100 * 300 + 300 * 200 + 100 * 200));
    EXPECT_DOUBLE_EQ(cost.flops, 2.0 * 100 * 200 * 300);
}

/// Weights, what goes in and comes out, and caches, each once; extents are primes, so that no two
/// products of them are alike.
TEST(Kernels, a_call_needs_memory_for_each_of_its_tensors) {
    using enum NumberFormat;
    EXPECT_DOUBLE_EQ(memory_of(GemmCall{fp8, 3, 5, 7}), 3 * 7 + 7 * 5 + 2 * 3 * 5);
    EXPECT_DOUBLE_EQ(memory_of(GemmCall{w4a16, 3, 64, 7}),
                     2 * 3 * 7 + 7 * 64 * (4 + 16.0 / 64) / 8 + 2 * 3 * 64);
    // Queries and results of all heads; keys and values of the context, which holds the tokens.
    EXPECT_DOUBLE_EQ(memory_of(PrefillCall{bf16, fp8, 3, 5, 0, 14, 7, 64, 0}),
                     3 * 64 * (5 * 2 * (2 * 14 + 2 * 7) + 5 * 2 * 7));
    EXPECT_DOUBLE_EQ(memory_of(PrefillCall{bf16, fp8, 3, 5, 11, 14, 7, 64, 0}),
                     3 * 64 * (5 * 2 * (2 * 14 + 2 * 7) + 11 * 2 * 7));
    EXPECT_DOUBLE_EQ(memory_of(DecodeCall{bf16, 3, 11, 14, 7, 64, 0}),
                     3 * 64 * 2 * (2 * 14 + (11 + 1) * 2 * 7));
    // DeepSeek's latents: 512 numbers and 64 with positions; heads of 128 and 64.
    EXPECT_DOUBLE_EQ(memory_of(MlaPrefillCall{bf16, 3, 5, 7}),
                     3 * 5 * 2 * (7 * (2 * (128 + 64) + 2 * 128) + 512 + 64));
    EXPECT_DOUBLE_EQ(memory_of(MlaDecodeCall{fp8, 3, 11, 7}),
                     3 * (2 * 7 * (512 + 64 + 512) + (11 + 1) * (512 + 64)));
    MoeCall moe{fp8, 3, 64, 96, 2, 8, 2, 4};  // two experts of half the width on each card
    EXPECT_DOUBLE_EQ(memory_of(moe), 2 * 3 * 64 * 96 / 2 + 2 * 2 * 3 * 64);
    moe.gated = false;
    EXPECT_DOUBLE_EQ(memory_of(moe), 2 * 2 * 64 * 96 / 2 + 2 * 2 * 3 * 64);
}

TEST(Kernels, prefill_counts_scores_that_no_mask_hides) {
    const Gpu gpu = load_gpu("h200-sxm");
    const auto flops = [&](std::int64_t tokens, std::int64_t context, std::int64_t window) {
        return predict_kernel(gpu, "trtllm",
                              PrefillCall{NumberFormat::bf16, NumberFormat::bf16, 1, tokens,
                                          context, 1, 1, 64, window})
            .flops;
    };
    const auto seen = [](std::int64_t tokens, std::int64_t context, std::int64_t window) {
        double scores = 0;
        for (std::int64_t i = context - tokens + 1; i <= context; ++i)
            scores += static_cast<double>(window > 0 ? std::min(window, i) : i);
        return 4 * 64 * scores;
    };
    for (const std::int64_t window : {0, 1, 50, 128, 500, 1000})
        for (const std::int64_t before : {0, 30, 600})
            EXPECT_DOUBLE_EQ(flops(300, 300 + before, window), seen(300, 300 + before, window))
                << window << ' ' << before;
}

TEST(ExpertRows, every_row_of_a_balanced_group_is_somewhere) {
    for (const std::int64_t tokens : {1, 7, 64, 1000})
        for (const int top_k : {1, 2, 8}) {
            const ExpertRows rows = expert_rows({tokens, top_k, 64, 1, 0, 1, 1});
            EXPECT_DOUBLE_EQ(rows.rows, static_cast<double>(tokens * top_k));
            EXPECT_LE(rows.experts, 64);
            EXPECT_GE(rows.tiles[0] * kTileRows[0], rows.rows);
        }
}

TEST(ExpertRows, the_power_law_keeps_all_rows_and_fills_one_rank_most) {
    const ExpertRows alone = expert_rows({2000, 8, 128, 1, 1.2, 1, 1});
    EXPECT_DOUBLE_EQ(alone.rows, 16000);
    const ExpertRows fullest = expert_rows({2000, 8, 128, 8, 1.2, 1, 1});
    const ExpertRows even = expert_rows({2000, 8, 128, 8, 0, 1, 1});
    EXPECT_GT(fullest.rows, 1.3 * even.rows);
    EXPECT_LE(fullest.fullest, 2000);
    EXPECT_DOUBLE_EQ(expert_rows({2000, 8, 128, 1, 1.0, 1, 1}).rows, 16000);  // the limit
}

TEST(PredictionCache, gives_what_prediction_gives) {
    for (const std::string name : {"h200-sxm", "b200"}) {
        const Gpu gpu = load_gpu(name);
        PredictionCache trtllm(gpu, "trtllm");
        for (int twice = 0; twice < 2; ++twice)
            on_every(gpu, [&](const Asked& asked) {
                if (asked.library != "trtllm") return;
                EXPECT_EQ(trtllm.seconds(asked.call), seconds(gpu, asked.call));
            });
    }
}

TEST(WithKernels, a_models_linear_layers_and_prompts_are_the_librarys) {
    const Gpu gpu = load_gpu("h200-sxm");
    const Gpu changed = with_kernels(gpu, "trtllm");
    const GemmShape shape{500, 4096, 7168};
    EXPECT_DOUBLE_EQ(kernel_seconds(changed, shape),
                     seconds(gpu, GemmCall{NumberFormat::bf16, 500, 7168, 4096}));
    EXPECT_NE(kernel_seconds(gpu, shape), kernel_seconds(changed, shape));
    AttentionCall attention;
    attention.shape = {2, 32, 8, 1000, 1000, 128, 128};
    EXPECT_DOUBLE_EQ(kernel_seconds(changed, attention),
                     seconds(gpu, PrefillCall{NumberFormat::bf16, NumberFormat::bf16, 2, 1000, 0,
                                              32, 8, 128, 0}));
    EXPECT_EQ(to_json(with_kernels(gpu, "torch")), to_json(gpu));
    EXPECT_NE(error_of([&] { with_kernels(gpu, "trtlm"); }).find("trtllm"), std::string::npos);
    EXPECT_NE(error_of([&] { with_kernels(gpu, "sglang"); }).find("no GEMMs"), std::string::npos);
}

TEST(Kernels, what_cannot_run_is_refused_in_one_line) {
    const Gpu h100 = load_gpu("h100-sxm");
    const auto refused = [](const Gpu& gpu, const std::string& library, const KernelCall& call) {
        return error_of([&] { predict_kernel(gpu, library, call); });
    };
    using enum NumberFormat;
    EXPECT_EQ(refused(h100, "trtllm", GemmCall{nvfp4, 1, 1, 1}),
              "no tensor cores of the format nvfp4");
    EXPECT_EQ(refused(load_gpu("a100-sxm"), "trtllm", DecodeCall{fp8, 1, 1, 1, 1, 64, 0}),
              "no tensor cores of the format fp8");
    EXPECT_EQ(refused(h100, "trtllm", GemmCall{bf16, 0, 1, 1}),
              "gemm: found an extent of 0, allowed: 1 to 100000000");
    EXPECT_EQ(refused(h100, "trtllm", GemmCall{bf16, 1'000'000, 1'000'000, 10}),
              "gemm takes 2000 GB of memory, of 80 GB there are");
    EXPECT_EQ(refused(h100, "sglang", GemmCall{bf16, 1, 1, 1}),
              "kernel library \"sglang\" has no gemm of bf16");
    EXPECT_EQ(refused(h100, "trtlm", GemmCall{bf16, 1, 1, 1}),
              "no kernel library \"trtlm\", found flashinfer-cutlass, sglang, trtllm; did you mean "
              "\"trtllm\"?");
    EXPECT_EQ(refused(h100, "trtllm", PrefillCall{bf16, nvfp4, 1, 1, 0, 1, 1, 64, 0}),
              "attention of nvfp4, allowed: bf16, fp8");
    EXPECT_EQ(refused(h100, "trtllm", DecodeCall{bf16, 1, 1, 10, 3, 64, 0}),
              "kv_heads = 3: does not divide heads = 10");
    EXPECT_EQ(refused(h100, "trtllm", MoeCall{bf16, 1, 64, 64, 9, 8}),
              "top_k = 9: more than the experts, 8");
    EXPECT_EQ(
        refused(h100, "trtllm", PrefillCall{bf16, bf16, 1000, 1, 100'000'000, 128, 128, 128, 0}),
        "prefill takes 6553600 GB of memory, of 80 GB there are");
    EXPECT_EQ(refused(h100, "trtllm", PrefillCall{bf16, bf16, 1, 10, 5, 1, 1, 64, 0}),
              "context = 5: less than the tokens, 10");
    EXPECT_EQ(refused(h100, "trtllm", PrefillCall{fp8, bf16, 1, 10, 0, 1, 1, 64, 0}),
              "prefill in fp8 needs a cache in fp8");
    EXPECT_EQ(
        refused(h100, "trtllm", MoeCall{bf16, 1, 64, 64, 2, 8, 1, 1, 3, 1}),
        "1 of 3 groups of experts: allowed: at most 64 equal groups, of which as many are kept "
        "as hold top_k experts");
    EXPECT_EQ(refused(h100, "trtllm", MoeCall{bf16, 1, 64, 64, 2, 8, 1, 1, 1, 1, -1}),
              "skew = -1: allowed 0 to 10");
}

}  // namespace
}  // namespace moehub::kernels_test
