/// A mixed integer program, and CBC to solve it. Minimises; prints nothing; the same program and
/// limits give the same solution unless the clock or `stop` ends the search.
#pragma once
#include "place/counts.hpp"

#include <stop_token>
#include <utility>
#include <vector>

class OsiClpSolverInterface;

namespace moehub {

/// The relative gap at which MoETuner's programs end.
inline constexpr double kPaperTolerance = 0.025;

class IntegerProgram {
  public:
    struct Term {
        int column = 0;
        double factor = 1;
    };
    /// What ends the search. Nodes and simplex steps are the same everywhere, seconds are not:
    /// they are the last resort.
    struct Limits {
        int nodes = 10'000;
        int simplex_steps = 1'000'000;  ///< steps of the first relaxation; then of all nodes
        double seconds = 10;
        double relative_gap = 0;  ///< gap to the bound, a share of the value
        double absolute_gap = 0;
        /// Whether to try branches before taking one: fewer nodes, but no limit counts the tries.
        bool strong_branching = true;
        std::stop_token stop = {};
    };
    struct Result {
        std::vector<double> values;  ///< value of each column; empty: none was found
        double value = 0;
        bool proven = false;     ///< the value is within the gaps
        bool cut_short = false;  ///< the clock or stop ended it: may differ the next time
        int nodes = 0;           ///< nodes that were looked at
    };

    /// Adds a column. Columns and rows are numbered from 0. Bounds may be infinite.
    int add_number(double lower, double upper, double cost) {
        columns_.push_back({lower, upper, cost, false});
        return columns() - 1;
    }
    /// Adds a column that is 0 or 1.
    int add_switch(double cost) {
        columns_.push_back({0, 1, cost, true});
        return columns() - 1;
    }
    /// Holds the switch at 0 or 1.
    void fix(int column, double value) {
        Column& one = columns_[static_cast<std::size_t>(column)];
        one.lower = one.upper = value;
    }
    void add_row(double lower, double upper, std::vector<Term> terms) {
        rows_.push_back({lower, upper, std::move(terms)});
    }
    void add_equal(double value, std::vector<Term> terms) {
        add_row(value, value, std::move(terms));
    }

    int columns() const { return static_cast<int>(columns_.size()); }

    /// Solves. `start`: a value for every column that meets all rows; the result is never worse.
    /// Empty: none. Throws std::logic_error when a start does not meet them.
    Result solve(const Limits& limits, const std::vector<double>& start = {}) const;

  private:
    struct Column {
        double lower = 0;
        double upper = 0;
        double cost = 0;
        bool integer = false;
    };
    struct Row {
        double lower = 0;
        double upper = 0;
        std::vector<Term> terms;
    };
    double value_of(const std::vector<double>& values) const;
    void check(const std::vector<double>& start) const;
    void load(OsiClpSolverInterface& solver) const;

    std::vector<Column> columns_;
    std::vector<Row> rows_;
};

}  // namespace moehub
