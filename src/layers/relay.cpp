#include "layers/relay.hpp"

namespace moehub::layers {
namespace {

constexpr std::uint16_t kWhole = 0xffff;  ///< no choice: a sum of several
constexpr Bytes kExpert = 2;              ///< bytes of an expert's number
constexpr Bytes kToken = 4;               ///< bytes of a token's

}  // namespace

Relay::Relay(MultimemLayer& rows)
    : rows_(rows),
      out_(rows.layer.gpus, "tokens of other nodes", 1),
      home_(rows.layer.gpus, "sums of other nodes", 1) {}

GpuId Relay::on_rail_of(GpuId home, std::uint32_t node) const {
    const sim::Topology& topology = rows_.layer.gpus.fabric.topology();
    return static_cast<GpuId>(node * topology.gpus_per_node + topology.rail(home));
}

GpuId Relay::collector(GpuId gpu, std::uint32_t token) const {
    return on_rail_of(rows_.layer.home_of(token), rows_.layer.gpus.fabric.topology().node(gpu));
}

std::int64_t Relay::crossings(GpuId home) const {
    if (!several_nodes()) return 0;
    const std::uint32_t here = rows_.layer.gpus.fabric.topology().node(home);
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < rows_.layer.tokens(home); ++i) {
        const std::vector<Rows> nodes = rows_.rows_by_node(rows_.layer.first_token(home) + i);
        for (std::uint32_t node = 0; node < nodes.size(); ++node) {
            sum += node != here && !nodes[node].empty();
        }
    }
    return sum;
}

int Relay::cross(GpuId home, const std::vector<Rows>& by_node) {
    const std::uint32_t here = rows_.layer.gpus.fabric.topology().node(home);
    int stores = 0;
    for (std::uint32_t node = 0; node < by_node.size(); ++node) {
        if (node == here || by_node[node].empty()) continue;
        const Bytes list = kToken + kExpert * static_cast<Bytes>(by_node[node].size());
        out_.store_told(home, on_rail_of(home, node), 0, by_node[node], rows_.sent_bytes() + list);
        ++stores;
    }
    return stores;
}

std::vector<Rows> Relay::take(GpuId gpu) {
    std::vector<Rows> tokens;
    for (sim::Received& one : out_.take_messages(gpu, 0)) {
        tokens.push_back(std::move(one.message.rows));
    }
    return tokens;
}

void Relay::send_home(GpuId from, std::uint32_t token) {
    const Bytes bytes = rows_.layer.combine_bytes() + kToken;
    home_.store(from, rows_.layer.home_of(token), 0, {{token, kWhole, 0, nullptr}}, bytes);
}

Relay::Homecoming Relay::take_home(GpuId home) {
    Homecoming came;
    for (const sim::Received& one : home_.take_messages(home, 0)) {
        ++came.messages;
        for (const CarriedRow& row : one.message.rows) {
            const auto bytes = static_cast<double>(rows_.layer.combine_bytes());
            rows_.layer.card(home).hbm.take(2 * bytes);
            rows_.add_crossed(home, row.token, one.from);
            rows_.note_returned(row.token, one.from);
            ++came.sums;
        }
    }
    return came;
}

}  // namespace moehub::layers
