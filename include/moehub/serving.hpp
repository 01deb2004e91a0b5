/// Serving: what one step of an engine takes on the GPUs of one worker, operator by operator, and
/// what that means for a request (docs/serving.md).
///
///     ServingCase what{load_machine("dgx-h200"), load_model("deepseek-v3"),
///                      load_engine("trtllm"), {.attention_tp = 8, .moe_ep = 8}};
///     what.formats = checkpoint_formats(what.model, what.machine.gpu, NumberFormat::fp8_block);
///     ServingClock clock(what);
///     ServingStep step = clock.step({.requests = 64, .context = 4096});
#pragma once
#include <moehub/engine.hpp>
#include <moehub/kernel_calls.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// How a worker's GPUs share the model. attention_tp · attention_dp = moe_tp · moe_ep of them.
struct ServingLayout {
    int attention_tp = 1;  ///< GPUs that share heads, dense FFNs, shared experts and vocabulary
    int attention_dp = 1;  ///< groups of attention GPUs, each with its own requests
    int moe_tp = 1;        ///< GPUs that share each expert
    int moe_ep = 1;        ///< groups of moe_tp GPUs, among which experts are dealt out

    int gpus() const { return attention_tp * attention_dp; }
};

/// How weights are stored and multiplied, part by part.
struct ServingFormats {
    NumberFormat attention = NumberFormat::bf16;  ///< projections around attention
    NumberFormat dense = NumberFormat::bf16;      ///< dense FFNs and shared experts
    NumberFormat experts = NumberFormat::bf16;    ///< routed experts
    NumberFormat head = NumberFormat::bf16;
    NumberFormat cache = NumberFormat::bf16;  ///< format of the cache: bf16 or fp8
};

/// What published checkpoints of a model in that format have: fp8 everywhere but in the head (by
/// blocks where the model has latent attention); 4 bits in FFNs and, of models without experts, in
/// attention; w4a16 in routed experts alone. nvfp4 on a card without such tensor cores is w4a16.
/// The cache is fp8 where weights are.
ServingFormats checkpoint_formats(const Model& model, const Gpu& gpu, NumberFormat weights);

/// Formats of checkpoint_formats(), with the cache that the engine keeps on the card.
ServingFormats engine_formats(const EngineSpec& engine, const Model& model, const Gpu& gpu,
                              NumberFormat weights);

struct ServingCase {
    Machine machine;  ///< machine with at least the layout's GPUs
    Model model;
    EngineSpec engine;
    ServingLayout layout;
    ServingFormats formats;
    double expert_skew = 0.5;  ///< experts' shares follow a power law of this exponent; 0: alike
};

/// Throws InputError when the GPUs do not suffice, or heads, experts or widths do not divide. With
/// expert parallelism alone experts need not divide: copies of some fill the GPUs up.
void check(const ServingCase& what);

/// What one step does on a whole worker.
struct StepLoad {
    std::int64_t requests = 0;        ///< requests that decode
    double context = 0;               ///< tokens that each request has in the cache, on average
    int tokens_per_request = 1;       ///< more than 1: guesses are checked beside the next token
    std::int64_t prompts = 0;         ///< prompts that are read in this step
    std::int64_t prompt_tokens = 0;   ///< new tokens of each prompt
    std::int64_t prompt_context = 0;  ///< tokens of each prompt that are in the cache already
};

enum class OperatorKind {
    attention,  ///< attention over the cache
    linear,     ///< projections and dense FFNs
    router,
    shared_experts,
    experts,  ///< routed experts
    dispatch,
    combine,
    all_reduce,
    small,  ///< norms, activations, copies
    head,
    sampling,
    host,
};
std::string_view name_of(OperatorKind kind);  ///< "shared experts"

/// One operator that a step runs `count` times, and the time of each.
struct StepOperator {
    std::string name;  ///< "q_b", "attention", "experts"
    OperatorKind kind = OperatorKind::linear;
    double count = 0;
    double seconds = 0;

    double total() const { return count * seconds; }
};

struct ServingStep {
    std::vector<StepOperator> operators;  ///< operators in the order of the model
    double seconds = 0;                   ///< seconds of all operators
};

/// Bytes on the fullest GPU of a worker.
struct ServingMemory {
    double weights = 0;
    double experts = 0;          ///< bytes of weights that routed experts have
    double ends = 0;             ///< bytes of weights that both embeddings have
    double cache_per_token = 0;  ///< cache of one request's token, on the GPU that holds it
    double window_cache = 0;     ///< cache of one request in layers with a window
    double cache = 0;            ///< what the engine gives the cache of what weights leave
    double capacity = 0;         ///< bytes of HBM

    /// Requests of `context` tokens that one attention group can hold; 0: not even the weights fit.
    std::int64_t most_requests(double context) const;
};
ServingMemory serving_memory(const ServingCase& what);

class ServingCosts;

/// Times steps of one case. Not for several threads. Calls are predicted, and collectives
/// simulated, once each; clocks that share their costs share these, too.
class ServingClock {
  public:
    /// Throws InputError as check does. `costs`: those of a clock of the same machine, or empty.
    explicit ServingClock(ServingCase what, std::shared_ptr<ServingCosts> costs = nullptr);

    const ServingCase& what() const { return what_; }
    const std::shared_ptr<ServingCosts>& costs() const { return costs_; }

    /// The whole step. Throws InputError for a load of nothing or without context, and where the
    /// card lacks a kernel.
    ServingStep step(const StepLoad& load) const;

    /// Operators other than routed experts and what moves tokens to them and back: what any
    /// system's MoE layer is put between. Shared experts in full; of those that run beside routed
    /// ones, step() counts only what they take longer.
    std::vector<StepOperator> rest_operators(const StepLoad& load) const;

    /// The engine's own dispatch, routed experts and combine; none of a dense model.
    std::vector<StepOperator> moe_operators(const StepLoad& load) const;

    /// Time of a guess by the model's layer for multi-token prediction: one such layer and the
    /// head.
    double draft_seconds(const StepLoad& load) const;

  private:
    ServingCase what_;
    std::shared_ptr<ServingCosts> costs_;
};

ServingStep step_time(const ServingCase& what, const StepLoad& load);

/// Requests alike that a worker serves all the time.
struct RequestLoad {
    std::int64_t input = 0;
    std::int64_t output = 0;
    std::int64_t requests = 0;  ///< requests at once on the whole worker
    bool prefills = false;      ///< the worker also reads their prompts; false: it only decodes
    int drafts = 0;             ///< guesses that a step checks for each request
    double accepted = 0;        ///< guesses accepted of those drafts, on average
};

struct RequestTimes {
    double tpot = 0;               ///< seconds between a request's tokens, on average
    double prefill = 0;            ///< seconds of a step that reads one prompt beside decoding
    std::int64_t running = 0;      ///< requests at once that memory holds, no more than asked
    double tokens_per_second = 0;  ///< output of one GPU
};
RequestTimes request_times(const ServingClock& clock, const RequestLoad& load);

}  // namespace moehub
