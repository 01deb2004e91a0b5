#include "sim/recorder.hpp"

#include "sim/fabric.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

/// Spans of a kernel that lie closer than a run / kFinest are one: nobody could see the gap.
constexpr Ps kFinest = 4096;

template <std::size_t kBins>
TimeSeries series_of(const TimeBins<kBins>& bins, std::string where, std::string name, double per) {
    TimeSeries series{std::move(where), std::move(name), bins.width(), {}};
    for (const std::int64_t value : bins.bins())
        series.values.push_back(static_cast<double>(value) / per);
    while (!series.values.empty() && series.values.back() == 0) series.values.pop_back();
    return series;
}

// What every link carried, for results.

/// Who is at the far end of an uplink: its switch, its leaf, or, in a mesh, a peer.
ComponentId behind_uplink(const Topology& topology, std::uint32_t gpu, std::uint32_t uplink) {
    if (topology.is_nic(uplink)) return topology.of_switch(topology.leaf(gpu));
    if (!topology.mesh) return topology.of_switch(topology.node_switch(topology.node(gpu), uplink));
    const std::uint32_t rail = uplink < topology.rail(gpu) ? uplink : uplink + 1;
    return topology.gpu(topology.node(gpu) * topology.gpus_per_node + rail);
}

LinkUse use_of(const Busy& busy, const Wire& wire, std::string from, std::string to) {
    LinkUse use{std::move(from), std::move(to), busy.flits() * wire.flit, 0, busy.width(), {}};
    for (const Ps bin : busy.bins()) {
        use.bins.push_back(bin);
        use.busy += bin;
    }
    while (!use.bins.empty() && use.bins.back() == 0) use.bins.pop_back();
    return use;
}

}  // namespace

std::string name_of(const Topology& topology, ComponentId component) {
    if (component < topology.gpus) return fmt::format("gpu {}", component);
    const SwitchId number = component - topology.of_switch(0);
    const Topology::Tier tier = topology.tier(number);
    if (tier == Topology::Tier::spine) return fmt::format("spine {}", number - topology.spine(0));
    if (tier == Topology::Tier::leaf) return fmt::format("leaf {}", number - topology.leaf(0));
    return fmt::format("switch {} of node {}", number % topology.planes, number / topology.planes);
}

Recorder::Recorder(const Topology& topology)
    : topology_(topology),
      kernels_(topology.gpus),
      sent_(std::size_t{topology.gpus} * topology.gpus) {}

Timeline Recorder::timeline(Ps end) const {
    Timeline timeline;
    add_kernels(timeline, end);
    add_units(timeline);
    timeline.sent = sent_;
    add_rows(timeline);
    return timeline;
}

void Recorder::add_kernels(Timeline& timeline, Ps end) const {
    for (std::size_t i = 0; i < kKernelNames; ++i)
        timeline.kernels.emplace_back(name_of(static_cast<KernelName>(i)));
    for (std::uint32_t gpu = 0; gpu < topology_.gpus; ++gpu) {
        for (const KernelLog::Span& span : kernels_[gpu].spans(end / kFinest))
            timeline.spans.push_back(
                {static_cast<int>(gpu), static_cast<int>(span.kernel), span.begin, span.end});
        for (std::size_t i = 0; i < kKernelNames; ++i) {
            const auto& bins = kernels_[gpu].sms(static_cast<KernelName>(i));
            TimeSeries series = series_of(bins, name_of(topology_, topology_.gpu(gpu)),
                                          timeline.kernels[i], static_cast<double>(bins.width()));
            if (!series.values.empty()) timeline.sms.push_back(std::move(series));
        }
    }
}

void Recorder::add_units(Timeline& timeline) const {
    for (const auto& [key, bins] : units_)
        timeline.units.push_back(
            series_of(bins, name_of(topology_, key.first), std::string(key.second), 1));
}

void Recorder::add_rows(Timeline& timeline) const {
    timeline.every = std::max<std::int64_t>(1, rows.every());
    for (const FollowedRow& row : rows.rows()) {
        const int expert = row.expert == FollowedRow::kNoExpert ? -1 : row.expert;
        RowPath path{row.token, expert, row.from, row.to, {}};
        for (const FollowedRow::Step& step : row.steps)
            path.steps.push_back({step.what, name_of(topology_, step.where), step.at});
        std::stable_sort(path.steps.begin(), path.steps.end(),
                         [](const RowStep& a, const RowStep& b) { return a.at < b.at; });
        timeline.rows.push_back(std::move(path));
    }
}

std::vector<LinkUse> Fabric::links() const {
    std::vector<LinkUse> list;
    for (std::uint32_t gpu = 0; gpu < topology_.gpus; ++gpu) {
        for (const Uplinks::Uplink& uplink : egresses_[gpu].uplinks().all()) {
            const bool alone = topology_.mesh && topology_.gpus_per_node == 1;
            if (alone && !topology_.is_nic(uplink.number)) continue;  // leads to nobody
            list.push_back(
                use_of(uplink.busy, *uplink.wire, name_of(topology_, topology_.gpu(gpu)),
                       name_of(topology_, behind_uplink(topology_, gpu, uplink.number))));
        }
    }
    for (SwitchId number = 0; number < switches_.size(); ++number) {
        const std::string from = name_of(topology_, topology_.of_switch(number));
        const std::span<const Port> ports = switches_[number].ports();
        for (std::uint32_t port = 0; port < ports.size(); ++port) {
            list.push_back(use_of(ports[port].busy(), wire_of_port(number, port), from,
                                  name_of(topology_, topology_.behind_port(number, port))));
        }
    }
    return list;
}

GatherStats Fabric::gather_stats() const {
    GatherStats sum;
    for (const Switch& one : switches_) {
        for (const Port& port : one.ports()) {
            if (port.gather() == nullptr) continue;
            const GatherStats& stats = port.gather()->stats();
            sum.answers += stats.answers;
            sum.gathered += stats.gathered;
            sum.evicted += stats.evicted;
            sum.deepest = std::max(sum.deepest, stats.deepest);
        }
    }
    return sum;
}

MergeStats Fabric::merge_stats() const {
    MergeStats sum;
    for (const Switch& one : switches_) {
        for (std::size_t port = 0; port < one.ports().size(); ++port)
            if (const MergeUnit* unit = one.merge_unit(port)) sum.add(unit->stats());
    }
    return sum;
}

GroupSyncStats Fabric::group_sync_stats() const {
    GroupSyncStats sum;
    for (const Switch& one : switches_) {
        if (one.group_sync() == nullptr) continue;
        sum.meetings += one.group_sync()->stats().meetings;
        sum.deepest = std::max(sum.deepest, one.group_sync()->stats().deepest);
    }
    return sum;
}

}  // namespace moehub::sim
