/// A model as it is served on all GPUs of a machine: the steps of an engine, with MoE layers that
/// are simulated under each of several systems (docs/serving.md).
///
///     Serving serving = serving_on(load_machine("h100-cluster"), load_model("deepseek-v3"),
///                                  load_engine("sglang"));
///     serving.context = 2000;
///     serving.batch_per_gpu = 128;
///     for (const ServedStep& one : serve(serving, load_systems({"deepep-ll", "moe-hub"})))
///         fmt::print("{} {:.0f} tokens/s a GPU\n", one.system, one.tokens_per_second);
#pragma once
#include <moehub/layer.hpp>
#include <moehub/routing.hpp>
#include <moehub/serving.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// What runs while rows travel.
enum class BatchOverlap {
    none,          ///< nothing runs
    single_batch,  ///< shared experts run
    two_batch,     ///< kernels of the other half of the batch run
};
std::string_view name_of(BatchOverlap overlap);  ///< "two-batch"

struct Serving {
    ServingCase what;                 ///< its layout takes all GPUs of its machine
    RoutingSpec routing;              ///< routing of a MoE layer's tokens
    std::optional<Routing> recorded;  ///< recorded routing instead: its first layer, over and over
    Placement placement;       ///< experts on the layout's moe_ep ranks; unused of a dense model
    bool prefill = false;      ///< prompts are read; false: each request decodes its next token
    std::int64_t context = 0;  ///< tokens that a request has in the cache; or of a prompt
    std::int64_t batch_per_gpu = 0;  ///< requests, or prompts, at a time
    int drafts = 0;                  ///< decode: guesses that a step checks for each request
    double accepted = 0;             ///< guesses accepted of those drafts, on average
    BatchOverlap overlap = BatchOverlap::none;
    LayerOptions layer;

    int gpus() const { return what.layout.gpus(); }
    std::int64_t tokens_per_gpu() const;  ///< tokens of a GPU that a MoE layer sees
};

/// How a model is laid out over all GPUs of a machine.
struct ServingSetup {
    NumberFormat weights = NumberFormat::fp8;
    int attention_tp = 1;  ///< GPUs that share attention; groups of them are data parallel
    int expert_tp = 1;     ///< GPUs that share each expert
    int copies = 0;        ///< least copies of experts: as many slots on every GPU, none empty
    RoutingSpec routing;   ///< routing of tokens by which EPLB places experts and their copies
};
Serving serving_on(const Machine& machine, const Model& model, const EngineSpec& engine,
                   const ServingSetup& setup = {});

/// The placement of experts that EPLB makes for the routing's first layer: as many slots on every
/// rank, at least `copies` of them for copies, none empty.
Placement eplb_placement(const Routing& routing, int ranks, int copies);

/// Throws InputError for nothing to do, weights or cache that do not fit (with what would), and
/// halves of nothing.
void check(const Serving& serving);

/// Memory of the fullest GPU, with the copies that the placement gives it.
ServingMemory memory_of(const Serving& serving);

/// Requests of the serving's context that a GPU has room for.
std::int64_t most_batch_per_gpu(const Serving& serving);

/// A step of the served model under one system.
struct ServedStep {
    std::string system;                   ///< system, or engine with its own MoE layers
    std::vector<StepOperator> operators;  ///< both halves', where there are two; hidden ones, too
    double seconds = 0;                   ///< seconds of the step
    double hidden = 0;                    ///< seconds of operators that ran beside others
    double tpot = 0;                      ///< decode: seconds between a request's tokens
    double tokens_per_second = 0;         ///< rate of one GPU: of output, or of prompts
    double network_busy = 0;              ///< the busiest link's share of the MoE layer's time
    std::string busiest_link;             ///< "gpu 3 to leaf 3"
};

/// Operators summed up as published breakdowns name them, in the order of a layer: "attention
/// core", "GEMM (dense)", "dispatch", … Only parts that take time.
struct ServedPart {
    std::string name;
    double seconds = 0;
};
std::vector<ServedPart> parts_of(const ServedStep& step);
std::vector<std::string_view> served_part_names();
double part_seconds(const ServedStep& step, std::string_view name);

struct ServeOptions {
    int threads = 0;                      ///< layers simulated at a time; 0: as many as cores
    std::shared_ptr<ServingCosts> costs;  ///< the same machine's earlier costs, or empty
    /// Called with (layers done, layers in all). May be empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// Serves by the engine's own MoE layers, or a dense model.
ServedStep serve_by_engine(const Serving& serving, const ServeOptions& options = {});
/// Steps in the order of the systems. Throws InputError as check() and check_layer() do, and for an
/// overlap that the system's kernels do not allow.
std::vector<ServedStep> serve(const Serving& serving, const std::vector<SystemSpec>& systems,
                              const ServeOptions& options = {});

/// What a system runs in a served model: sent off as a graph, experts and rows in its formats.
SystemSpec served_system(SystemSpec system, const ServingFormats& formats);

/// One of several sizes that were tried.
struct ServedPoint {
    int gpus = 0;
    std::int64_t batch_per_gpu = 0;
    std::optional<ServedStep> step;  ///< none: it does not run
    std::string why_not;
    bool best = false;  ///< no other gives more tokens/s a GPU in as little time per token
};
/// Every serving with every batch, under the system, or the engine's own without one.
std::vector<ServedPoint> serve_sizes(const std::vector<Serving>& servings,
                                     const std::vector<std::int64_t>& batches,
                                     const std::optional<SystemSpec>& system,
                                     const ServeOptions& options = {});

/// The largest batch per GPU whose time per token (prefill: whose step) is at most `seconds`;
/// without a step when already one request takes longer.
ServedPoint find_batch(const Serving& serving, const std::optional<SystemSpec>& system,
                       double seconds, const ServeOptions& options = {});

}  // namespace moehub
