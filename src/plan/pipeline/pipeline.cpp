#include "plan/pipeline/pipeline.hpp"

#include "plan/pipeline/schedules.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMaxPieces = 1024;                          ///< of all stages
constexpr std::int64_t kMaxMicroBatches = 1'000'000'000;  ///< counts stay far from overflow

void check_counts(const PipelineInput& input) {
    if (input.stages < 1 || input.pieces < 1 || input.stages > kMaxPieces ||
        input.pieces > kMaxPieces / input.stages)
        throw InputError(
            fmt::format("a pipeline of {} stages with {} pieces each: stages and pieces are at "
                        "least 1, and at most {} pieces in all",
                        input.stages, input.pieces, kMaxPieces));
    if (input.micro_batches < 1 || input.micro_batches > kMaxMicroBatches)
        throw InputError(fmt::format("a pipeline of {} micro-batches: 1 to {} are possible",
                                     input.micro_batches, kMaxMicroBatches));
    const auto pieces = static_cast<std::size_t>(input.stages * input.pieces);
    if (input.times.size() != pieces)
        throw InputError(
            fmt::format("a pipeline of {} stages with {} pieces each takes {} piece times, not {}",
                        input.stages, input.pieces, pieces, input.times.size()));
}

void check_schedule(const PipelineInput& input) {
    const std::int64_t stages = input.stages;
    if (input.schedule == PipelineInput::Schedule::one_f_one_b) {
        if (input.pieces > 1 && input.micro_batches % stages != 0)
            throw InputError(fmt::format(
                "interleaving needs a multiple of its {} stages as micro-batches, not "
                "{}; {} would do",
                stages, input.micro_batches, (input.micro_batches / stages + 1) * stages));
        return;
    }
    if (input.pieces != 1)
        throw InputError(fmt::format("dualpipe takes 1 piece a stage, not {}", input.pieces));
    if (stages % 2 != 0)
        throw InputError(fmt::format("dualpipe needs an even number of stages, not {}", stages));
    if (input.micro_batches % 2 != 0 || input.micro_batches < 2 * stages)
        throw InputError(
            fmt::format("dualpipe of {} stages needs an even number of micro-batches from {} on, "
                        "not {}",
                        stages, 2 * stages, input.micro_batches));
}

void check_times(const PipelineInput& input) {
    const auto possible = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
    if (!possible(input.send))
        throw InputError(
            fmt::format("a pipeline's send time is {} s: 0 or more is possible", input.send));
    for (std::size_t i = 0; i < input.times.size(); ++i) {
        const PieceTime& time = input.times[i];
        if (!possible(time.forward) || !possible(time.backward) || !possible(time.weights) ||
            !possible(time.pair) || time.weights > time.backward)
            throw InputError(
                fmt::format("piece {} of a pipeline takes {} s forward, {} s backward, of it {} s "
                            "for weights, {} s as a pair: all are 0 or more, weights at most "
                            "backward",
                            i, time.forward, time.backward, time.weights, time.pair));
    }
}

// x(k) repeats x(k - lag) when x(k) - x(k - lag) is the same in all components; then
// x(k + n·lag) = x(k) + n·(x(k) - x(k - lag)).

/// Of a time: sums of the same terms in another order differ by less.
constexpr double kRounding = 1e-13;

}  // namespace

PipelineResult run_pipeline(const PipelineInput& input, bool keep_tasks) {
    check_counts(input);
    check_schedule(input);
    check_times(input);
    return input.schedule == PipelineInput::Schedule::dualpipe ? run_dualpipe(input, keep_tasks)
                                                               : run_one_f_one_b(input, keep_tasks);
}

double even_pipeline(int stages, int pieces, std::int64_t micro_batches, double forward,
                     double backward) {
    return (static_cast<double>(micro_batches) * pieces + (stages - 1)) * (forward + backward);
}

double even_dualpipe_bubble(int stages, const PieceTime& time) {
    const double pair = time.pair > 0 ? time.pair : time.forward + time.backward;
    return (stages / 2.0 - 1) * (pair + time.backward - 3 * time.weights);
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

}  // namespace moehub
