#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kUsualBaseline = "megatron-te";
/// Sums in another order differ by rounding of doubles; anything above is a wrong number.
constexpr double kLargestRounding = 1e-9;

std::vector<std::string> system_names() {
    std::vector<std::string> names;
    for (const SystemInfo& system : all_systems()) names.push_back(system.name);
    return names;
}

/// Systems are taken in order, so that the first one that fails was taken whatever the threads did.
class Queue {
  public:
    Queue(const LayerInput& input, const std::vector<std::string>& systems,
          const CompareOptions& options)
        : input_(input), systems_(systems), options_(options), errors_(systems.size()) {
        results_.resize(systems.size());
    }

    void work() {
        while (!failed_) {
            const std::size_t index = next_++;
            if (index >= systems_.size()) return;
            try {
                results_[index] = simulate_layer(input_, systems_[index], options_.layer);
                report_one();
            } catch (...) {
                errors_[index] = std::current_exception();
                failed_ = true;
            }
        }
    }

    std::vector<LayerResult> take() {
        for (const std::exception_ptr& error : errors_)
            if (error) std::rethrow_exception(error);
        return std::move(results_);
    }

  private:
    void report_one() {
        const std::lock_guard lock(mutex_);
        ++done_;
        if (options_.progress) options_.progress(done_, systems_.size());
    }

    const LayerInput& input_;
    const std::vector<std::string>& systems_;
    const CompareOptions& options_;
    std::vector<LayerResult> results_;
    std::vector<std::exception_ptr> errors_;  ///< by system
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> failed_ = false;
    std::mutex mutex_;
    std::size_t done_ = 0;
};

std::size_t threads_for(std::size_t systems, int wanted) {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    return std::min(systems, wanted > 0 ? static_cast<std::size_t>(wanted) : cores);
}

std::vector<LayerResult> simulate_all(const LayerInput& input,
                                      const std::vector<std::string>& systems,
                                      const CompareOptions& options) {
    Queue queue(input, systems, options);
    {
        std::vector<std::jthread> helpers;
        try {
            for (std::size_t i = 1; i < threads_for(systems.size(), options.threads); ++i)
                helpers.emplace_back([&queue] { queue.work(); });
        } catch (const std::system_error&) {
            // No more threads to be had: those there are do the work.
        }
        queue.work();
    }
    return queue.take();
}

void check_numbers(const LayerResult& result) {
    if (!result.verified || result.largest_error <= kLargestRounding) return;
    throw std::logic_error(fmt::format("outputs of {} differ from the reference layer's by {:.2g}",
                                       result.system, result.largest_error));
}

const LayerResult* find(const std::vector<LayerResult>& results, std::string_view system) {
    const auto found = std::find_if(results.begin(), results.end(),
                                    [&](const auto& one) { return one.system == system; });
    return found == results.end() ? nullptr : &*found;
}

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

}  // namespace

void check_systems(const std::vector<std::string>& systems) {
    const std::vector<std::string> known = system_names();
    if (systems.empty())
        throw InputError(fmt::format("no system is named, allowed: {}", fmt::join(known, ", ")));
    for (auto name = systems.begin(); name != systems.end(); ++name) {
        if (std::find(known.begin(), known.end(), *name) == known.end())
            throw InputError(fmt::format("unknown system {}, allowed: {}{}", moehub::quoted(*name),
                                         fmt::join(known, ", "), did_you_mean(*name, known)));
        if (std::find(systems.begin(), name, *name) != name)
            throw InputError(fmt::format("system {} is named twice, allowed: once", quoted(*name)));
    }
}

Comparison compare(const LayerInput& input, const std::vector<std::string>& systems,
                   const CompareOptions& options) {
    check_systems(systems);
    std::vector<LayerResult> results = simulate_all(input, systems, options);
    for (const LayerResult& result : results) check_numbers(result);

    const LayerResult* const ideal = find(results, kIdeal);
    const LayerResult* baseline = find(results, kUsualBaseline);
    if (baseline == nullptr)
        baseline = &*std::max_element(results.begin(), results.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
    Comparison comparison;
    comparison.baseline = baseline->system;
    for (const LayerResult& result : results) {
        ComparisonRow row{result, ratio(baseline->time, result.time), {}};
        if (ideal != nullptr) row.share_of_ideal = ratio(ideal->time, result.time);
        comparison.rows.push_back(std::move(row));
    }
    return comparison;
}

}  // namespace moehub
