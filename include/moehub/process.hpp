/// Coroutines: programs of a simulated GPU that read like pseudo-code. A Process runs on one GPU
/// and may await what the GPU offers (program.hpp), or another Process, which then runs to its end.
///
/// GCC 12 miscompiles awaits inside larger expressions and results with destructors: `co_await`
/// stands alone, and awaiting yields nothing.
#pragma once
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace moehub {

class [[nodiscard]] Process {
  public:
    struct promise_type {
        std::coroutine_handle<> continuation;
        std::exception_ptr error;
        std::size_t* finished = nullptr;  ///< counts this process when it ends, if set

        Process get_return_object() {
            return Process(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept { return Finish{}; }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };

    Process(Process&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Process& operator=(Process&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Process() {
        if (handle_) handle_.destroy();
    }

    bool done() const { return handle_.done(); }
    void count_end_in(std::size_t& finished) { handle_.promise().finished = &finished; }
    std::coroutine_handle<> handle() const { return handle_; }
    /// Throws what the coroutine threw.
    void rethrow() const {
        if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    }

    bool await_ready() const noexcept { return handle_.done(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
        handle_.promise().continuation = caller;
        return handle_;
    }
    void await_resume() const { rethrow(); }

  private:
    struct Finish {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> finished) noexcept {
            promise_type& promise = finished.promise();
            if (promise.finished != nullptr) ++*promise.finished;
            const auto next = promise.continuation;
            return next ? next : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };

    explicit Process(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace moehub
