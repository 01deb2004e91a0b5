/// Starts are round numbers near what the hardware suggests; limits are what it allows.
#include "problems.hpp"

namespace moehub::fit {
namespace {

constexpr double kUs = 1e6;  ///< ps
constexpr double kNs = 1e3;

using Keys = std::vector<std::string>;

Problem gemm(bool hopper) {
    Problem p{hopper ? "hopper" : "blackwell", "trtllm", "gemm", {"gemm.csv"}, {}};
    p.knobs = {{"hbm", hopper ? 0.84 : 0.76, 1},
               {"load", hopper ? 80.0 : 73.0},
               {"store", hopper ? 26.0 : 11.0},
               {"gemm_bf16.start", hopper ? 3.1 * kUs : 2.4 * kUs, 0, {"split_finish"}},
               {"gemm_fp8.start", hopper ? 12 * kUs : 14 * kUs},
               {"gemm_fp8_block.chain", hopper ? 2.1 : 1.65}};
    if (hopper) {
        p.knobs.insert(p.knobs.end(), {{"gemm_fp8_block.start", 5 * kUs},
                                       {"gemm_bf16.tensor", 0.83, 1},
                                       {"gemm_fp8.tensor", 0.77, 1},
                                       {"gemm_fp8_block.tensor", 0.61, 1},
                                       {"gemm_fp8.quantise", 2, 0, {"gemm_fp8_block.quantise"}},
                                       {"absent_row", 0.067}});
    } else {
        p.knobs.insert(p.knobs.end(),
                       {{"gemm_fp8_block.start", 5.5 * kUs, 0, {"gemm_nvfp4.start"}},
                        {"gemm_bf16.tensor", 0.66, 1, {"gemm_fp8.tensor", "gemm_fp8_block.tensor"}},
                        {"gemm_nvfp4.tensor", 0.49, 1},
                        {"gemm_nvfp4.chain", 3.6},
                        {"gemm_fp8.quantise", 3},
                        {"gemm_fp8_block.quantise", 7},
                        {"gemm_nvfp4.quantise", 5}});
    }
    return p;
}

NumberFormat format_of_table(const std::string& table) {
    if (table == "bf16") return NumberFormat::bf16;
    if (table == "fp8") return NumberFormat::fp8;
    return table == "nvfp4" ? NumberFormat::nvfp4 : NumberFormat::fp8_block;
}

/// A fused MoE whose formats share all constants but tensor cores' and start.
struct MoeFit {
    std::string library;
    Keys formats;
    bool fits_start = false;  ///< of the first format; else as it stands in the preset
    bool per_expert = false;
    bool stream = false;  ///< SMs, not HBM, set the pace of loads
};

Problem moe(bool hopper, const MoeFit& what) {
    Problem p{hopper ? "hopper" : "blackwell",
              what.library,
              "moe_" + what.formats.front(),
              {"moe.csv"},
              {}};
    const auto shared = [&](const std::string& key, double start, double most = 0) {
        Keys tied;
        for (std::size_t i = 1; i < what.formats.size(); ++i)
            tied.push_back("moe_" + what.formats[i] + "." + key);
        p.knobs.push_back({key, start, most, tied});
    };
    shared("choice", 0.5 * kUs);
    shared("slot", 0.7 * kNs);
    shared("tile", 1 * kUs);
    shared("step", 100 * kNs);
    shared("pass", 0.5, 1);
    if (what.stream)
        shared("stream", 3);
    else
        shared("hbm", 0.9, 1);
    if (what.per_expert) shared("expert", 50 * kNs);
    if (what.fits_start) p.knobs.push_back({"start", 15 * kUs, 0, {}});
    for (std::size_t i = 0; i < what.formats.size(); ++i) {
        const std::string table = "moe_" + what.formats[i] + ".";
        p.knobs.push_back({table + "tensor", 0.6, 1, {}});
        if (i > 0) p.knobs.push_back({table + "start", 12 * kUs, 0, {}});
    }
    for (const std::string& format : what.formats) p.formats.push_back(format_of_table(format));
    p.rounds = 5;
    return p;
}

Problem prefill(bool hopper) {
    Problem p{hopper ? "hopper" : "blackwell", "trtllm", "prefill", {"attention_prefill.csv"}, {}};
    p.knobs = {{"start", 13 * kUs},
               {"row_cycles", 75},
               {"pass_bytes", 20},
               {"softmax", hopper ? 0.035 : 0.056},
               {"tail", 0.7}};
    if (hopper)  // Blackwell: one kernel for all, whose tensor cores are never what binds
        p.knobs.insert(p.knobs.end(),
                       {{"tensor", 0.7, 1}, {"fp8_softmax", 0.025}, {"fp8_window", 2.8}});
    return p;
}

Problem decode(bool hopper) {
    Problem p{hopper ? "hopper" : "blackwell", "trtllm", "decode", {"attention_decode.csv"}, {}};
    p.knobs = {{"start", 9 * kUs},
               {"hbm", 0.95, 1},
               {"load_bytes", hopper ? 25.0 : 50.0},
               {"head", 50 * kNs},
               {"merge", 100 * kNs}};
    if (hopper)
        p.knobs.insert(p.knobs.end(), {{"block", 2.3 * kUs},
                                       {"fp8_block", 0.5 * kUs},
                                       {"vector_rate", 10.5},
                                       {"vector_merge", 4 * kUs}});
    else
        p.knobs.push_back({"block", 0.5 * kUs, 0, {"fp8_block"}});
    return p;
}

Problem mla_prefill(bool hopper, const std::string& library) {
    Problem p{hopper ? "hopper" : "blackwell", library, "mla_prefill", {"mla_prefill.csv"}, {}};
    p.knobs = {{"start", 12 * kUs},
               {"fp8_start", 4 * kUs},
               {"pass_bytes", 800},
               {"tensor", 0.65, 1},
               {"block", 1.5 * kUs}};
    // The exponentials of the absorbed kernel never decide.
    if (!hopper || library == "trtllm") p.knobs.push_back({"softmax", hopper ? 5.0 : 10.0, 16});
    p.rounds = 6;
    return p;
}

Problem mla_decode(bool hopper, const std::string& library) {
    Problem p{hopper ? "hopper" : "blackwell", library, "mla_decode", {"mla_decode.csv"}, {}};
    const bool converts = hopper && library == "sglang";
    const std::vector<std::string> one_rate{"hbm_fp8"};
    const std::vector<std::string> one_share{"tensor_fp8"};
    p.knobs = {{"start", 11 * kUs},
               {"hbm", 0.85, 0.95, converts ? one_rate : std::vector<std::string>{}},
               {"split", 50 * kNs},
               {"passes", 2}};
    if (hopper && !converts) {
        p.knobs.insert(p.knobs.end(), {{"tensor", 0.65, 1}, {"tensor_fp8", 0.4, 1}});
    } else {
        p.knobs.push_back({"tensor", 0.65, 1, one_share});
    }
    if (converts)
        p.knobs.insert(p.knobs.end(), {{"conversion", 1.4}, {"conversion_start", 4 * kUs}});
    else
        p.knobs.push_back({"hbm_fp8", 0.85, 0.95});
    if (!hopper) p.knobs.push_back({"sm_bytes", 30, 64});
    p.rounds = 6;
    return p;
}

}  // namespace

std::vector<Problem> problems() {
    std::vector<Problem> all;
    for (const bool hopper : {true, false}) {
        all.push_back(gemm(hopper));
        all.push_back(prefill(hopper));
        all.push_back(decode(hopper));
        for (const std::string library : {"trtllm", "sglang"}) {
            all.push_back(mla_prefill(hopper, library));
            all.push_back(mla_decode(hopper, library));
        }
        all.push_back(moe(hopper, {"trtllm", {"bf16", "fp8"}, false, true}));
        all.push_back(moe(hopper, {"trtllm", {"fp8_block"}, true, true}));
        all.push_back(moe(hopper, {"sglang", {"bf16"}}));
        all.push_back(moe(hopper, {"sglang", {"fp8_block"}}));
    }
    all.push_back(moe(true, {"flashinfer-cutlass", {"bf16"}, false, true, true}));
    all.push_back(moe(false, {"trtllm", {"nvfp4"}, true, true}));
    all.push_back(moe(false, {"trtllm-min-latency", {"nvfp4"}, true}));
    all.push_back(moe(false, {"flashinfer-trtllm", {"bf16", "fp8_block", "nvfp4"}}));
    return all;
}

}  // namespace moehub::fit
