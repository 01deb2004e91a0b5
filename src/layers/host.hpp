/// The host of a layer: it issues operators one by one (eager), running ahead of the GPU until it
/// has to know something that the GPU computes; or it sends off a whole graph, in which kernels
/// follow one another by themselves, and stands in the way only where it has to know.
///
/// Layers follow one another: when one starts, an eager host is ahead by what it gained during the
/// last, from its last operator to the layer's end.
#pragma once
#include "layers/gpus.hpp"

#include <moehub/system.hpp>

#include <algorithm>

namespace moehub::layers {

class Host {
  public:
    /// `lead`: by which it is ahead when the layer starts.
    Host(Gpus& gpus, GpuId gpu, HostMode mode, Ps lead)
        : gpus_(gpus), gpu_(gpu), mode_(mode), each_(costs().eager_launch), issued_(-lead) {}

    /// `co_await host.launch(2);` goes on when the host has issued two more operators.
    sim::Endpoint::Delay launch(int operators) { return until(issue(operators)); }
    /// Operators that nobody waits for here; returns when they are issued.
    Ps issue(int operators) {
        if (mode_ == HostMode::eager) move_to(issued_ + operators * each_);
        return issued_;
    }
    Ps issued() const { return issued_; }  ///< when the host was last done issuing
    Ps per_operator() const { return mode_ == HostMode::eager ? each_ : 0; }
    /// An eager host needs this long for each operator from now on, instead of `eager_launch`.
    void set_per_operator(Ps time) { each_ = time; }
    sim::Endpoint::Delay until(Ps issued) {
        sim::Endpoint& endpoint = gpus_.endpoint(gpu_);
        return endpoint.delay(issued - endpoint.now());
    }
    /// Results go to the host, which waits for them before it issues anything more: a graph ends
    /// here, and the next is sent off.
    sim::Endpoint::Delay synchronise() {
        gpus_.host_waited(issued_ + gpus_.host_lead());
        const Ps next = mode_ == HostMode::graph ? gpus_.machine().gpu.kernels.graph_replay : 0;
        move_to(std::max(issued_, gpus_.endpoint(gpu_).now()) + costs().host_sync + next);
        return until(issued_);
    }

  private:
    const Overheads& costs() const { return gpus_.machine().gpu.overheads; }
    void move_to(Ps time) {
        issued_ = time;
        gpus_.host_issued(gpu_, time);
    }

    Gpus& gpus_;
    GpuId gpu_;
    HostMode mode_;
    Ps each_;
    Ps issued_;
};

}  // namespace moehub::layers
