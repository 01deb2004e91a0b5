#include "plan/shapes/rank_shapes.hpp"

#include "base/parallel.hpp"
#include "plan/shapes/shape_fields.hpp"

#include <algorithm>
#include <tuple>

namespace moehub {
namespace {

std::vector<TimedShape> timed(const std::vector<Model>& shapes, const ShapeTimer& timer,
                              const ShapeSearchOptions& options) {
    std::vector<std::optional<TrainingStep>> steps(shapes.size());
    ParallelOptions parallel;
    parallel.threads = options.threads;
    parallel.progress = options.progress;
    run_parallel(
        shapes.size(), [&](std::size_t i) { steps[i] = timer(shapes[i]); }, parallel);
    std::vector<TimedShape> out;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        if (steps[i])
            out.push_back({shapes[i], parameters(shapes[i]), multiplied_parameters(shapes[i]),
                           std::move(*steps[i])});
    return out;
}

/// Of equals the smaller model; of these the one that comes first on the axes (a stable sort).
bool faster(const TimedShape& one, const TimedShape& other) {
    return std::tuple(-one.step.tokens_per_second, one.total) <
           std::tuple(-other.step.tokens_per_second, other.total);
}

AxisBest best_of(const ShapeField& field, const ShapeAxes& axes,
                 const std::vector<TimedShape>& sorted) {
    AxisBest best{std::string(field.key), axes.*field.axis, {}};
    for (const int value : best.values) {
        const auto first = std::find_if(sorted.begin(), sorted.end(), [&](const TimedShape& one) {
            return field.get(one.model) == value;
        });
        best.tokens_per_second.push_back(first == sorted.end() ? 0 : first->step.tokens_per_second);
    }
    return best;
}

}  // namespace

void rank_shapes(const std::vector<Model>& shapes, const Model& base, const ShapeTimer& timer,
                 const ShapeSearchOptions& options, ShapeSearch& found) {
    std::vector<TimedShape> sorted = timed(shapes, timer, options);
    std::stable_sort(sorted.begin(), sorted.end(), faster);
    found.timed = sorted.size();
    for (const ShapeField& field : shape_fields())
        if ((options.axes.*field.axis).size() > 1)
            found.by_axis.push_back(best_of(field, options.axes, sorted));
    for (std::size_t i = 0; i < sorted.size() && found.base_rank == 0; ++i)
        if (same_shape(sorted[i].model, base)) found.base_rank = i + 1;
    sorted.resize(std::min(sorted.size(), options.top));
    found.best = std::move(sorted);
}

}  // namespace moehub
