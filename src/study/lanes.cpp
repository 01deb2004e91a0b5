#include "study/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace moehub {
namespace {

constexpr Ps kNever = std::numeric_limits<Ps>::max();

bool before(const LaneStep& a, const LaneStep& b, LaneRule rule) {
    if (a.weights != b.weights) return b.weights;
    if (rule == LaneRule::forward_first && a.backward != b.backward) return b.backward;
    if (rule == LaneRule::backward_first && a.backward != b.backward) return a.backward;
    return a.ready < b.ready;
}

class Schedule {
  public:
    Schedule(std::vector<LaneStep> steps, LaneRule rule) : steps_(std::move(steps)), rule_(rule) {
        for (std::size_t i = 0; i < steps_.size(); ++i)
            if (steps_[i].missing == 0) wait(i);
    }

    std::vector<LaneStep> run() {
        while (done_ < steps_.size()) {
            start(kernels_);
            start(rows_);
            if (!kernels_.running && !rows_.running)
                throw std::logic_error("steps wait for one another");
            advance();
        }
        return std::move(steps_);
    }

  private:
    struct Track {
        std::vector<std::size_t> waiting;
        std::optional<std::size_t> running;
        double left = 0;  ///< of that, from 1 down
    };

    void wait(std::size_t step) {
        (steps_[step].lane == Lane::compute ? kernels_ : rows_).waiting.push_back(step);
    }

    void start(Track& track) {
        if (track.running || track.waiting.empty()) return;
        const auto first = std::min_element(
            track.waiting.begin(), track.waiting.end(),
            [&](std::size_t a, std::size_t b) { return before(steps_[a], steps_[b], rule_); });
        track.running = *first;
        track.left = 1;
        steps_[*first].begin = now_;
        track.waiting.erase(first);
    }

    double length(const Track& track) const {
        const KernelTime& time = steps_[*track.running].length;
        return static_cast<double>(rows_.running ? time.beside : time.alone);
    }

    Ps needs(const Track& track) const {
        return track.running ? std::llround(track.left * length(track)) : kNever;
    }

    /// To the end of the step that ends next.
    void advance() {
        const Ps kernels = needs(kernels_);
        const Ps rows = needs(rows_);
        const Ps passed = std::min(kernels, rows);
        now_ += passed;
        if (kernels_.running && kernels > passed)
            kernels_.left -= static_cast<double>(passed) / length(kernels_);
        if (rows_.running && rows > passed)
            rows_.left -= static_cast<double>(passed) / length(rows_);
        if (kernels == passed) finish(kernels_);
        if (rows == passed) finish(rows_);
    }

    void finish(Track& track) {
        const LaneStep& step = steps_[*track.running];
        steps_[*track.running].end = now_;
        track.running.reset();
        ++done_;
        for (const std::size_t next : step.next) {
            if (--steps_[next].missing > 0) continue;
            steps_[next].ready = now_;
            wait(next);
        }
    }

    std::vector<LaneStep> steps_;
    LaneRule rule_;
    Track kernels_;
    Track rows_;
    std::size_t done_ = 0;
    Ps now_ = 0;
};

}  // namespace

std::vector<LaneStep> run_lanes(std::vector<LaneStep> steps, LaneRule rule) {
    return Schedule(std::move(steps), rule).run();
}

}  // namespace moehub
