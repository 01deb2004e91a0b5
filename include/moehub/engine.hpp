/// Engine: how a serving engine runs a model's steps, as plain values: presets/engines/*.toml, or a
/// file of the user's own. docs/serving.md says where each number comes from.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace moehub {

/// How tokens of data-parallel attention reach experts on other GPUs of a worker, and return.
enum class TokenExchange {
    gather,      ///< all-gather of all tokens before the experts, reduce-scatter after them
    all_to_all,  ///< a token once to each GPU that holds an expert of it
};

/// What an engine adds to its kernels on a generation of cards. Fitted (docs/serving.md).
struct EngineOverheads {
    bool fp8_cache = true;    ///< cache in FP8 where weights are quantised; false: bf16
    Ps host = 0;              ///< time between two steps, not hidden: scheduler, inputs, samples
    Ps host_request = 0;      ///< further time between two steps for each request
    Ps host_mixed = 0;        ///< further between steps of a worker that also reads prompts
    Ps small_kernel = 0;      ///< launch of a norm, an activation, a copy
    double mla_kernels = 0;   ///< further small kernels of latent attention: norms, copies
    double moe_kernels = 0;   ///< further small kernels of experts: top-k, counts, scales
    Ps w4_start = 0;          ///< launches of a layer whose experts' weights alone have 4 bits,
                              ///< beyond those of bf16, which is what was measured
    double start_hidden = 0;  ///< share of a kernel's launch and first loads that the kernel before
                              ///< covers (measured alone it covers nothing)
};

struct EngineSpec {
    std::string name;
    std::string title;  ///< one line for `moehub list`

    // Kernel libraries, best first and separated by commas: the first that the card has runs.
    std::string linear = "trtllm";
    std::string attention = "trtllm";
    std::string mla = "trtllm";
    std::string moe = "trtllm";
    /// The one library for experts whose rows a system brings.
    std::string dispatched = "trtllm";

    bool mixed_steps = true;          ///< prompts share steps with decoding; false: steps of their
                                      ///< own, for which decoding waits
    std::int64_t step_tokens = 8192;  ///< most new tokens of a step on one attention rank
    TokenExchange exchange = TokenExchange::gather;
    bool one_shot = true;        ///< small all-reduces in one kernel; false: NCCL alone
    bool shared_beside = false;  ///< shared experts run while routed ones do
    double memory = 0.9;         ///< share of the HBM beside weights that the cache gets

    double small_kernels = 4;  ///< norms, activations and copies of every layer
    EngineOverheads hopper;    ///< overheads of Hopper, and of cards of other generations
    EngineOverheads blackwell;

    const EngineOverheads& overheads(std::string_view generation) const {
        return generation == "blackwell" ? blackwell : hopper;
    }
};

/// Throws InputError when a value lies outside its limits, as reading a file would.
void check(const EngineSpec& engine);

}  // namespace moehub
