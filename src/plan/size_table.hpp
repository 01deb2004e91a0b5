/// Times by bytes: simulated at sizes of a coarse grid when they are first needed, straight lines
/// between them.
#pragma once
#include <moehub/units.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>

namespace moehub {

class SizeTable {
  public:
    using Simulate = std::function<double(Bytes)>;

    /// `simulate` gives the seconds of a size. From the first size of the grid from `linear_from`
    /// on time grows as between the last two.
    SizeTable(Simulate simulate, double linear_from);

    /// Seconds. Below the grid as at its start, for 0 bytes 0; never falls as bytes grow, whatever
    /// the simulation says. Any number of threads may ask.
    double at(double bytes);

  private:
    static constexpr int kMostPoints = 24;

    double point(int index);

    Simulate simulate_;
    int points_ = 2;
    std::array<double, kMostPoints> times_{};  ///< of the first `known_` points
    std::atomic<int> known_{0};
    std::mutex simulating_;
};

}  // namespace moehub
