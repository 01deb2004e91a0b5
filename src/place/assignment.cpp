// The Hungarian method by shortest augmenting paths (Kuhn 1955; Jonker, Volgenant 1987): prices u
// of rows and v of columns keep the reduced cost
//     c(r,k) = −gain(r,k) − u(r) − v(k) ≥ 0,    = 0 on chosen pairs,
// so that the chosen pairs are the best for the rows they cover. Rows are added one by one: a path
// of least reduced cost from the new row to a free column changes the choices along it.
#include "place/assignment.hpp"

#include <limits>

namespace moehub {
namespace {

constexpr int kNone = -1;

class Assignment {
  public:
    explicit Assignment(const Matrix& gain)
        : gain_(gain),
          columns_(static_cast<std::size_t>(gain.columns)),
          row_price_(static_cast<std::size_t>(gain.rows), 0.0),
          column_price_(columns_, 0.0),
          row_of_(columns_, kNone) {}

    std::vector<int> solve() {
        for (int row = 0; row < gain_.rows; ++row) add(row);
        std::vector<int> column_of(static_cast<std::size_t>(gain_.rows), kNone);
        for (std::size_t column = 0; column < columns_; ++column)
            if (row_of_[column] != kNone)
                column_of[static_cast<std::size_t>(row_of_[column])] = static_cast<int>(column);
        return column_of;
    }

  private:
    struct Reach {
        double cost = std::numeric_limits<double>::infinity();
        int from = kNone;  ///< column before it on the path; kNone: the new row itself
        bool done = false;
    };

    double reduced_cost(int row, std::size_t column) const {
        return -gain_(row, static_cast<int>(column)) - row_price_[static_cast<std::size_t>(row)] -
               column_price_[column];
    }

    void add(int row) {
        std::vector<Reach> reach(columns_);
        double length = 0;
        int at = kNone;
        for (int from_row = row; from_row != kNone;) {
            extend(reach, from_row, at, length);
            at = nearest(reach);
            length = reach[static_cast<std::size_t>(at)].cost;
            reach[static_cast<std::size_t>(at)].done = true;
            from_row = row_of_[static_cast<std::size_t>(at)];
        }
        reprice(reach, row, length);
        for (int column = at; column != kNone;) {
            const int before = reach[static_cast<std::size_t>(column)].from;
            row_of_[static_cast<std::size_t>(column)] =
                before == kNone ? row : row_of_[static_cast<std::size_t>(before)];
            column = before;
        }
    }

    /// Paths that reach `row` through its column `at` and go on to the columns not done yet.
    void extend(std::vector<Reach>& reach, int row, int at, double length) const {
        for (std::size_t column = 0; column < columns_; ++column) {
            if (reach[column].done) continue;
            const double cost = length + reduced_cost(row, column);
            if (cost < reach[column].cost) {
                reach[column].cost = cost;
                reach[column].from = at;
            }
        }
    }

    int nearest(const std::vector<Reach>& reach) const {
        int best = kNone;
        for (std::size_t column = 0; column < columns_; ++column)
            if (!reach[column].done &&
                (best == kNone || reach[column].cost < reach[static_cast<std::size_t>(best)].cost))
                best = static_cast<int>(column);
        return best;
    }

    /// Must come before the choices change: it moves prices of the rows that were chosen so far.
    void reprice(const std::vector<Reach>& reach, int row, double length) {
        row_price_[static_cast<std::size_t>(row)] += length;
        for (std::size_t column = 0; column < columns_; ++column) {
            if (!reach[column].done) continue;
            const double slack = length - reach[column].cost;
            column_price_[column] -= slack;
            if (row_of_[column] != kNone)
                row_price_[static_cast<std::size_t>(row_of_[column])] += slack;
        }
    }

    const Matrix& gain_;
    std::size_t columns_;
    std::vector<double> row_price_, column_price_;
    std::vector<int> row_of_;  ///< [column]
};

}  // namespace

std::vector<int> best_assignment(const Matrix& gain) {
    return Assignment(gain).solve();
}

}  // namespace moehub
