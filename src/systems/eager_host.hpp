/// The host of an eager framework: it issues operators one by one, running ahead of the GPU until
/// it has to know something that the GPU computes.
#pragma once
#include "sim/endpoint.hpp"

#include <moehub/gpu.hpp>

#include <algorithm>

namespace moehub::systems {

class EagerHost {
  public:
    EagerHost(sim::Endpoint& gpu, const Overheads& costs) : gpu_(gpu), costs_(costs) {}

    /// `co_await host.launch(2);` goes on when the host has issued two more operators.
    sim::Endpoint::Delay launch(int operators) {
        issued_ += operators * costs_.eager_launch;
        return gpu_.delay(issued_ - gpu_.now());
    }
    /// Results go to the host, which waits for them before it issues anything more.
    sim::Endpoint::Delay synchronise() {
        issued_ = std::max(issued_, gpu_.now()) + costs_.host_sync;
        return gpu_.delay(issued_ - gpu_.now());
    }

  private:
    sim::Endpoint& gpu_;
    Overheads costs_;
    Ps issued_ = 0;  ///< when the host was last done issuing
};

}  // namespace moehub::systems
