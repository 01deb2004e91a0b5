#include "layers/gpus.hpp"

#include <stdexcept>

namespace moehub::layers {
namespace {

sim::FabricOptions with_slow_ingress(sim::FabricOptions options) {
    options.slow_ingress = true;
    return options;
}

/// The first GPU runs at the full clock, the last at `gpu_spread` less.
Gpu card_of(const Machine& machine, std::uint32_t gpu) {
    if (machine.gpu_spread == 0) return machine.gpu;
    const double place = gpu / std::max(1.0, machine.gpus() - 1.0);
    return at_clock(machine.gpu, 1 - machine.gpu_spread * place);
}

}  // namespace

Gpus::Gpus(const Machine& machine, const GpusOptions& options)
    : fabric(machine, with_slow_ingress(options)),
      machine_(machine),
      host_lead_(options.host_lead) {
    const auto gpus = static_cast<std::uint32_t>(machine.gpus());
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
        cards_.emplace_back(fabric.gpu(gpu), card_of(machine, gpu));
        hubs_.emplace_back(fabric.gpu(gpu), machine,
                           sim::Hub::Options{options.page_pool, options.numbers,
                                             fabric.link().payload, options.units});
    }
    const Kernels& kernels = machine.gpu.kernels;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
        fabric.gpu(gpu).attach_memory(cards_[gpu].hbm, kernels.hbm_efficiency / kernels.hbm_write);
    }
    const sim::CounterId stores = add_counter("stores that the hub has taken in");
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) fabric.gpu(gpu).count_stores(stores);
    if (options.record) {
        recorder_ = std::make_unique<sim::Recorder>(fabric.topology());
        fabric.record(*recorder_);
        for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
            cards_[gpu].blocks.record(recorder_->kernels(gpu));
    }
    issued_.resize(gpus);
    ended_.resize(gpus);
}

// After an error some programs still stand in kernels of the cards.
Gpus::~Gpus() {
    fabric.drop_programs();
}

sim::CounterId Gpus::add_counters(const char* name, std::size_t how_many) {
    sim::CounterId first = 0;
    for (std::uint32_t gpu = 0; gpu < count(); ++gpu) {
        const sim::CounterId added = fabric.gpu(gpu).add_counters(name, how_many);
        if (gpu > 0 && added != first) {
            throw std::logic_error("GPUs have different counters: add those for all first");
        }
        first = added;
    }
    return first;
}

Process Gpus::start(GpuId gpu, Process program) {
    const Ps late = count() > 1 ? machine_.start_spread * gpu / (count() - 1) : 0;
    co_await endpoint(gpu).delay(late);
    co_await program;
}

void Gpus::first_gemm_ended(GpuId gpu) {
    first_gemm_ = std::max(first_gemm_, fabric.gpu(gpu).now());
}

void Gpus::ended(GpuId gpu) {
    const Ps now = endpoint(gpu).now();
    cards_[gpu].activity.compute(0, now);  // the books up to here
    ended_[gpu] = now;
    end_ = std::max(end_, now);
}

Ps Gpus::host_lead_gained() const {
    Ps least = sim::kNever;
    for (std::size_t gpu = 0; gpu < ended_.size(); ++gpu) {
        least = std::min(least, ended_[gpu] - issued_[gpu]);
    }
    return std::max<Ps>(0, least);
}

/// Of the GPU that computes longest. What it waits for when it is done itself are rows from others.
Breakdown Gpus::breakdown() const {
    const auto longest = std::max_element(
        cards_.begin(), cards_.end(),
        [](const auto& a, const auto& b) { return a.activity.computed() < b.activity.computed(); });
    const Ps own = ended_[static_cast<std::size_t>(longest - cards_.begin())];
    const Ps compute = longest->activity.computed();
    const Ps exposed = longest->activity.exposed();
    return {compute, exposed + end_ - own, own - compute - exposed};
}

LayerResult Gpus::measured() const {
    LayerResult made;
    made.time = end_;
    made.dispatch = dispatch_.time();
    made.combine = combine_.time();
    made.dispatch_work = dispatch_.work;
    made.combine_work = combine_.work;
    made.first_gemm = first_gemm_;
    made.breakdown = breakdown();
    made.host_lead = host_lead_gained();
    made.host_waits = host_waits_;
    made.bytes_up = fabric.wire_bytes_up();
    made.bytes_down = fabric.wire_bytes_down();
    made.payload = fabric.payload_received();
    double busy = 0;
    double multiplied = 0;
    for (const sim::Card& card : cards_) {
        busy += card.blocks.sm_time();
        multiplied += card.tensor.drawn();
    }
    const double time = std::max(1.0, static_cast<double>(end_)) * count();
    made.sm_busy = busy / (time * machine_.gpu.sms);
    const double allowed = machine_.gpu.kernels.tensor_efficiency * machine_.gpu.bf16_flops;
    made.tensor_busy = multiplied / (allowed * time / 1e12);
    made.packets = fabric.packets_received();
    made.events = fabric.events();
    made.links = fabric.links();
    for (std::size_t gpu = 0; gpu < cards_.size(); ++gpu) {
        const sim::Activity& activity = cards_[gpu].activity;
        const auto add = [&](BusyInterval::What what, const auto& intervals) {
            for (const auto& [begin, end] : intervals) {
                made.intervals.push_back({what, static_cast<int>(gpu), begin, end});
            }
        };
        add(BusyInterval::What::compute, activity.compute_intervals());
        add(BusyInterval::What::communication, activity.communication_intervals());
    }
    made.statistics = statistics();
    if (recorder_) made.timeline = recorder_->timeline(end_);
    return made;
}

/// Of links and switches; hubs have their own (hub_statistics.cpp).
std::vector<Statistic> Gpus::statistics() const {
    std::vector<Statistic> list;
    for (const Counted& counted : counted_) {
        const std::vector<Statistic> some = counted();
        list.insert(list.end(), some.begin(), some.end());
    }
    const auto number = [](auto value) { return static_cast<double>(value); };
    const std::int64_t packets = fabric.packets_received();
    if (packets > 0) {
        Ps busiest = 0;
        for (const LinkUse& link : fabric.links()) busiest = std::max(busiest, link.busy);
        list.push_back({"link", "payload_per_packet",
                        number(fabric.payload_received()) / number(packets),
                        "bytes, between nodes longer ones among them"});
        list.push_back({"link", "busiest_us", to_us(busiest), "in which one link carried flits"});
    }
    const sim::MergeStats merge = fabric.merge_stats();
    if (merge.requests > 0) {
        const double entries = std::max(1.0, number(merge.entries));
        list.push_back({"merge", "requests", number(merge.requests), "packets that a unit took"});
        list.push_back({"merge", "merged", number(merge.merged), "of those, that home never saw"});
        list.push_back({"merge", "sent_home", number(merge.sent_home), "packets"});
        list.push_back({"merge", "evicted", number(merge.evicted), "lines, for want of room"});
        list.push_back({"merge", "timed_out", number(merge.timed_out), "lines"});
        list.push_back({"merge", "bypassed", number(merge.bypassed),
                        "packets: no room, or their line's time was up"});
        list.push_back({"merge", "deepest", number(merge.deepest),
                        "lines in one table, at most; row grain: in a GPU's tables together"});
        list.push_back({"merge", "spread_us", merge.waited / 1e6 / entries,
                        "from a line's first request to its last, mean"});
        list.push_back({"merge", "longest_us", to_us(merge.longest_wait), "… at most"});
    }
    const sim::GatherStats gather = fabric.gather_stats();
    if (gather.answers > 0) {
        list.push_back({"switch", "answers", number(gather.answers), "packets to be gathered"});
        list.push_back({"switch", "gathered", number(gather.gathered), "packets made of them"});
        list.push_back({"switch", "evicted", number(gather.evicted),
                        "partial sums that went on before they were complete"});
        list.push_back(
            {"switch", "deepest", number(gather.deepest),
             "packets of partial sums at a port, at most; row grain: at a GPU's ports together"});
    }
    return list;
}

}  // namespace moehub::layers
