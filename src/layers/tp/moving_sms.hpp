/// SMs of a kernel that moves rows beside a GEMM: held while it runs. What they do comes one after
/// the other, each as fast as all of them together do it.
#pragma once
#include "sim/gpu/execute.hpp"
#include "sim/gpu/part_of_gpu.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::layers {

class MovingSms {
  public:
    MovingSms(sim::Card& card, int sms) : card_(card), sms_(sms) {}

    int sms() const { return sms_; }
    void hold() { card_.blocks.hold(sms_, sim::KernelName::exchange); }
    void release() { card_.blocks.release(sms_, sim::KernelName::exchange); }

    /// Goes on when the SMs begin to move so many bytes, `rate` each of them: packets leave while
    /// the next are read.
    sim::Endpoint::Delay begin(double bytes, double rate) {
        return wait(take(bytes / (rate * sms_)));
    }
    /// Goes on when they are through with rows that they read, add up, write.
    sim::Endpoint::Delay pass(const Traffic& traffic) {
        const Gpu part = with_sms(card_.gpu, sms_);
        card_.hbm.take(traffic.read + traffic.written);
        take(stream_seconds(part, traffic) - plan_stream(part, traffic).start);
        return all();
    }
    /// … with all that they have begun.
    sim::Endpoint::Delay all() { return wait(free_); }

  private:
    /// When their turn comes for something of so many seconds.
    Ps take(double seconds) {
        const Ps turn = std::max(free_, card_.endpoint.now());
        free_ = turn + std::llround(seconds * 1e12);
        return turn;
    }
    sim::Endpoint::Delay wait(Ps time) const {
        return card_.endpoint.delay(std::max<Ps>(0, time - card_.endpoint.now()));
    }

    sim::Card& card_;
    int sms_;
    Ps free_ = 0;  ///< when they are through with all that was asked of them
};

}  // namespace moehub::layers
