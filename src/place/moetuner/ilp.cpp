// CBC by its C++ classes: its C interface runs the whole command-line program, which takes over the
// interrupt signal and lets the clock choose its methods.
#include "place/moetuner/ilp.hpp"

#include "place/counts.hpp"
#include "place/methods.hpp"

#include <stdexcept>

#include <CbcEventHandler.hpp>
#include <CbcModel.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>

namespace moehub {
namespace {

/// Says when a search has to end. CBC and CLP ask copies of it.
class Watch {
  public:
    explicit Watch(const IntegerProgram::Limits& limits)
        : stop_(limits.stop), steps_(limits.simplex_steps), end_(end_after(limits.seconds)) {}
    bool too_late() const {
        return stop_.stop_requested() || std::chrono::steady_clock::now() >= end_;
    }
    bool enough(int steps) const { return steps >= steps_; }

  private:
    std::stop_token stop_;
    int steps_;
    std::chrono::steady_clock::time_point end_;
};

class NodeWatch : public CbcEventHandler {
  public:
    explicit NodeWatch(Watch watch) : watch_(std::move(watch)) {}
    CbcEventHandler* clone() const override { return new NodeWatch(*this); }
    using CbcEventHandler::event;
    CbcAction event(CbcEvent) override {
        const bool enough = model_ != nullptr && watch_.enough(model_->getIterationCount());
        return enough || watch_.too_late() ? stop : noAction;
    }

  private:
    Watch watch_;
};

class StepWatch : public ClpEventHandler {
  public:
    explicit StepWatch(Watch watch) : watch_(std::move(watch)) {}
    ClpEventHandler* clone() const override { return new StepWatch(*this); }
    int event(Event what) override {
        constexpr int kGoOn = -1;
        constexpr int kStop = 0;
        if (what != endOfIteration && what != endOfFactorization) return kGoOn;
        const bool enough = model_ != nullptr && watch_.enough(model_->numberIterations());
        return enough || watch_.too_late() ? kStop : kGoOn;
    }

  private:
    Watch watch_;
};

/// Solves the relaxation; false where the watch ended it.
bool relax(OsiClpSolverInterface& solver, const Watch& watch) {
    StepWatch handler(watch);
    solver.getModelPtr()->passInEventHandler(&handler);
    solver.initialSolve();
    const bool solved = solver.isProvenOptimal();
    ClpEventHandler silent;
    solver.getModelPtr()->passInEventHandler(&silent);
    return solved;
}

}  // namespace

double IntegerProgram::value_of(const std::vector<double>& values) const {
    double sum = 0;
    for (std::size_t column = 0; column < columns_.size(); ++column)
        sum += columns_[column].cost * values[column];
    return sum;
}

void IntegerProgram::check(const std::vector<double>& start) const {
    constexpr double kRounding = 1e-6;
    const auto within = [](double value, double lower, double upper) {
        return value >= lower - kRounding && value <= upper + kRounding;
    };
    bool fits = start.size() == columns_.size();
    for (std::size_t column = 0; fits && column < columns_.size(); ++column)
        fits = within(start[column], columns_[column].lower, columns_[column].upper);
    for (std::size_t row = 0; fits && row < rows_.size(); ++row) {
        double sum = 0;
        for (const Term& term : rows_[row].terms) sum += term.factor * start[at(term.column)];
        fits = within(sum, rows_[row].lower, rows_[row].upper);
    }
    if (!fits) throw std::logic_error("the start does not meet the integer program");
}

void IntegerProgram::load(OsiClpSolverInterface& solver) const {
    CoinPackedMatrix matrix(false, 0, 0);
    matrix.setDimensions(0, columns());
    std::vector<double> row_lower, row_upper;
    for (const Row& row : rows_) {
        CoinPackedVector terms;
        for (const Term& term : row.terms) terms.insert(term.column, term.factor);
        matrix.appendRow(terms);
        row_lower.push_back(row.lower);
        row_upper.push_back(row.upper);
    }
    std::vector<double> lower, upper, cost;
    for (const Column& column : columns_) {
        lower.push_back(column.lower);
        upper.push_back(column.upper);
        cost.push_back(column.cost);
    }
    solver.loadProblem(matrix, lower.data(), upper.data(), cost.data(), row_lower.data(),
                       row_upper.data());
    for (int column = 0; column < columns(); ++column)
        if (columns_[at(column)].integer) solver.setInteger(column);
}

IntegerProgram::Result IntegerProgram::solve(const Limits& limits,
                                             const std::vector<double>& start) const {
    Result result;
    if (!start.empty()) {
        check(start);
        result = {start, value_of(start), false, false};
    }
    const Watch watch(limits);
    OsiClpSolverInterface solver;
    solver.messageHandler()->setLogLevel(0);
    load(solver);
    if (!relax(solver, watch)) {
        result.cut_short = watch.too_late();
        return result;
    }
    CbcModel model(solver);
    model.setLogLevel(0);
    model.solver()->messageHandler()->setLogLevel(0);
    model.setMaximumNodes(limits.nodes);
    model.setAllowableGap(limits.absolute_gap);
    model.setAllowableFractionGap(limits.relative_gap);
    if (!limits.strong_branching) {
        model.setNumberStrong(0);
        model.setNumberBeforeTrust(0);
    }
    const NodeWatch handler(watch);
    model.passInEventHandler(&handler);
    if (!start.empty()) model.setBestSolution(start.data(), columns(), result.value);
    model.branchAndBound();
    result.proven = model.status() == 0;
    result.cut_short = !result.proven && watch.too_late();
    result.nodes = model.getNodeCount();
    if (const double* best = model.bestSolution(); best != nullptr) {
        std::vector<double> values(best, best + columns());
        if (result.values.empty() || value_of(values) < result.value) {
            result.value = value_of(values);
            result.values = std::move(values);
        }
    }
    return result;
}

}  // namespace moehub
