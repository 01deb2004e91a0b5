#include "plan/pipeline/pipeline.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kNarrowest = 72;  ///< the legend's width

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
    using Kind = PipelineTask::Kind;
    switch (task.kind) {
        case Kind::forward:
            return column == 0 ? digit(task.micro_batch) : "░";
        case Kind::backward:
            return column == 0 ? letter(task.micro_batch) : "▓";
        case Kind::weights:
            return column == 0 ? "w" : "▓";
        case Kind::pair:
            break;
    }
    return column == 0 ? digit(task.micro_batch) : column == 1 ? letter(task.other) : "▒";
}

/// One stage's columns; its tasks come in the order of time. A column shows the task at its middle.
std::string line(const std::vector<const PipelineTask*>& tasks, int columns, double seconds,
                 Labels labels) {
    constexpr int kShade = 2;  // a column of a task beyond its numbers
    std::string text;
    std::size_t next = 0;
    int since = 0;  // columns of the task shown
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

/// At most `room`, and such that the shortest forward takes whole columns where that leaves most of
/// them: equal tasks then look equal.
int columns_of(const PipelineResult& result, int room) {
    double shortest = result.seconds;
    for (const PipelineTask& task : result.tasks)
        if (task.kind == PipelineTask::Kind::forward && task.end > task.begin)
            shortest = std::min(shortest, task.end - task.begin);
    const double forwards = result.seconds / shortest;
    const double columns = std::floor(room / forwards) * forwards;
    return columns > room * 0.6 ? static_cast<int>(std::lround(columns)) : room;
}

std::string legend(const PipelineResult& result, Labels labels) {
    using Kind = PipelineTask::Kind;
    const auto any = [&result](Kind kind) {
        return std::any_of(result.tasks.begin(), result.tasks.end(),
                           [kind](const PipelineTask& task) { return task.kind == kind; });
    };
    const bool numbers = labels == Labels::numbers;
    std::string text = numbers ? "0-9 ░ forward, a-j ▓ backward" : "░ forward, ▓ backward";
    if (any(Kind::pair)) text += numbers ? ", 0a ▒ both" : ", ▒ both";
    if (any(Kind::weights)) text += numbers ? ", w ▓ weights" : "";
    return text + ", · waits; % busy";
}

}  // namespace

std::string draw_pipeline(const PipelineResult& result, int width) {
    if (result.tasks.empty()) throw InputError("a pipeline without tasks kept cannot be drawn");
    if (width < kNarrowest)
        throw InputError(
            fmt::format("a pipeline is drawn in {} columns or more, not {}", kNarrowest, width));
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
