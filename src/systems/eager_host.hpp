/// The host of an eager framework: it issues operators one by one, running ahead of the GPU until
/// it has to know something that the GPU computes.
///
/// Layers follow one another: when one starts, its host is ahead by what it gained during the last,
/// from its last operator to the layer's end.
#pragma once
#include "systems/layer.hpp"

#include <algorithm>

namespace moehub::systems {

class EagerHost {
  public:
    /// A backward pass, which waits for nothing, is issued from its start on.
    EagerHost(Layer& layer, GpuId gpu)
        : layer_(layer), gpu_(gpu), issued_(layer.backward() ? 0 : -layer.host_lead()) {}

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
        layer_.host_waited(issued_ + layer_.host_lead());
        move_to(std::max(issued_, layer_.endpoint(gpu_).now()) + costs().host_sync);
        return until_issued();
    }

  private:
    const Overheads& costs() const { return layer_.input.machine.gpu.overheads; }
    sim::Endpoint::Delay until_issued() {
        sim::Endpoint& endpoint = layer_.endpoint(gpu_);
        return endpoint.delay(issued_ - endpoint.now());
    }
    void move_to(Ps time) {
        issued_ = time;
        layer_.host_issued(gpu_, time);
    }

    Layer& layer_;
    GpuId gpu_;
    Ps issued_;
};

/// Runs the layer with a host that is ahead without limit, and, where that is more than it gains in
/// a layer, again with what it gains.
LayerResult run_eager(const Job& job, LayerResult (*run)(Layer&));

}  // namespace moehub::systems
