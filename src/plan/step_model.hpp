/// The time of a step, put together: units, pieces, pipeline, data parallelism, optimizer.
#pragma once
#include "plan/pipeline/pipeline.hpp"
#include "plan/units.hpp"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace moehub {

/// What data-parallel ranks do once a step, on the stage that has most of it.
struct DataParallelTime {
    double sums = 0;    ///< sums of gradients, beyond what the last backward pass hides
    double gather = 0;  ///< gathering of weights, beyond what the first forward pass hides
    double optimizer = 0;
    double offload = 0;

    double sum() const { return sums + gather + optimizer + offload; }
};

/// Weights of units on one GPU.
struct UnitWeights {
    double shared = 0;   ///< weights of all data-parallel ranks: attention, norms, FFNs, ends
    double experts = 0;  ///< weights of routed experts

    double sum() const { return shared + experts; }
    /// Weights that a GPU has where data-parallel ranks divide them.
    double divided(const TrainingRun& run, const ParallelLayout& layout) const;
};
UnitWeights weights_of(const Model& model, const ParallelLayout& layout, Unit unit);
UnitWeights weights_of(const Model& model, const ParallelLayout& layout, const UnitCounts& counts);

/// Bytes of a micro-batch's activations that a unit keeps for its backward pass.
double activations_of(const TrainingRun& run, const ParallelLayout& layout, Unit unit);

/// The times of one run's steps. Works on one thread; the communication that it asks for is shared.
class StepModel {
  public:
    /// Refers to the run, which outlives it.
    StepModel(const TrainingRun& run, std::shared_ptr<Communication> communication);

    TrainingStep step(const ParallelLayout& layout, bool exact);
    /// Seconds that a step takes at least: a bound by tables that needs no pipeline.
    double least_seconds(const ParallelLayout& layout);
    /// The pipeline of a step with every task, for pictures: at most `micro_batches` of them.
    PipelineResult pipeline(const ParallelLayout& layout, std::int64_t micro_batches) {
        Pieces pieces = pieces_of(layout, unit_times(layout, false), false);
        pieces.pipeline.micro_batches = std::min(pieces.pipeline.micro_batches, micro_batches);
        return run_pipeline(pieces.pipeline, true);
    }

  private:
    struct Pieces {
        std::vector<UnitCounts> counts;  ///< units of each piece, in the order of the model
        PipelineInput pipeline;
        std::vector<double> late;  ///< seconds by piece, both ways, that messages are late
    };
    using ShareKey = std::tuple<std::int64_t, int, int>;

    TokenShare tokens_of(const ParallelLayout& layout) const {
        return {layout.micro_batch, sequence_, layout.tp, layout.cp};
    }
    /// Seconds of a collective of data-parallel ranks over weights, `bytes` each.
    double over_weights(Collective::Op op, const ParallelLayout& layout, const UnitWeights& weights,
                        double bytes, bool exact);

    UnitTimes unit_times(const ParallelLayout& layout, bool exact);
    const LayerWork& attention(const TokenShare& tokens);
    const LayerWork& ffn(const TokenShare& tokens, std::int64_t width);
    const LayerWork& experts(const TokenShare& tokens, const ExpertShare& share);
    const LayerWork& end(const TokenShare& tokens, Unit unit);
    double imbalance(int ranks);

    void share_tensors(const ParallelLayout& layout, UnitTimes& times, bool exact);
    void share_context(const ParallelLayout& layout, UnitTimes& times, bool exact);
    void exchange_rows(const ParallelLayout& layout, UnitTimes& times, bool exact);
    void gather_weights(const ParallelLayout& layout, UnitTimes& times, bool exact);

    /// Bytes of a micro-batch's activations that wait in the host's memory.
    double offloaded(const ParallelLayout& layout, const UnitCounts& counts) const {
        if (!layout.offload.activations) return 0;
        return sum_over(counts, [&](std::size_t u) {
            return activations_of(run_, layout, static_cast<Unit>(u));
        });
    }
    Pieces pieces_of(const ParallelLayout& layout, const UnitTimes& times, bool exact);
    DataParallelTime data_parallel(const ParallelLayout& layout, const UnitTimes& times,
                                   const Pieces& pieces, bool exact);
    /// What a stage has, and how long its passes hide communication.
    struct StagePasses {
        UnitCounts counts{};
        double forward = 0;
        double backward = 0;
    };
    DataParallelTime of_stage(const ParallelLayout& layout, const StagePasses& passes,
                              std::int64_t micro_batches, bool exact);

    const TrainingRun& run_;
    TrainingKernels kernels_;
    std::shared_ptr<Communication> communication_;
    std::int64_t sequence_ = 0;
    double flops_per_token_ = 0;
    std::map<ShareKey, LayerWork> attention_;
    std::map<std::tuple<ShareKey, std::int64_t>, LayerWork> ffn_;
    std::map<std::tuple<std::int64_t, int, int>, LayerWork> experts_;
    std::map<std::tuple<ShareKey, int>, LayerWork> ends_;
    std::map<int, double> imbalance_;
};

/// Memory of the stage that has most; `pieces` in the order of the model, `held` by stage.
StepMemory memory_of(const TrainingRun& run, const ParallelLayout& layout,
                     const std::vector<UnitCounts>& pieces, const std::vector<std::int64_t>& held);

}  // namespace moehub
