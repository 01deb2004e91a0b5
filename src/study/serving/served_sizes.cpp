#include "base/parallel.hpp"
#include "study/serving/served_parts.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

double latency(const ServedStep& step) {
    return step.tpot > 0 ? step.tpot : step.seconds;
}

bool beats(const ServedStep& a, const ServedStep& b) {
    const bool as_good = latency(a) <= latency(b) && a.tokens_per_second >= b.tokens_per_second;
    return as_good && (latency(a) < latency(b) || a.tokens_per_second > b.tokens_per_second);
}

void mark_best(std::vector<ServedPoint>& points) {
    for (ServedPoint& one : points)
        one.best = one.step && std::none_of(points.begin(), points.end(), [&](const auto& other) {
                       return other.step && beats(*other.step, *one.step);
                   });
}

/// What is asked of a point before its layer is simulated; nothing where that failed.
struct Asked {
    Serving serving;
    std::optional<PreparedStep> prepared;
};

/// Prepares all points, one after the other: clocks share what they have timed.
std::vector<Asked> ask(const std::vector<Serving>& servings,
                       const std::vector<std::int64_t>& batches, bool simulated,
                       const std::shared_ptr<ServingCosts>& costs,
                       std::vector<ServedPoint>& points) {
    std::vector<Asked> all;
    for (const Serving& serving : servings) {
        ServeOptions shared{1, costs ? costs : ServingClock(serving.what).costs(), {}};
        for (const std::int64_t batch : batches) {
            Asked one{serving, {}};
            one.serving.batch_per_gpu = batch;
            ServedPoint point{serving.gpus(), batch, {}, {}, false};
            try {
                if (simulated) {
                    check_served(one.serving);
                    one.prepared = prepare(one.serving, ServingClock(serving.what, shared.costs));
                } else {
                    point.step = serve_by_engine(one.serving, shared);
                }
            } catch (const InputError& error) {
                point.why_not = error.what();
            }
            points.push_back(std::move(point));
            all.push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace

std::vector<ServedPoint> serve_sizes(const std::vector<Serving>& servings,
                                     const std::vector<std::int64_t>& batches,
                                     const std::optional<SystemSpec>& system,
                                     const ServeOptions& options) {
    std::vector<ServedPoint> points;
    const std::vector<Asked> asked = ask(servings, batches, system.has_value(),
                                         servings.size() == 1 ? options.costs : nullptr, points);
    run_parallel(points.size(),
                 [&](std::size_t i) {
                     if (!asked[i].prepared) return;
                     try {
                         points[i].step =
                             serve_prepared(asked[i].serving, *asked[i].prepared, *system);
                     } catch (const InputError& error) {
                         points[i].why_not = error.what();
                     }
                 },
                 {options.threads, options.progress});
    mark_best(points);
    return points;
}

ServedPoint find_batch(const Serving& serving, const std::optional<SystemSpec>& system,
                       double seconds, const ServeOptions& options) {
    const std::int64_t least = serving.overlap == BatchOverlap::two_batch ? 2 : 1;
    ServeOptions shared = options;
    if (!shared.costs) shared.costs = ServingClock(serving.what).costs();
    const auto try_batch = [&](std::int64_t batch) {
        return serve_sizes({serving}, {batch}, system, shared).front();
    };
    const auto fits = [&](const ServedPoint& point) {
        return point.step && latency(*point.step) <= seconds;
    };
    ServedPoint best = try_batch(least);
    if (!best.step) return best;
    if (!fits(best)) {
        best.why_not =
            fmt::format("already {} a GPU takes {:.1f} ms", least, 1e3 * latency(*best.step));
        best.step.reset();
        return best;
    }
    // Doubling, then halving what is between the last that fits and the first that does not.
    const std::int64_t room = most_batch_per_gpu(serving);
    std::int64_t too_many = room + 1;
    for (std::int64_t batch = 2 * least; batch <= room; batch *= 2) {
        const ServedPoint point = try_batch(batch);
        if (!fits(point)) {
            too_many = batch;
            break;
        }
        best = point;
    }
    while (too_many - best.batch_per_gpu > 1) {
        const std::int64_t middle = best.batch_per_gpu + (too_many - best.batch_per_gpu) / 2;
        const ServedPoint point = try_batch(middle);
        if (fits(point))
            best = point;
        else
            too_many = middle;
    }
    return best;
}

}  // namespace moehub
