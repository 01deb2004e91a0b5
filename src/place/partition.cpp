// With tie(e, p) = Σ ties of expert e to the experts of part p, the cut grows
//   by tie(e, from) − tie(e, to) when e moves,
//   by tie(a, A) − tie(a, B) + tie(b, B) − tie(b, A) + 2·ties(a, b) when a of A and b of B swap.
#include "place/partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// Table [expert × part] of tie(e, p), kept as experts move.
class PartTies {
  public:
    PartTies(Partition& partition, const Matrix& ties)
        : partition_(partition), ties_(ties), tie_(ties.rows, partition.parts) {
        for (int a = 0; a < ties.rows; ++a)
            for (int b = 0; b < ties.rows; ++b) tie_(a, part(b)) += ties(a, b);
    }

    int part(int expert) const { return partition_.part_of[at(expert)]; }
    double loss_of_move(int expert, int to) const {
        return tie_(expert, part(expert)) - tie_(expert, to);
    }
    double loss_of_swap(int a, int b) const {
        return loss_of_move(a, part(b)) + loss_of_move(b, part(a)) + 2 * ties_(a, b);
    }
    void move(int expert, int to) {
        for (int other = 0; other < ties_.rows; ++other) {
            tie_(other, part(expert)) -= ties_(other, expert);
            tie_(other, to) += ties_(other, expert);
        }
        partition_.part_of[at(expert)] = to;
    }
    void swap(int a, int b) {
        const int to = part(b);
        move(b, part(a));
        move(a, to);
    }

  private:
    Partition& partition_;
    const Matrix& ties_;
    Matrix tie_;
};

struct Choice {
    int first = -1, second = -1;  ///< expert and its new part, or two experts
    double cost = std::numeric_limits<double>::infinity();

    void offer(int a, int b, double price) {
        if (price < cost) *this = {a, b, price};
    }
};

/// The swap that takes an expert off the busiest part: the least loss among those that bring both
/// parts below `limit`; without such the one after which the busier of the two is lightest.
Choice best_swap(const PartTies& parts, const std::vector<double>& loads,
                 std::span<const double> load, double limit) {
    const auto busiest =
        static_cast<int>(std::max_element(loads.begin(), loads.end()) - loads.begin());
    Choice enough, some;
    const auto experts = static_cast<int>(load.size());
    for (int a = 0; a < experts; ++a) {
        if (parts.part(a) != busiest) continue;
        for (int b = 0; b < experts; ++b) {
            const int other = parts.part(b);
            const double less = load[at(a)] - load[at(b)];
            if (other == busiest || less <= 0) continue;
            const double after = std::max(loads[at(busiest)] - less, loads[at(other)] + less);
            if (after <= limit) enough.offer(a, b, parts.loss_of_swap(a, b));
            if (after < loads[at(busiest)]) some.offer(a, b, after);
        }
    }
    return enough.first >= 0 ? enough : some;
}

}  // namespace

std::vector<double> Partition::loads(std::span<const double> load) const {
    std::vector<double> sum(at(parts), 0.0);
    for (std::size_t expert = 0; expert < part_of.size(); ++expert)
        sum[at(part_of[expert])] += load[expert];
    return sum;
}

double Partition::cut(const Matrix& ties) const {
    double sum = 0;
    for (int a = 0; a < ties.rows; ++a)
        for (int b = 0; b < a; ++b)
            if (part_of[at(a)] != part_of[at(b)]) sum += ties(a, b);
    return sum;
}

void make_equal(Partition& partition, const Matrix& ties) {
    const auto experts = static_cast<int>(partition.part_of.size());
    const int room = experts / partition.parts;
    PartTies parts(partition, ties);
    std::vector<int> size = partition.sizes();
    for (;;) {
        Choice best;
        for (int expert = 0; expert < experts; ++expert) {
            if (size[at(parts.part(expert))] <= room) continue;
            for (int to = 0; to < partition.parts; ++to)
                if (size[at(to)] < room) best.offer(expert, to, parts.loss_of_move(expert, to));
        }
        if (best.first < 0) return;
        --size[at(parts.part(best.first))];
        ++size[at(best.second)];
        parts.move(best.first, best.second);
    }
}

bool keep_load_below(Partition& partition, const Matrix& ties, std::span<const double> load,
                     double cap) {
    const double limit =
        cap * std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(partition.parts);
    PartTies parts(partition, ties);
    // The loads, sorted, fall with every swap, so it ends; rounding must not keep it going.
    for (std::size_t swaps = 0; swaps < 16 * load.size(); ++swaps) {
        const std::vector<double> loads = partition.loads(load);
        if (*std::max_element(loads.begin(), loads.end()) <= limit) return true;
        const Choice swap = best_swap(parts, loads, load, limit);
        if (swap.first < 0) return false;
        parts.swap(swap.first, swap.second);
    }
    return false;
}

}  // namespace moehub
