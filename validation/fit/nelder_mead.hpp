/// The simplex method of Nelder and Mead on the logarithms of positive numbers: no randomness, so
/// the same function from the same start gives the same bits.
#pragma once
#include "base/portable_math.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace moehub::fit {

using Point = std::vector<double>;

/// Where a search starts and when it ends.
struct Search {
    int calls = 1000;         ///< of the function, about
    double step = 0.2;        ///< of the first simplex, in logarithms
    double tolerance = 1e-7;  ///< between the simplex's best and worst value
};

class Simplex {
  public:
    Simplex(std::function<double(const Point&)> function, const Point& start, double step)
        : function_(std::move(function)) {
        Point logs;
        for (const double value : start) logs.push_back(portable_log(value));
        corners_.push_back(corner(logs));
        for (std::size_t i = 0; i < logs.size(); ++i) {
            Point moved = logs;
            moved[i] += step;
            corners_.push_back(corner(std::move(moved)));
        }
        sort();
    }

    Point minimise(const Search& search) {
        while (calls_ < search.calls && corners_.back().value - best().value > search.tolerance)
            improve();
        return exponentials(best().logs);
    }

  private:
    struct Corner {
        Point logs;
        double value = 0;
    };

    static Point exponentials(const Point& logs) {
        Point values;
        for (const double log : logs) values.push_back(portable_exp(log));
        return values;
    }

    Corner corner(Point logs) {
        ++calls_;
        const double value = function_(exponentials(logs));
        return {std::move(logs), value};
    }

    const Corner& best() const { return corners_.front(); }

    void sort() {
        std::stable_sort(corners_.begin(), corners_.end(),
                         [](const Corner& a, const Corner& b) { return a.value < b.value; });
    }

    /// On the line through the worst corner and the middle of the others: 0 is the middle, 1 the
    /// worst.
    Corner along(double way) {
        const Point& worst = corners_.back().logs;
        Point logs(worst.size());
        for (std::size_t j = 0; j < logs.size(); ++j) {
            double middle = 0;
            for (std::size_t i = 0; i + 1 < corners_.size(); ++i) middle += corners_[i].logs[j];
            middle /= static_cast<double>(corners_.size() - 1);
            logs[j] = middle + way * (worst[j] - middle);
        }
        return corner(std::move(logs));
    }

    void improve() {
        Corner& worst = corners_.back();
        Corner mirrored = along(-1);
        if (mirrored.value < best().value) {
            Corner further = along(-2);
            worst = further.value < mirrored.value ? std::move(further) : std::move(mirrored);
        } else if (mirrored.value < corners_[corners_.size() - 2].value) {
            worst = std::move(mirrored);
        } else {
            Corner nearer = along(mirrored.value < worst.value ? -0.5 : 0.5);
            if (nearer.value < std::min(mirrored.value, worst.value))
                worst = std::move(nearer);
            else
                shrink();
        }
        sort();
    }

    void shrink() {
        for (std::size_t i = 1; i < corners_.size(); ++i) {
            Point logs = corners_[i].logs;
            for (std::size_t j = 0; j < logs.size(); ++j)
                logs[j] = best().logs[j] + 0.5 * (logs[j] - best().logs[j]);
            corners_[i] = corner(std::move(logs));
        }
    }

    std::function<double(const Point&)> function_;
    std::vector<Corner> corners_;
    int calls_ = 0;
};

inline Point minimise(std::function<double(const Point&)> function, const Point& start,
                      const Search& search) {
    return Simplex(std::move(function), start, search.step).minimise(search);
}

}  // namespace moehub::fit
