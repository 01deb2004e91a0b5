/// The GPUs on which a layer runs, whatever the layer: machine, cards, hubs and hosts, what their
/// programs report, and what was measured in the end.
#pragma once
#include "sim/fabric.hpp"
#include "sim/gpu/card.hpp"
#include "sim/hub/hub.hpp"
#include "sim/recorder.hpp"

#include <moehub/layer.hpp>
#include <moehub/system.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace moehub::layers {

using sim::GpuId;
using sim::KernelName;
using sim::Process;

/// How GPUs are simulated, beyond what the user asks for.
struct GpusOptions : sim::FabricOptions {
    GpusOptions() { slow_ingress = true; }  // hubs wait for their memory

    sim::Hub::Options hub;  ///< its line is the fabric's
    Ps host_lead = 0;       ///< by which an eager host is ahead when the layer starts (Host)
    bool record = false;    ///< a timeline
};

class Gpus {
  public:
    Gpus(const Machine& machine, const GpusOptions& options);
    Gpus(const Gpus&) = delete;
    ~Gpus();

    std::uint32_t count() const { return static_cast<std::uint32_t>(cards_.size()); }
    std::vector<GpuId> all() const { return fabric.all_gpus(); }
    const Machine& machine() const { return machine_; }
    sim::Card& card(GpuId gpu) { return cards_[gpu]; }
    const sim::Card& card(GpuId gpu) const { return cards_[gpu]; }
    sim::Endpoint& endpoint(GpuId gpu) { return fabric.gpu(gpu); }
    sim::Hub& hub(GpuId gpu) { return hubs_[gpu]; }

    sim::Recorder* recorder() const { return recorder_.get(); }  ///< null where nobody records

    /// A counter, or several that follow one another, of the same number on all GPUs, so that a
    /// sender can name its receiver's.
    sim::CounterId add_counter(const char* name) { return add_counters(name, 1); }
    sim::CounterId add_counters(const char* name, std::size_t how_many);

    /// Spawns `program(gpu)` on every GPU and runs until nothing is left to do.
    template <class Program>
    void run(const char* name, Program program) {
        for (const GpuId gpu : all()) endpoint(gpu).spawn(name, start(gpu, program(gpu)));
        fabric.run();
    }

    // Milestones of each GPU; dispatch and combine where rows move in steps of their own.
    void dispatch_began(GpuId gpu) { dispatch_.began(endpoint(gpu).now()); }
    void dispatch_ended(GpuId gpu) { dispatch_.ended(endpoint(gpu).now()); }
    void combine_began(GpuId gpu) { combine_.began(endpoint(gpu).now()); }
    void combine_ended(GpuId gpu) { combine_.ended(endpoint(gpu).now()); }
    // What a GPU's kernels had to do of either, where they need not wait for rows on their SMs.
    void dispatch_worked(Ps time) { dispatch_.worked(time); }
    void combine_worked(Ps time) { combine_.worked(time); }
    void first_gemm_ended(GpuId gpu);
    void ended(GpuId gpu);  ///< the layer is over on this GPU

    // An eager host's lead over the GPU (Host).
    Ps host_lead() const { return host_lead_; }
    void host_issued(GpuId gpu, Ps time) { issued_[gpu] = time; }
    void host_waited(Ps operators) {
        host_waits_ = true;
        lead_needed_ = std::max(lead_needed_, operators);
    }
    Ps host_lead_gained() const;  ///< least of all GPUs, from the last operator to the end
    Ps host_lead_needed() const { return lead_needed_; }  ///< lead to issue all before its wait
    bool host_waits() const { return host_waits_; }

    /// What units of the layer's own counted, asked for when all is over.
    using Counted = std::function<std::vector<Statistic>()>;
    void add_statistics(Counted counted) { counted_.push_back(std::move(counted)); }
    std::vector<Statistic> hub_statistics(HubUnits units);

    /// Time, breakdown, traffic, links, kernels: all that does not depend on the kind of layer.
    LayerResult measured() const;

    sim::Fabric fabric;

  private:
    /// A phase lasts from when the last GPU began to when the last ended.
    struct Phase {
        Ps begin = 0;
        Ps end = 0;
        Ps work = 0;
        void began(Ps now) { begin = std::max(begin, now); }
        void ended(Ps now) { end = std::max(end, now); }
        void worked(Ps time) { work = std::max(work, time); }
        Ps time() const { return std::max<Ps>(0, end - begin); }
    };
    /// A layer's program on a GPU that starts later than others.
    Process start(GpuId gpu, Process program);
    Breakdown breakdown() const;
    std::vector<Statistic> statistics() const;

    const Machine machine_;
    std::unique_ptr<sim::Recorder> recorder_;
    std::deque<sim::Card> cards_;
    std::deque<sim::Hub> hubs_;
    Phase dispatch_;
    Phase combine_;
    Ps first_gemm_ = 0;
    Ps host_lead_;
    Ps lead_needed_ = 0;
    bool host_waits_ = false;
    std::vector<Ps> issued_;  ///< by GPU: when its host was last done issuing
    Ps end_ = 0;              ///< when the last GPU ended
    std::vector<Ps> ended_;   ///< by GPU: when it ended
    std::vector<Counted> counted_;
};

/// How a system's program is run on a layer: what its GPUs share is made from the layer, the
/// program is started on every GPU, and the books are checked when nothing is left to do.
template <class Shared, class Layer, class Program>
LayerResult run_on(Layer& layer, const char* name, Program program) {
    Shared shared{layer};
    // After an error programs still stand somewhere: they go before what they share.
    struct DropPrograms {
        Gpus& gpus;
        ~DropPrograms() { gpus.fabric.drop_programs(); }
    } const drop{layer.gpus};
    layer.gpus.run(name, [&](GpuId gpu) { return program(shared, gpu); });
    return layer.result();
}

/// The host of a layer: it issues operators one by one (eager), running ahead of the GPU until it
/// has to know something that the GPU computes; or it sends off a whole graph, in which kernels
/// follow one another by themselves, and stands in the way only where it has to know.
///
/// Layers follow one another: when one starts, an eager host is ahead by what it gained during the
/// last, from its last operator to the layer's end.
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
