
#include "plan/simulated.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace moehub {
namespace {

double elements_of(const Model& model) {
    return static_cast<double>(model.hidden) * std::max(1, model.top_k);
}

// Sizes go by factors of two from 4 MiB on, where protocols change; 64 KiB stands for all that is
// smaller.

constexpr Bytes kSmallest = Bytes{1} << 16;
constexpr Bytes kSecond = Bytes{1} << 20;
constexpr Bytes kThird = Bytes{1} << 22;

Bytes size_of(int index) {
    if (index < 2) return index == 0 ? kSmallest : kSecond;
    return kThird << (index - 2);
}

}  // namespace

struct Communication::State {
    struct CollectiveKey {
        Collective::Op op;
        GroupShape shape;
        double bytes = 0;  ///< bytes of an exact collective; 0: the key is a table's

        friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
    };

    Machine machine;
    double elements = 0;  ///< elements that a token's rows have
    ExchangeTimes layers;
    OnceMap<CollectiveKey, std::unique_ptr<SizeTable>> tables;
    OnceMap<CollectiveKey, double> exact;

    State(const Machine& of, Model model, const RoutingSpec& routing)
        : machine(of), elements(elements_of(model)), layers(of, std::move(model), routing) {}

    double seconds(Collective::Op op, GroupShape shape, double bytes, bool exactly) {
        if (shape.gpus() <= 1 || bytes <= 0) return 0;
        // A ring takes the same time to gather as to reduce and scatter: one table for both.
        if (op == Collective::Op::all_gather) op = Collective::Op::reduce_scatter;
        if (exactly && bytes <= linear_from(shape))  // larger collectives go on in a straight line
            return exact.get({op, shape, bytes},
                             [&] { return group_seconds(machine, op, shape, bytes); });
        const auto make = [&] {
            return std::make_unique<SizeTable>(
                [this, op, shape](Bytes size) {
                    return group_seconds(machine, op, shape, static_cast<double>(size));
                },
                linear_from(shape));
        };
        return tables.get({op, shape}, make)->at(bytes);
    }
};

Communication::Communication(Machine machine, Model model, const RoutingSpec& routing)
    : state_(std::make_shared<State>(machine, std::move(model), routing)) {}

Communication::Communication(std::shared_ptr<Communication> other, const Model& model)
    : state_(other->state_), tokens_(elements_of(model) / other->state_->elements) {}

Communication::~Communication() = default;

double Communication::collective(Collective::Op op, GpuGroup group, double bytes, bool exact) {
    return state_->seconds(op, shape_of(state_->machine, group), bytes, exact);
}

/// Seconds of a message: an exchange of two, of which half goes to the other.
double Communication::message(int distance, double bytes, bool exact) {
    if (distance <= 0 || bytes <= 0) return 0;
    const Machine& machine = state_->machine;
    const double leave = machine.nodes == 1
                             ? 0
                             : std::min(1.0, static_cast<double>(distance) / machine.gpus_per_node);
    const auto exchange = [&](GroupShape shape) {
        return state_->seconds(Collective::Op::all_to_all, shape, 2 * bytes, exact);
    };
    double time = 0;
    if (leave < 1) time += (1 - leave) * exchange({2, 1});
    if (leave > 0) time += leave * exchange({1, 2});
    return time;
}

double Communication::ring_step(GpuGroup group, double bytes, bool exact) {
    if (group.size <= 1 || bytes <= 0) return 0;
    const bool inside = group.size * group.stride <= state_->machine.gpus_per_node;
    const GroupShape pair = inside ? GroupShape{2, 1} : GroupShape{1, 2};
    return state_->seconds(Collective::Op::all_to_all, pair, 2 * bytes, exact);
}

MoeCommunication Communication::moe(const MoeCase& one, bool exact) {
    MoeCase alike = one;
    if (tokens_ != 1) alike.tokens = std::llround(tokens_ * static_cast<double>(one.tokens));
    return exact ? state_->layers.exact(alike) : state_->layers.at(alike);
}

SizeTable::SizeTable(Simulate simulate, double linear_from) : simulate_(std::move(simulate)) {
    while (points_ < kMostPoints && static_cast<double>(size_of(points_ - 1)) < linear_from)
        ++points_;
}

/// Seconds at a point. Smaller ones are known then, too, so that what was larger there counts here.
double SizeTable::point(int index) {
    if (index >= known_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(simulating_);
        for (int i = known_.load(std::memory_order_relaxed); i <= index; ++i) {
            const auto at = static_cast<std::size_t>(i);
            times_[at] = std::max(simulate_(size_of(i)), i > 0 ? times_[at - 1] : 0.0);
            known_.store(i + 1, std::memory_order_release);
        }
    }
    return times_[static_cast<std::size_t>(index)];
}

double SizeTable::at(double bytes) {
    if (bytes <= 0) return 0;
    if (bytes <= static_cast<double>(kSmallest)) return point(0);
    int above = 1;
    while (above + 1 < points_ && static_cast<double>(size_of(above)) < bytes) ++above;
    const double end = point(above);
    const double begin = point(above - 1);
    const auto from = static_cast<double>(size_of(above - 1));
    const double share = (bytes - from) / (static_cast<double>(size_of(above)) - from);
    return begin + (end - begin) * share;
}

}  // namespace moehub
