/// The host of an eager framework: it issues operators one by one, running ahead of the GPU until
/// it has to know something that the GPU computes.
///
/// Layers follow one another: when one starts, its host is ahead by what it gained during the last,
/// from its last operator to the layer's end.
#pragma once
#include "layers/gpus.hpp"

#include <algorithm>

namespace moehub::layers {

class EagerHost {
  public:
    /// `lead`: by which it is ahead when the program starts.
    EagerHost(Gpus& gpus, GpuId gpu, Ps lead) : gpus_(gpus), gpu_(gpu), issued_(-lead) {}

    /// `co_await host.launch(2);` goes on when the host has issued two more operators.
    sim::Endpoint::Delay launch(int operators) {
        issue(operators);
        return until_issued();
    }
    /// The host issues operators that nobody waits for here.
    void issue(int operators) { move_to(issued_ + operators * costs().eager_launch); }
    Ps issued() const { return issued_; }  ///< when the host was last done issuing
    /// Results go to the host, which waits for them before it issues anything more.
    sim::Endpoint::Delay synchronise() {
        gpus_.host_waited(issued_ + gpus_.host_lead());
        move_to(std::max(issued_, gpus_.endpoint(gpu_).now()) + costs().host_sync);
        return until_issued();
    }

  private:
    const Overheads& costs() const { return gpus_.machine().gpu.overheads; }
    sim::Endpoint::Delay until_issued() {
        sim::Endpoint& endpoint = gpus_.endpoint(gpu_);
        return endpoint.delay(issued_ - endpoint.now());
    }
    void move_to(Ps time) {
        issued_ = time;
        gpus_.host_issued(gpu_, time);
    }

    Gpus& gpus_;
    GpuId gpu_;
    Ps issued_;
};

}  // namespace moehub::layers
