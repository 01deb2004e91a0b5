#include "layers/gpus.hpp"

#include <stdexcept>

namespace moehub::layers {
namespace {

/// The first GPU runs at the full clock, the last at `gpu_spread` less.
Gpu card_of(const Machine& machine, std::uint32_t gpu) {
    if (machine.gpu_spread == 0) return machine.gpu;
    const double place = gpu / std::max(1.0, machine.gpus() - 1.0);
    return at_clock(machine.gpu, 1 - machine.gpu_spread * place);
}

// What the units of all hubs counted.

struct Totals {
    sim::RpmStats rpm;
    sim::AauStats aau;
    sim::DamStats dam;
    Bytes reserved = 0;
    Bytes worst_case = 0;
    Bytes used = 0;
    double most_rows = 0;  ///< most rows that one region has
};

template <class Stats, class... Members>
void add(Stats& sum, const Stats& part, Members... members) {
    ((sum.*members += part.*members), ...);
}

Totals add_up(Gpus& gpus) {
    Totals sum;
    for (const GpuId gpu : gpus.all()) {
        const sim::Hub& hub = gpus.hub(gpu);
        using Rpm = sim::RpmStats;
        if (const Rpm* rpm = gpus.fabric.egress(gpu).rpm_stats()) {
            add(sum.rpm, *rpm, &Rpm::stores, &Rpm::merged, &Rpm::packets, &Rpm::full,
                &Rpm::timed_out);
            sum.rpm.deepest = std::max(sum.rpm.deepest, rpm->deepest);
        }
        using Aau = sim::AauStats;
        add(sum.aau, hub.aau().stats(), &Aau::lookups, &Aau::hits, &Aau::allocated, &Aau::evictions,
            &Aau::restores, &Aau::spill_bytes, &Aau::bank_wait);
        using Dam = sim::DamStats;
        add(sum.dam, hub.dam().stats(), &Dam::updates, &Dam::ready, &Dam::released,
            &Dam::deallocated, &Dam::entries, &Dam::restored);
        sum.reserved += hub.aau().memory().reserved();
        sum.worst_case += hub.aau().memory().worst_case();
        for (sim::RegionId region = 0; region < hub.regions(); ++region) {
            const sim::RowSpace& space = hub.space(region);
            if (!space.allocated) continue;
            sum.used += hub.rows(region) * (space.data_bytes + sim::kSourceColumn);
            sum.most_rows = std::max(sum.most_rows, static_cast<double>(hub.rows(region)));
        }
    }
    return sum;
}

double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// DySHARP's AL table and TS table.
std::vector<Statistic> dysharp_statistics(const Totals& sum) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {
        {"al", "lookups", number(sum.aau.lookups), "packets, for each expert in their lists"},
        {"al", "tlb_hits", number(sum.aau.hits), "found in the TLB"},
        {"al", "rows", number(sum.aau.allocated), "given a layout index"},
        {"al", "table_bytes", number(sum.aau.spill_bytes), "of the table, read and written"},
        {"al", "bank_wait_us", to_us(sum.aau.bank_wait), "sum over packets"},
        {"ts", "counter_updates", number(sum.dam.updates), "acknowledgements counted"},
        {"ts", "ready", number(sum.dam.ready), "tiles that were complete"},
        {"ts", "restored", number(sum.dam.restored), "entries read back from memory"},
    };
}

}  // namespace

Gpus::Gpus(const Machine& machine, const GpusOptions& options)
    : fabric(machine, options), machine_(machine), host_lead_(options.host_lead) {
    const std::vector<GpuId> gpus = all();
    sim::Hub::Options hub = options.hub;
    hub.line = fabric.link().payload;
    for (const GpuId gpu : gpus) {
        cards_.emplace_back(fabric.gpu(gpu), card_of(machine, gpu));
        hubs_.emplace_back(fabric.gpu(gpu), machine, hub);
    }
    const Kernels& kernels = machine.gpu.kernels;
    for (const GpuId gpu : gpus)
        fabric.gpu(gpu).attach_memory(cards_[gpu].hbm, kernels.hbm_efficiency / kernels.hbm_write);
    const sim::CounterId stores = add_counter("stores that the hub has taken in");
    for (const GpuId gpu : gpus) fabric.gpu(gpu).count_stores(stores);
    if (options.record) {
        recorder_ = std::make_unique<sim::Recorder>(fabric.topology());
        fabric.record(*recorder_);
        for (const GpuId gpu : gpus) cards_[gpu].blocks.record(recorder_->kernels(gpu));
    }
    issued_.resize(gpus.size());
    ended_.resize(gpus.size());
}

// After an error some programs still stand in kernels of the cards.
Gpus::~Gpus() {
    fabric.drop_programs();
}

sim::CounterId Gpus::add_counters(const char* name, std::size_t how_many) {
    sim::CounterId first = 0;
    for (const GpuId gpu : all()) {
        const sim::CounterId added = fabric.gpu(gpu).add_counters(name, how_many);
        if (gpu > 0 && added != first)
            throw std::logic_error("GPUs have different counters: add those for all first");
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
    for (std::size_t gpu = 0; gpu < ended_.size(); ++gpu)
        least = std::min(least, ended_[gpu] - issued_[gpu]);
    return std::max<Ps>(0, least);
}

/// Time of the GPU that computes longest; once it is done, it waits for rows from others.
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
            for (const auto& [begin, end] : intervals)
                made.intervals.push_back({what, static_cast<int>(gpu), begin, end});
        };
        add(BusyInterval::What::compute, activity.compute_intervals());
        add(BusyInterval::What::communication, activity.communication_intervals());
    }
    made.statistics = statistics();
    if (recorder_) made.timeline = recorder_->timeline(end_);
    return made;
}

/// What links and switches counted.
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

std::vector<Statistic> Gpus::hub_statistics(HubUnits units) {
    const Totals sum = add_up(*this);
    if (sum.aau.lookups == 0) return {};
    if (units == HubUnits::dysharp) return dysharp_statistics(sum);
    const auto number = [](auto value) { return static_cast<double>(value); };
    std::vector<Statistic> list;
    if (sum.rpm.packets > 0) {
        list = {
            {"rpm", "stores", number(sum.rpm.stores), "taken in from SMs"},
            {"rpm", "packets", number(sum.rpm.packets), "given out to the links"},
            {"rpm", "stores_per_packet", share(sum.rpm.stores, sum.rpm.packets), "merge ratio"},
            {"rpm", "full_packets", share(sum.rpm.full, sum.rpm.packets), "share of packets"},
            {"rpm", "timed_out", number(sum.rpm.timed_out), "packets that left before full"},
            {"rpm", "deepest", number(sum.rpm.deepest), "packets in one partition, at most"},
        };
    }
    const std::vector<Statistic> rest = {
        {"aau", "lookups", number(sum.aau.lookups), "packets"},
        {"aau", "rat_hits", number(sum.aau.hits), "found in the RAT"},
        {"aau", "rows", number(sum.aau.allocated), "allocated"},
        {"aau", "evictions", number(sum.aau.evictions), "entries written to device memory"},
        {"aau", "restores", number(sum.aau.restores), "entries read back for a late packet"},
        {"aau", "spill_bytes", number(sum.aau.spill_bytes), "of that, both ways"},
        {"aau", "bank_wait_us", to_us(sum.aau.bank_wait), "sum over packets"},
        {"dam", "counter_updates", number(sum.dam.updates), "acknowledgements counted"},
        {"dam", "ready", number(sum.dam.ready), "row blocks released when full"},
        {"dam", "released", number(sum.dam.released), "row blocks released by AllReady"},
        {"dam", "deallocated", number(sum.dam.deallocated), "row blocks never filled"},
        {"dam", "restored", number(sum.dam.restored), "counters read back from memory"},
        {"dam", "table_entries", number(sum.dam.entries), "of the dependency tables"},
        {"memory", "worst_case_bytes", number(sum.worst_case), "room for every token everywhere"},
        {"memory", "reserved_bytes", number(sum.reserved), "regions and pages handed out"},
        {"memory", "used_bytes", number(sum.used), "rows that arrived"},
        {"memory", "most_rows", sum.most_rows, "in one region"},
    };
    list.insert(list.end(), rest.begin(), rest.end());
    return list;
}

}  // namespace moehub::layers
