#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace moehub {
namespace {

class Queue {
  public:
    Queue(std::size_t count, const std::function<void(std::size_t)>& work,
          const ParallelOptions& options)
        : work_(work), options_(options), errors_(count) {}

    void run() {
        while (!failed_) {
            const std::size_t index = next_++;
            if (index >= errors_.size()) return;
            try {
                end_if_asked();
                work_(index);
                report_one();
            } catch (...) {
                errors_[index] = std::current_exception();
                failed_ = true;
            }
        }
    }

    void rethrow_first() const {
        for (const std::exception_ptr& error : errors_)
            if (error) std::rethrow_exception(error);
    }

  private:
    void report_one() {
        const std::lock_guard lock(mutex_);
        ++done_;
        if (options_.progress) options_.progress(done_, errors_.size());
    }

    const std::function<void(std::size_t)>& work_;
    const ParallelOptions& options_;
    std::vector<std::exception_ptr> errors_;  ///< errors by index of the piece
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> failed_ = false;
    std::mutex mutex_;
    std::size_t done_ = 0;
};

std::size_t threads_for(std::size_t count, int wanted) {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    return std::min(count, wanted > 0 ? static_cast<std::size_t>(wanted) : cores);
}

}  // namespace

void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options) {
    Queue queue(count, work, options);
    const std::stop_token end = current_end();
    {
        std::vector<std::jthread> helpers;
        try {
            for (std::size_t i = 1; i < threads_for(count, options.threads); ++i)
                helpers.emplace_back([&] {
                    const EndsOn ends(end);
                    queue.run();
                });
        } catch (const std::system_error&) {
            // No more threads to be had: those there are do the work.
        }
        queue.run();
    }
    queue.rethrow_first();
}

namespace {

thread_local const std::stop_token* current = nullptr;

}  // namespace

EndsOn::EndsOn(const std::stop_token& stop) {
    current = &stop;
}

EndsOn::~EndsOn() {
    current = nullptr;
}

std::stop_token current_end() {
    return current == nullptr ? std::stop_token() : *current;
}

void end_if_asked() {
    if (current != nullptr && current->stop_requested()) throw Ended();
}

}  // namespace moehub
