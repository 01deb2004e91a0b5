/// The training runs of the Pangu Ultra MoE paper (arXiv 2505.04519), as the planner times them:
/// the baseline, the optimised run, and what lies between.
#pragma once
#include "study/reproduce_tables.hpp"

#include <moehub/shape_search.hpp>
#include <moehub/training_runs.hpp>

#include <functional>
#include <string>
#include <vector>

namespace moehub {

/// What the paper's run has beyond its baseline.
struct PanguTechniques {
    bool hierarchical = false;  ///< all-gather between nodes, all-to-all inside
    bool overlap = false;       ///< forward and backward of two micro-batches beside each other
    bool memory = false;        ///< recomputation by operator, and tensors swapped to the host
    bool placement = false;     ///< experts placed by their load
};
inline constexpr PanguTechniques kAllTechniques{true, true, true, true};

struct PanguCase {
    std::string name;
    PanguTechniques techniques;
    int npus = 4096;
};

/// Times cases; equal ones once.
class PanguRuns {
  public:
    /// `tick` is called between and in them, and may throw.
    explicit PanguRuns(std::function<void()> tick = [] {});
    /// Under the paper's layout, as `moehub validate` answers its rows.
    const TrainingStep& step(const PanguCase& one);
    /// All techniques on 6,144 NPUs, with as many layers.
    TrainingStep with_layers(int layers);
    /// The fastest shape of so many layers with as many parameters, all and active, within 5 %; its
    /// `base` is the model's own.
    ShapeSearch fastest_shape(int layers);

  private:
    std::string optimised_layout();
    TrainerSpec trainer(const PanguTechniques& techniques) const;

    std::function<void()> tick_;
    TrainerSpec before_;
    TrainerSpec after_;
    RunAnswers answers_;
};

Reproduction reproduce_pangu(const ReproduceOptions& options);

}  // namespace moehub
