/// One step of training: a model on a machine under a parallel layout, how long it takes, what it
/// takes of memory, and why.
///
///     TrainingRun run;
///     run.machine = training_machine(load_machine("h100-cluster"), 256);
///     run.model = load_model("qwen3-235b-a22b");
///     run.trainer = load_trainer("megatron-26.04");
///     run.sequence = 4096;
///     run.global_batch = 2048;
///     TrainingClock clock(run);
///     const auto layout = parse_parallel_layout("tp=2,pp=8,vpp=4,ep=32,system=deepep");
///     const TrainingStep step = clock.step(layout);
///     fmt::print("{:.1f} s, {:.1f} % MFU\n", step.seconds, 100 * step.mfu);
///
/// docs/planning.md says what is modelled and how well it agrees with published runs.
#pragma once
#include <moehub/kernel_calls.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/routing.hpp>
#include <moehub/trainer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// What data-parallel GPUs divide among themselves instead of each holding all.
enum class Sharding {
    none,   ///< nothing is divided: plain data parallelism
    zero1,  ///< optimizer states (Megatron's distributed optimizer)
    zero2,  ///< gradients as well: their sums are formed after every micro-batch
    fsdp,   ///< weights as well (ZeRO-3): gathered layer by layer, each way, for each micro-batch
};

/// What the backward pass computes again instead of keeping.
struct Recompute {
    bool norms = false;
    bool activations = false;  ///< activations of FFNs and experts
    bool attention = false;    ///< scores of attention and their sums: the attention kernel
    bool latents = false;      ///< queries, keys and values of latent attention, from their latents
    bool experts = false;      ///< FFNs and routed experts as a whole, with their dispatch
    bool all = false;          ///< the whole layer: only its input is kept

    friend bool operator==(const Recompute&, const Recompute&) = default;
};

/// What waits in the host's memory.
struct Offload {
    bool optimizer = false;    ///< states: read and written back over the link to the host
    bool activations = false;  ///< kept ones: out behind the forward pass, in before the backward

    friend bool operator==(const Offload&, const Offload&) = default;
};

enum class PassOverlap {
    none,
    one_f_one_b,  ///< a micro-batch's dispatch and combine beside another's compute in the steady
                  ///< state of 1F1B (Megatron's 1F1B overlap)
    dualpipe,     ///< one_f_one_b from both ends of the pipeline (DeepSeek): two copies of weights
};

/// Parallel layout: how a model's work is cut. Data parallelism takes what is left: gpus /
/// (tp·cp·pp) for attention, gpus / (etp·ep·pp) for experts. Ranks count tp (etp) first, then cp,
/// data (ep, data), pp last.
struct ParallelLayout {
    int tp = 1;           ///< GPUs of tensor parallelism with sequence parallelism, inside a node
    int cp = 1;           ///< GPUs of context parallelism: a sequence's tokens
    int pp = 1;           ///< pipeline stages
    int vpp = 1;          ///< pieces of a stage that are visited in turn
    int ep = 1;           ///< ranks that experts are spread over
    int etp = 1;          ///< GPUs that share each expert: may differ from tp (folding)
    int micro_batch = 1;  ///< sequences of a micro-batch
    Sharding sharding = Sharding::zero1;
    Recompute recompute;
    Offload offload;
    PassOverlap overlap = PassOverlap::none;
    std::string system;  ///< system that MoE layers run under; empty: the trainer's dispatcher

    friend bool operator==(const ParallelLayout&, const ParallelLayout&) = default;
};

/// Members of a parallel layout that somebody chose; the others are open.
struct PartialLayout {
    std::optional<int> tp = {}, cp = {}, pp = {}, vpp = {}, ep = {}, etp = {}, micro_batch = {};
    std::optional<Sharding> sharding = {};
    std::optional<Recompute> recompute = {};
    std::optional<Offload> offload = {};
    std::optional<PassOverlap> overlap = {};
    std::optional<std::string> system = {};

    friend bool operator==(const PartialLayout&, const PartialLayout&) = default;
};
/// The layout that is chosen, with what is open as `start` has it.
ParallelLayout completed(const PartialLayout& chosen, ParallelLayout start = {});

/// Text of a layout, what differs from the default; reads back equal:
/// "tp=2,pp=8,vpp=4,ep=32,recompute=selective,overlap=1f1b,system=deepep".
std::string to_text(const ParallelLayout& layout);
std::string to_text(const PartialLayout& chosen);  ///< text of all that is chosen; nothing: empty
/// Reads KEY=VALUE,…: keys of parallel_keys(), each once, also of those that `chosen` has. Throws
/// InputError: unknown keys, values that are not allowed.
PartialLayout parse_partial_layout(std::string_view text, PartialLayout chosen = {});
/// A whole layout, written over `start` as parse_partial_layout writes one.
ParallelLayout parse_parallel_layout(std::string_view text, ParallelLayout start = {});
/// Keys of a layout's text: tp cp pp vpp ep etp mb sharding recompute offload overlap system.
std::vector<std::string> parallel_keys();

Recompute selective_recompute();  ///< norms, activations, and latents where a model has them
std::string_view name_of(Sharding sharding);
std::string_view name_of(PassOverlap overlap);
std::string name_of(const Recompute& recompute);
std::string name_of(const Offload& offload);

/// `gpus` GPUs of the machine for training: of a larger machine's nodes as many each as divide the
/// GPUs evenly (256 of NVL72 racks: 64 of each of four). Throws InputError as with_gpus does.
Machine training_machine(const Machine& machine, int gpus);

/// What is trained, and on what.
struct TrainingRun {
    Machine machine;  ///< already of the size wanted (training_machine)
    Model model;
    TrainerSpec trainer;
    std::int64_t sequence = 0;                    ///< tokens of a sequence; 0: the model's
    std::int64_t global_batch = 0;                ///< sequences of a step
    NumberFormat precision = NumberFormat::bf16;  ///< bf16, or fp8 of linear layers and experts
    /// How full experts are; balanced: all are as likely, drawn at random as trainers force it.
    RoutingSpec routing{.shares = RoutingSpec::Shares::balanced};
    bool mtp = true;  ///< multi-token prediction runs, where the model has it

    int gpus() const { return machine.gpus(); }
};

/// Seconds of a step on the GPUs of the stage that has most to do; they add up to the step.
struct StepParts {
    double attention = 0;   ///< products and scores
    double dense = 0;       ///< dense FFNs, shared experts
    double experts = 0;     ///< routed experts' products and activation
    double head = 0;        ///< embedding, logits, loss
    double small = 0;       ///< norms, residual adds, router, permutation, casts
    double recomputed = 0;  ///< compute done for the second time
    double tp = 0;          ///< communication of tensor parallelism that nothing hides
    double cp = 0;          ///< communication of context parallelism that nothing hides
    double ep = 0;          ///< communication of experts that nothing hides
    double pp = 0;          ///< communication of the pipeline that nothing hides
    double dp = 0;          ///< communication of data parallelism that nothing hides
    double bubble = 0;      ///< idle time: the pipeline fills and drains, other stages are longer
    double imbalance = 0;   ///< time of the fullest expert rank beyond the mean
    double optimizer = 0;
    double offload = 0;  ///< moves to the host and back that nothing hides
    double host = 0;     ///< kernels wait to be issued; a step's data and logging

    double sum() const;
};

/// Bytes of the GPU that has most.
struct StepMemory {
    double weights = 0;
    double gradients = 0;
    double optimizer = 0;
    double activations = 0;
    double buffers = 0;    ///< buffers of dispatch, of gathered weights, of pipeline messages
    double workspace = 0;  ///< logits and their gradients, CUDA's and NCCL's own
    double margin = 0;     ///< room for fragmentation: a stated share of all others
    double host = 0;       ///< bytes in the host's memory: what was offloaded

    double sum() const;  ///< bytes in the GPU's memory
};

/// One stage's part of a step, for pictures: seconds of one micro-batch.
struct StageTime {
    int stage = 0;
    int piece = 0;  ///< piece of the stage, below vpp
    double forward = 0;
    double backward = 0;
};

struct TrainingStep {
    ParallelLayout layout;
    double seconds = 0;
    double tokens_per_second = 0;  ///< tokens per second of a GPU
    double flops_per_token = 0;    ///< FLOPs as the trainer counts, forward and backward
    double mfu = 0;                ///< share of the bf16 peak
    StepParts parts;
    StepMemory memory;
    double capacity = 0;       ///< bytes of a GPU's memory
    double host_capacity = 0;  ///< a GPU's share of the host's memory; 0: not known
    bool fits = false;
    std::string limit;  ///< what the step's time goes to beyond compute, in a few words
    std::int64_t micro_batches = 0;
    std::vector<StageTime> stages;  ///< stages of the pipeline, filled by exact() alone

    double tflops() const { return tokens_per_second * flops_per_token / 1e12; }
};

/// One line that says why the layout cannot run and what could, or empty: divisions that do not
/// come out, more stages than layers, a batch that micro-batches do not divide, …
std::string why_not(const TrainingRun& run, const ParallelLayout& layout);

/// Throws InputError as why_not says, or when the run itself is impossible.
void check(const TrainingRun& run);

/// FLOPs of one token, forward and backward: 6 for each weight that multiplies it (the embedding is
/// no product), and 12 for each pair of query and key element, or half of the pairs where
/// `causal`. Multi-token prediction is counted when `mtp`.
double training_flops(const Model& model, std::int64_t sequence, bool causal, bool mtp);

class Communication;
class StepModel;

/// Times of many layouts of one run. Costs of operators and of communication are asked once and
/// shared by copies; copies may run in different threads.
class TrainingClock {
  public:
    /// Throws InputError as check(run) does.
    explicit TrainingClock(TrainingRun run);
    ~TrainingClock();
    TrainingClock(const TrainingClock& other);
    /// A clock of the same run under another trainer, with the same simulated communication.
    TrainingClock(const TrainingClock& other, TrainerSpec trainer);
    /// A clock of another run of the same model on the same machine with the same routing, and with
    /// the same simulated communication. Throws InputError as check(run) does, or when they differ.
    TrainingClock(TrainingRun run, const TrainingClock& other);
    TrainingClock& operator=(const TrainingClock&) = delete;

    const TrainingRun& run() const;

    /// The step by tables of simulated sizes, interpolated. Throws InputError as why_not says.
    TrainingStep step(const ParallelLayout& layout);
    /// The step with collectives and MoE layers simulated as they are, and stages filled.
    TrainingStep exact(const ParallelLayout& layout);
    /// Seconds below which no step() of the layout, which why_not() allows, is; sooner known.
    double least_seconds(const ParallelLayout& layout);
    /// The layout's pipeline, as draw_pipeline draws it, with enough micro-batches to show the
    /// steady state; empty where it has none.
    std::string picture(const ParallelLayout& layout, int width);

  private:
    TrainingRun run_;
    std::shared_ptr<Communication> communication_;
    std::unique_ptr<StepModel> model_;
};

}  // namespace moehub
