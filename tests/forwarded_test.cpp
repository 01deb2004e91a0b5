// Does a token cross once to every node that needs it, and its sum once back: are the bytes on
// every GPU's NIC and NVLink the closed form, to the flit? Three nodes of four GPUs.
#include "small_layer.hpp"

#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing {
namespace {

constexpr int kNodes = 3;
constexpr int kPerNode = 4;
constexpr int kGpus = kNodes * kPerNode;
constexpr int kExperts = 24;
constexpr int kTopK = 4;
constexpr int kTokens = 60;  ///< of a GPU
constexpr Bytes kRow = 512;

Machine three_nodes() {
    Machine machine = load_machine("h800-cluster");
    machine.nodes = kNodes;
    machine.gpus_per_node = kPerNode;
    return machine;
}

/// Flits that leave and reach a GPU over one kind of link.
struct Flits {
    Bytes flit = 16;
    Bytes payload = 128;
    std::int64_t up[kGpus] = {};
    std::int64_t down[kGpus] = {};

    void store(int from, int to, Bytes bytes) {
        const std::int64_t packets = (bytes + payload - 1) / payload;
        const std::int64_t data = packets + (bytes + flit - 1) / flit;
        up[from] += data;
        down[to] += data;
        up[to] += packets;  // acknowledgements
        down[from] += packets;
    }
};

struct Expected {
    Flits inside;
    Flits between{64, 4096, {}, {}};

    void store(int from, int to, Bytes bytes) {
        if (from == to || bytes == 0) return;
        (from / kPerNode == to / kPerNode ? inside : between).store(from, to, bytes);
    }
    /// Messages of eight at most.
    void store_rows(int from, int to, Bytes rows, Bytes each) {
        for (; rows > 0; rows -= 8) store(from, to, std::min<Bytes>(rows, 8) * each);
    }
};

struct Shape {
    const char* system;
    int channels;
    int chunk;     ///< tokens that cross together
    Bytes packet;  ///< inside a node
    Bytes beside;  ///< a copy on its way out
    Bytes counts;  ///< told to every GPU
};

using Tokens = std::vector<std::set<int>>;  ///< GPUs of each

/// One chunk of a home's tokens, out and back.
void move_chunk(Expected& all, int home, const Tokens& chunk, Bytes beside) {
    const Bytes out = kRow + beside;
    const Bytes back = kRow + 4;
    for (int node = 0; node < kNodes; ++node) {
        const int rail = node * kPerNode + home % kPerNode;
        Tokens here;
        for (const std::set<int>& gpus : chunk) {
            std::set<int> of_node;
            for (const int gpu : gpus)
                if (gpu / kPerNode == node) of_node.insert(gpu);
            if (!of_node.empty()) here.push_back(of_node);
        }
        if (here.empty()) continue;
        all.store_rows(home, rail, static_cast<Bytes>(here.size()), out);
        all.store(home, rail, 8);  // the flag
        all.store_rows(rail, home, static_cast<Bytes>(here.size()), back);
        for (int gpu = node * kPerNode; gpu < (node + 1) * kPerNode; ++gpu) {
            Bytes copies = 0;
            for (std::size_t first = 0; first < here.size(); first += 8) {
                Bytes piece = 0;
                for (std::size_t i = first; i < std::min(first + 8, here.size()); ++i)
                    piece += here[i].contains(gpu);
                all.store(rail, gpu, piece * out);
                copies += piece;
            }
            all.store_rows(gpu, rail, copies, back);
        }
    }
}

Expected expected(const Shape& shape, const Routing& routing) {
    Expected all;
    all.inside.payload = shape.packet;
    for (int home = 0; home < kGpus; ++home) {
        for (int to = 0; to < kGpus; ++to) all.store(home, to, shape.counts);
        std::map<std::pair<int, int>, Tokens> chunks;
        std::map<int, int> first;  // token of a channel
        for (int token = 0; token < kTokens; ++token) {
            const int channel = token * shape.channels / kTokens;
            first.try_emplace(channel, token);
            std::set<int> gpus;
            for (const int expert : routing.chosen_by(0, home * kTokens + token))
                gpus.insert(expert * kGpus / kExperts);
            chunks[{channel, (token - first[channel]) / shape.chunk}].push_back(gpus);
        }
        for (const auto& [number, chunk] : chunks) move_chunk(all, home, chunk, shape.beside);
    }
    return all;
}

Bytes on_links(const LayerResult& result, int gpu, bool up, bool nic) {
    const std::string name = fmt::format("gpu {}", gpu);
    Bytes sum = 0;
    for (const LinkUse& link : result.links) {
        const bool is_nic = link.from.starts_with("leaf") || link.to.starts_with("leaf");
        if ((up ? link.from : link.to) == name && is_nic == nic) sum += link.bytes;
    }
    return sum;
}

TEST(Forwarded, bytes_on_nics_and_nvlink_are_the_closed_form) {
    Case layer;
    layer.machine = three_nodes();
    layer.model = small_model(kExperts, kTopK, kRow / 2);
    layer.tokens = kGpus * kTokens;
    const Shape shapes[] = {{"deepep", 12, 20, 64, 4 + 12 * kTopK, 4 * (1 + kExperts / kGpus)},
                            {"deepep-v2", 12, 16, 128, 4 + 12 * kTopK, 4 * (1 + kExperts / kGpus)},
                            {"hybrid-ep", 16, 128, 128, 4 * kExperts / kNodes, kTokens * kExperts}};
    for (const Shape& shape : shapes) {
        for (const std::string routed : {"uniform", "zipf:1.5"}) {
            const Routing routing = make_routing(parse_routing(routed), layer.model, layer.tokens);
            const Expected wanted = expected(shape, routing);
            SystemSpec system = load_system(shape.system);
            system = with_software(system, {.host = {}, .fused_activation = {}, .fp8 = false});
            const Placement placement = contiguous_placement(kExperts, kGpus);
            const LayerResult result = simulate_layer(
                {layer.machine, layer.model, routing, placement}, system, layer.options);
            for (int gpu = 0; gpu < kGpus; ++gpu) {
                const std::string where = fmt::format("{} {} gpu {}", shape.system, routed, gpu);
                EXPECT_EQ(on_links(result, gpu, true, true), 64 * wanted.between.up[gpu]) << where;
                EXPECT_EQ(on_links(result, gpu, false, true), 64 * wanted.between.down[gpu])
                    << where;
                EXPECT_EQ(on_links(result, gpu, true, false), 16 * wanted.inside.up[gpu]) << where;
                EXPECT_EQ(on_links(result, gpu, false, false), 16 * wanted.inside.down[gpu])
                    << where;
            }
        }
    }
}

}  // namespace
}  // namespace moehub::testing
