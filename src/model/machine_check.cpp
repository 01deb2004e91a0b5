/// What must hold between the fields of a Machine.
#include "model/records.hpp"

#include <algorithm>

namespace moehub {
namespace {

std::string time_text(Ps time) {
    return print_value(FieldKind::time, static_cast<double>(time));
}

std::string size_text(Bytes size) {
    return fmt::format("{} B", size);  // not as "4.16 KB": multiples are easier seen so
}

void check_latency(Ps latency, const Given& given, const std::string& key) {
    if (static_cast<double>(latency) < kShortest)
        refuse(given, key, "found {}, allowed 1 ns and more", time_text(latency));
}

/// Checks that packets can be cut, trains counted, and that buffers hold what they must.
void check_link(const LinkSpec& link, const Given& given, const std::string& table) {
    check_latency(link.latency, given, table + ".latency");
    if (link.payload % link.flit != 0)
        refuse(given, table + ".payload", "found {}, allowed multiples of {}",
               size_text(link.payload), named(given, table + ".flit", size_text(link.flit)));
    const Bytes packet = link.payload / link.flit + link.header_flits + link.multicast_flits;
    if (packet > 65535)
        refuse(given, table + ".payload",
               "found {}, which makes packets of {} flits, allowed at most 65535",
               size_text(link.payload), packet);
    const Bytes largest = std::max<Bytes>(packet, link.ack_flits);
    if (largest > link.buffer_flits)
        refuse(given, table + ".buffer_flits",
               "found {}, allowed {} or more: one packet or acknowledgement", link.buffer_flits,
               largest);
}

/// Fields lie in memory by lines, a packet's payload each: whatever carries them fills whole ones.
void check_lines(const Machine& m, const Given& given) {
    const std::string line = named(given, "link.payload", size_text(m.link.payload));
    if (m.nic.bandwidth > 0 && m.nic.payload % m.link.payload != 0)
        refuse(given, "nic.payload", "found {}, allowed multiples of {}", size_text(m.nic.payload),
               line);
    const Bytes store = m.moe_hub.store_bytes;
    if (store >= m.link.payload) return;  // it fills a packet
    if (store % m.link.flit != 0 || m.link.payload % store != 0)
        refuse(given, "moe_hub.store_bytes", "found {}, allowed multiples of {} that divide {}",
               size_text(store), named(given, "link.flit", size_text(m.link.flit)), line);
}

void check_nodes(const Machine& m, const Given& given) {
    const std::int64_t gpus = std::int64_t{m.nodes} * m.gpus_per_node;
    if (gpus > kMostGpus)
        refuse(given, "nodes", "found {}, {} GPUs in all, allowed at most {} GPUs", m.nodes, gpus,
               kMostGpus);
    if (m.max_gpus != 0 && m.max_gpus < gpus)
        refuse(given, "max_gpus", "found {}, allowed 0 or {} and more", m.max_gpus, gpus);
    const bool mesh = m.topology == NodeTopology::mesh;
    if (!mesh && m.switches < 1)
        refuse(given, "switches", "found 0, allowed 1 or more with {}",
               named(given, "topology", "switched"));
    if (mesh && m.switches != 0)
        refuse(given, "switches", "found {}, allowed 0 with {}", m.switches,
               named(given, "topology", "mesh"));
    if (m.switches_down > 0 && m.switches_down >= m.switches)
        refuse(given, "switches_down", "found {}, allowed at most {} of {}", m.switches_down,
               std::max(0, m.switches - 1),
               named(given, "switches", fmt::format("{}", m.switches)));
    if (mesh && m.in_switch)
        refuse(given, "in_switch", "found true, allowed false with {}",
               named(given, "topology", "mesh"));
    if (mesh && m.gpus_per_node > 256)
        refuse(given, "gpus_per_node", "found {}, allowed at most 256 with {}", m.gpus_per_node,
               named(given, "topology", "mesh"));
}

void check_nics(const Machine& m, const Given& given) {
    if (m.sharp && m.nic.bandwidth == 0)
        refuse(given, "sharp", "found true, allowed false with {}",
               named(given, "nic.bandwidth", print_value(FieldKind::rate, 0)));
    if (m.spines > 0) check_latency(m.spine_latency, given, "spine_latency");
    if (m.nic.bandwidth > 0 && m.nic.bandwidth < kSlowest)
        refuse(given, "nic.bandwidth", "found {}, allowed 0 B/s or {} and more",
               print_value(FieldKind::rate, m.nic.bandwidth),
               print_value(FieldKind::rate, kSlowest));
    if (m.nic.bandwidth > 0) return check_link(m.nic, given, "nic");
    if (m.nodes > 1)
        refuse(given, "nic.bandwidth", "found 0 B/s, allowed {} and more with {}",
               print_value(FieldKind::rate, kSlowest),
               named(given, "nodes", std::to_string(m.nodes)));
}

}  // namespace

void check(const Machine& machine, const Given& given) {
    check_nodes(machine, given);
    check_link(machine.link, given, "link");
    check_nics(machine, given);
    check_lines(machine, given);
}

}  // namespace moehub
