
#include "base/input_error.hpp"
#include "plan/pipeline/schedules.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMaxPieces = 1024;                          ///< pieces of all stages
constexpr std::int64_t kMaxMicroBatches = 1'000'000'000;  ///< counts stay far from overflow

void check_counts(const PipelineInput& input) {
    if (input.stages < 1 || input.pieces < 1 || input.stages > kMaxPieces ||
        input.pieces > kMaxPieces / input.stages)
        throw input_error(
            "a pipeline of {} stages with {} pieces each: stages and pieces are at least 1, and at "
            "most {} pieces in all",
            input.stages, input.pieces, kMaxPieces);
    if (input.micro_batches < 1 || input.micro_batches > kMaxMicroBatches)
        throw input_error("a pipeline of {} micro-batches: 1 to {} are possible",
                          input.micro_batches, kMaxMicroBatches);
    const auto pieces = static_cast<std::size_t>(input.stages * input.pieces);
    if (input.times.size() != pieces)
        throw input_error(
            "a pipeline of {} stages with {} pieces each takes {} piece times, not {}",
            input.stages, input.pieces, pieces, input.times.size());
}

void check_schedule(const PipelineInput& input) {
    const std::int64_t stages = input.stages;
    if (input.schedule == PipelineInput::Schedule::one_f_one_b) {
        if (input.pieces > 1 && input.micro_batches % stages != 0)
            throw input_error(
                "interleaving needs a multiple of its {} stages as micro-batches, not {}; {} would "
                "do",
                stages, input.micro_batches, (input.micro_batches / stages + 1) * stages);
        return;
    }
    if (input.pieces != 1)
        throw input_error("dualpipe takes 1 piece a stage, not {}", input.pieces);
    if (stages % 2 != 0)
        throw input_error("dualpipe needs an even number of stages, not {}", stages);
    if (input.micro_batches % 2 != 0 || input.micro_batches < 2 * stages)
        throw input_error(
            "dualpipe of {} stages needs an even number of micro-batches from {} on, not {}",
            stages, 2 * stages, input.micro_batches);
}

void check_times(const PipelineInput& input) {
    const auto possible = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
    if (!possible(input.send))
        throw input_error("a pipeline's send time is {} s: 0 or more is possible", input.send);
    for (std::size_t i = 0; i < input.times.size(); ++i) {
        const PieceTime& time = input.times[i];
        if (!possible(time.forward) || !possible(time.backward) || !possible(time.weights) ||
            !possible(time.pair) || time.weights > time.backward)
            throw input_error(
                "piece {} of a pipeline takes {} s forward, {} s backward, of it {} s for weights, "
                "{} s as a pair: all are 0 or more, weights at most backward",
                i, time.forward, time.backward, time.weights, time.pair);
    }
}

// x(k) repeats x(k - lag) when x(k) - x(k - lag) is the same in all components; then
// x(k + n·lag) = x(k) + n·(x(k) - x(k - lag)).

/// Share of a time by less than which sums of the same terms differ in another order.
constexpr double kRounding = 1e-13;

constexpr int kNarrowest = 72;  ///< width of the legend

/// Whether tasks are wide enough for their numbers to be read.
enum class Labels { none, numbers };

std::string digit(std::int64_t micro_batch) {
    return fmt::format("{}", micro_batch % 10);
}
std::string letter(std::int64_t micro_batch) {
    return std::string(1, static_cast<char>('a' + micro_batch % 10));
}

/// What a task shows in its columns, from its first to its last.
std::string cell(const PipelineTask& task, int column) {
    if (task.work == TaskWork::pair && column > 0) return column == 1 ? letter(task.other) : "▒";
    if (column > 0) return task.work == TaskWork::forward ? "░" : "▓";
    if (task.work == TaskWork::weights) return "w";
    return is_backward(task.work) ? letter(task.micro_batch) : digit(task.micro_batch);
}

/// One stage's columns; its tasks come in the order of time. A column shows the task at its middle.
std::string line(const std::vector<const PipelineTask*>& tasks, int columns, double seconds,
                 Labels labels) {
    constexpr int kShade = 2;  // a column of a task beyond its numbers
    std::string text;
    std::size_t next = 0;
    int since = 0;  // columns of the task so far
    for (int column = 0; column < columns; ++column, ++since) {
        const double at = (column + 0.5) * seconds / columns;
        while (next < tasks.size() && tasks[next]->end <= at) {
            ++next;
            since = 0;
        }
        const int shown = labels == Labels::numbers ? since : kShade;
        text += next < tasks.size() && tasks[next]->begin <= at ? cell(*tasks[next], shown) : "·";
        if (next < tasks.size() && tasks[next]->begin > at) since = -1;
    }
    return text;
}

/// Columns of the picture: at most `room`, and such that the shortest forward takes whole columns
/// where that leaves most of them: equal tasks then look equal.
int columns_of(const PipelineResult& result, int room) {
    double shortest = result.seconds;
    for (const PipelineTask& task : result.tasks)
        if (task.work == TaskWork::forward && task.end > task.begin)
            shortest = std::min(shortest, task.end - task.begin);
    const double forwards = result.seconds / shortest;
    const double columns = std::floor(room / forwards) * forwards;
    return columns > room * 0.6 ? static_cast<int>(std::lround(columns)) : room;
}

std::string legend(const PipelineResult& result, Labels labels) {
    const auto any = [&result](TaskWork work) {
        return std::any_of(result.tasks.begin(), result.tasks.end(),
                           [work](const PipelineTask& task) { return task.work == work; });
    };
    const bool numbers = labels == Labels::numbers;
    std::string text = numbers ? "0-9 ░ forward, a-j ▓ backward" : "░ forward, ▓ backward";
    if (any(TaskWork::pair)) text += numbers ? ", 0a ▒ both" : ", ▒ both";
    if (any(TaskWork::weights)) text += numbers ? ", w ▓ weights" : "";
    return text + ", · waits; % busy";
}

}  // namespace

PipelineResult run_pipeline(const PipelineInput& input, bool keep_tasks) {
    check_counts(input);
    check_schedule(input);
    check_times(input);
    return input.schedule == PipelineInput::Schedule::dualpipe ? run_dualpipe(input, keep_tasks)
                                                               : run_one_f_one_b(input, keep_tasks);
}

SteadyState::SteadyState(std::size_t size, std::size_t limit, std::size_t lags)
    : size_(size), limit_(limit), lags_(lags) {
    states_.reserve(4 * size);
}

bool SteadyState::add(std::span<const double> state) {
    states_.insert(states_.end(), state.begin(), state.end());
    ++rounds_;
    const std::size_t most = std::min(lags_, rounds_ - 1);
    for (std::size_t lag = 1; lag <= most; ++lag)
        if (repeats(lag)) return true;
    return false;
}

bool SteadyState::repeats(std::size_t lag) {
    const double* last = states_.data() + (rounds_ - 1) * size_;
    const double* before = last - lag * size_;
    const double shift = last[0] - before[0];
    const double tolerance = kRounding * last[0];
    for (std::size_t i = 1; i < size_; ++i)
        if (std::abs(last[i] - before[i] - shift) > tolerance) return false;
    lag_ = lag;
    return true;
}

void SteadyState::skip(std::span<double> state, double rounds) const {
    const std::size_t lag = lag_ > 0 ? lag_ : std::max<std::size_t>(rounds_ / 2, 1);
    const double* last = states_.data() + (rounds_ - 1) * size_;
    const double* before = last - lag * size_;
    const double turns = rounds / static_cast<double>(lag);
    const double common = last[0] - before[0];
    for (std::size_t i = 0; i < size_; ++i)
        state[i] += turns * (lag_ > 0 ? common : last[i] - before[i]);
}

std::string draw_pipeline(const PipelineResult& result, int width) {
    if (result.tasks.empty()) throw InputError("a pipeline without tasks kept cannot be drawn");
    if (width < kNarrowest)
        throw input_error("a pipeline is drawn in {} columns or more, not {}", kNarrowest, width);
    if (result.seconds <= 0) throw InputError("a pipeline that takes no time cannot be drawn");
    std::vector<std::vector<const PipelineTask*>> stages(result.busy.size());
    for (const PipelineTask& task : result.tasks)
        stages[static_cast<std::size_t>(task.stage)].push_back(&task);
    const std::string last = fmt::format("{}", stages.size() - 1);
    const int columns = columns_of(result, width - static_cast<int>(last.size()) - 16);
    constexpr std::size_t kColumnsOfATask = 2;
    const Labels labels = static_cast<std::size_t>(columns) < kColumnsOfATask * stages[0].size()
                              ? Labels::none
                              : Labels::numbers;
    std::string text;
    for (std::size_t s = 0; s < stages.size(); ++s)
        text += fmt::format("stage {:>{}}  {} {:5.1f} %\n", s, last.size(),
                            line(stages[s], columns, result.seconds, labels),
                            100 * result.busy[s] / result.seconds);
    return text + legend(result, labels) + "\n";
}

}  // namespace moehub
