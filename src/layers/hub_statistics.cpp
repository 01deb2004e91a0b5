// What the units of all hubs counted.
#include "layers/gpus.hpp"

#include <algorithm>

namespace moehub::layers {
namespace {

struct Totals {
    sim::RpmStats rpm;
    sim::AauStats aau;
    sim::DamStats dam;
    Bytes reserved = 0;
    Bytes worst_case = 0;
    Bytes used = 0;
    double most_rows = 0;  ///< of one region
};

template <class Stats, class... Members>
void add(Stats& sum, const Stats& part, Members... members) {
    ((sum.*members += part.*members), ...);
}

Totals add_up(Gpus& gpus) {
    Totals sum;
    for (std::uint32_t i = 0; i < gpus.count(); ++i) {
        const sim::Hub& hub = gpus.hub(static_cast<GpuId>(i));
        using Rpm = sim::RpmStats;
        if (const Rpm* rpm = gpus.fabric.egress(i).rpm_stats()) {
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
