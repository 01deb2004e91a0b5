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
    double backward = 0;  ///< seconds of gradients of inputs and of weights
    double weights = 0;   ///< part of backward that may wait: gradients of weights (DualPipe's W)
    double pair = 0;      ///< seconds beside a backward of another micro-batch; without overlap
                          ///< forward + backward, or 0
};

struct PipelineInput {
    enum class Schedule { one_f_one_b, dualpipe };
    Schedule schedule = Schedule::one_f_one_b;
    int stages = 1;
    int pieces = 1;  ///< pieces of a stage; dualpipe: 1
    std::int64_t micro_batches = 1;
    std::vector<PieceTime> times;  ///< times in the order of the model: pieces · stages of them
    double send = 0;               ///< seconds from a task's end to the next stage's start
};

/// What a task of a pipeline computes, of one micro-batch or of two (pair).
enum class TaskWork : char {
    forward,
    backward,
    backward_inputs,  ///< dualpipe: a backward whose gradients of weights wait
    weights,          ///< dualpipe: gradients of weights that waited
    pair,
};
inline bool is_backward(TaskWork work) {
    return work == TaskWork::backward || work == TaskWork::backward_inputs;
}

/// One task, for pictures. Pieces are numbered within their stage; of dualpipe 0 is the one that
/// works for micro-batches from the first stage, 1 for those from the last, whose numbers come
/// after the others'.
struct PipelineTask {
    TaskWork work = TaskWork::forward;
    int stage = 0;
    int piece = 0;                 ///< piece; a pair's forward
    int other_piece = 0;           ///< piece of a pair's backward
    std::int64_t micro_batch = 0;  ///< micro-batch; a pair's forward
    std::int64_t other = 0;        ///< micro-batch of a pair's backward
    double begin = 0;
    double end = 0;
};

struct PipelineResult {
    double seconds = 0;
    std::vector<double> busy;  ///< seconds of each stage
    /// Most forward passes of a piece whose backward has not ended, by stage: those whose
    /// activations are kept.
    std::vector<std::int64_t> held;
    std::vector<PipelineTask> tasks;  ///< tasks, only where asked for
};

/// A task starts when its stage is free, all before it in the stage's order are done, and what it
/// needs from its neighbours has arrived. One piece whose pair is shorter than forward + backward
/// makes 1F1B run pairs as one task, with a longer warm-up: 2(p − 1 − s) + (v − 1)p + 1 forwards on
/// stage s.
///
/// Many micro-batches repeat: once rounds of the steady state do, the rest is added as rounds,
/// which is exact. Where they do not soon (stages nearly as slow as the slowest, sends
/// longer than tasks), the rest is an estimate, within 0.3 % in tests. `keep_tasks`: every task is
/// run and returned, in an order in which each stage's begin one after the other. Throws
/// InputError: interleaving needs a number of micro-batches that the stages divide, dualpipe an
/// even number of stages and an even number of micro-batches that is at least twice as large; times
/// that are negative or no numbers.
PipelineResult run_pipeline(const PipelineInput& input, bool keep_tasks = false);

/// Stages as lines, time from left to right in at most `width` columns, labels included: a task
/// opens with its micro-batch, a digit forward, a letter backward, both of a pair; dots wait. A
/// legend is the last line. Throws InputError without tasks, or below 72 columns.
std::string draw_pipeline(const PipelineResult& result, int width);

}  // namespace moehub
