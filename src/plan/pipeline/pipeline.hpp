/// A pipeline's schedule, run task by task: 1F1B, interleaved 1F1B, DualPipe.
///
/// Stage s of p holds the pieces s, p + s, 2p + s, … of the model (Megatron's interleaving); with
/// one piece a stage that is plain 1F1B. DualPipe feeds micro-batches from both ends: stage s also
/// holds piece p − 1 − s.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

/// Seconds of one micro-batch in one piece.
struct PieceTime {
    double forward = 0;
    double backward = 0;  ///< gradients of inputs and of weights
    double weights = 0;   ///< of backward, what may wait: gradients of weights (DualPipe's W)
    double pair = 0;      ///< a forward beside a backward of another micro-batch; without overlap
                          ///< forward + backward
};

struct PipelineInput {
    enum class Schedule { one_f_one_b, dualpipe };
    Schedule schedule = Schedule::one_f_one_b;
    int stages = 1;
    int pieces = 1;  ///< of a stage; dualpipe: 1
    std::int64_t micro_batches = 1;
    std::vector<PieceTime> times;  ///< in the order of the model: pieces · stages of them
    double send = 0;               ///< from the end of a task to the start of the next stage's
};

/// One task, for pictures.
struct PipelineTask {
    enum class Kind { forward, backward, pair };
    Kind kind = Kind::forward;
    int stage = 0;
    int piece = 0;
    std::int64_t micro_batch = 0;  ///< of a pair: the one forward
    std::int64_t other = 0;        ///< of a pair: the one backward
    double begin = 0;
    double end = 0;
};

struct PipelineResult {
    double seconds = 0;
    std::vector<double> busy;  ///< of each stage
    /// Of each stage: forward passes of a piece whose backward has not ended, at most; what their
    /// activations take.
    std::vector<std::int64_t> held;
    std::vector<PipelineTask> tasks;  ///< only where asked for
};

/// Many micro-batches repeat: past a few rounds of the steady state the rest is added as rounds.
/// `keep_tasks`: every task is run and returned. Throws InputError: interleaving needs a number of
/// micro-batches that the stages divide, dualpipe an even number of stages and at least twice as
/// many micro-batches.
PipelineResult run_pipeline(const PipelineInput& input, bool keep_tasks = false);

/// Seconds of a pipeline of equal pieces without send time, 1F1B: (m + (p − 1) / v) · v · (F + B).
double even_pipeline(int stages, int pieces, std::int64_t micro_batches, double forward,
                     double backward);

/// Stages as lines, time from left to right in at most `width` columns: digits of micro-batches
/// forward, letters backward, blanks wait.
std::string draw_pipeline(const PipelineResult& result, int width);

}  // namespace moehub
