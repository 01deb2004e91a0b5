/// A resource that all who draw on it share evenly: the bytes of a memory, or the operations that
/// the card's power allows all tensor cores together:
///     rate of each = min(total / users, most that one can draw).
/// Every user has the same rate, so progress is one number, what a user present all the time would
/// have drawn; a user is done when that number has grown by its own amount.
#pragma once
#include "sim/endpoint.hpp"
#include "sim/queues.hpp"

#include <moehub/units.hpp>

#include <coroutine>

namespace moehub::sim {

class SharedRate final : private Alarm {
  public:
    /// Rates in units per second. `each`: what one user (an SM) can draw alone.
    SharedRate(Endpoint& gpu, double total, double each) : gpu_(&gpu), total_(total), each_(each) {}

    /// A coroutine that waits for one or more draws; it goes on when all are done.
    struct Waiter {
        int draws = 0;
        std::coroutine_handle<> waiting;
    };
    /// The waiter must stay where it is until it goes on.
    void draw(double amount, Waiter& waiter);

    /// Taken before all draws, which stand still meanwhile: what a hub reads and writes. Returns
    /// when it is through with this and what was taken before.
    Ps take(double amount);

    double drawn() const { return drawn_; }  ///< units drawn by all who have finished

  private:
    struct User {
        double target;  ///< progress at which the waiter is done
        double amount;
        std::uint64_t order;
        Waiter* waiter;
    };
    struct Sooner {
        bool operator()(const User& a, const User& b) const {
            return a.target != b.target ? a.target < b.target : a.order < b.order;
        }
    };

    void ring() override;
    void advance();
    void set_alarm();
    double rate() const;  ///< rate of one user, per picosecond

    Endpoint* gpu_;
    double total_;
    double each_;
    double progress_ = 0;
    double drawn_ = 0;
    Ps last_ = 0;        ///< up to which progress is counted; ahead of now while something is taken
    double behind_ = 0;  ///< picoseconds taken that last_ does not show yet: less than one
    Ps alarm_ = kNever;  ///< earliest alarm set and not yet rung
    std::uint64_t order_ = 0;
    NearlySorted<User, Sooner> users_;
};

/// `Draw draw{…}; co_await draw;` draws on one or two resources at once, until both are done.
struct Draw {
    SharedRate& first;
    double first_amount;
    SharedRate* second = nullptr;
    double second_amount = 0;
    int first_users = 1;  ///< users who divide the first amount among them, each with its own share
    SharedRate::Waiter waiter = {};

    bool await_ready() const { return first_amount <= 0 && second_amount <= 0; }
    void await_suspend(std::coroutine_handle<> caller) {
        const int users = first_amount > 0 ? first_users : 0;
        const bool both = second != nullptr && second_amount > 0;
        waiter.waiting = caller;
        waiter.draws = users + (both ? 1 : 0);
        for (int i = 0; i < users; ++i) first.draw(first_amount / users, waiter);
        if (both) second->draw(second_amount, waiter);
    }
    void await_resume() const {}
};

}  // namespace moehub::sim
