// Are the bytes on every GPU's NIC those that each way of crossing between nodes must send, to the
// flit? Written from what the systems say they do, for two nodes of four GPUs.
#include "error_of.hpp"
#include "small_layer.hpp"

#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::node_bytes_test {
namespace {

constexpr int kNode = 4;
constexpr int kGpus = 2 * kNode;
constexpr int kExperts = 16;
constexpr int kTopK = 2;
constexpr Bytes kRow = 512;
constexpr std::int64_t kTokens = 32;  ///< tokens of a GPU

int node(int gpu) {
    return gpu / kNode;
}
/// The GPU of another's rail in a node.
int on_rail(int gpu, int of_node) {
    return of_node * kNode + gpu % kNode;
}

/// What NICs send: packets of 4 KiB, flits of 64 B, a header of one.
struct Nics {
    std::int64_t up[kGpus] = {};

    static std::int64_t packets(Bytes bytes) { return (bytes + 4095) / 4096; }
    void store(int from, int to, Bytes bytes) {
        if (node(from) == node(to)) return;
        bytes = std::max<Bytes>(1, bytes);
        up[from] += packets(bytes) + (bytes + 63) / 64;
        up[to] += packets(bytes);
    }
    void all_to_all(Bytes bytes) {
        for (int from = 0; from < kGpus; ++from)
            for (int to = 0; to < kGpus; ++to) store(from, to, bytes);
    }
};

/// Who chose whom.
struct Rows {
    std::vector<std::vector<Bytes>> to_rank;  ///< [home][rank]
    std::vector<std::pair<int, Bytes>>
        away;  ///< home and rows in the other node of each token with any
};

Rows rows_of(const Routing& routing, int ranks) {
    Rows rows;
    rows.to_rank.assign(kGpus, std::vector<Bytes>(static_cast<std::size_t>(ranks)));
    for (std::int64_t token = 0; token < routing.tokens; ++token) {
        const int home = static_cast<int>(token / kTokens);
        Bytes away = 0;
        for (const int expert : routing.chosen_by(0, token)) {
            const int rank = expert / (kExperts / ranks);
            ++rows.to_rank[static_cast<std::size_t>(home)][static_cast<std::size_t>(rank)];
            away += node(rank * kGpus / ranks) != node(home);
        }
        if (away > 0) rows.away.emplace_back(home, away);
    }
    return rows;
}

Bytes rows_to(const Rows& rows, int home, int rank) {
    return rows.to_rank[static_cast<std::size_t>(home)][static_cast<std::size_t>(rank)];
}

void direct(const Rows& rows, Nics& nics) {
    nics.all_to_all(4 * kExperts / kGpus);
    for (int home = 0; home < kGpus; ++home)
        for (int gpu = 0; gpu < kGpus; ++gpu) {
            nics.store(home, gpu, kRow * rows_to(rows, home, gpu));
            nics.store(gpu, home, kRow * rows_to(rows, home, gpu));
        }
}

/// All rows of a node for a GPU leave by that GPU's rail, together; results likewise.
void by_rails(const Rows& rows, Nics& nics) {
    nics.all_to_all(4 * kExperts / kGpus);
    for (int to = 0; to < kGpus; ++to) {
        const int from = on_rail(to, 1 - node(to));
        Bytes out = 0;
        Bytes back = 0;
        for (int i = 0; i < kNode; ++i) {
            out += rows_to(rows, node(from) * kNode + i, to);
            back += rows_to(rows, to, node(from) * kNode + i);
        }
        nics.store(from, to, kRow * out);
        nics.store(from, to, kRow * back);
    }
}

/// Whatever the routing: every token once, with its choices, and one sum back.
void hierarchical(const Rows&, Nics& nics) {
    nics.all_to_all(4 * kExperts);
    for (int home = 0; home < kGpus; ++home) {
        const int other = on_rail(home, 1 - node(home));
        nics.store(home, other, kTokens * (kRow + 12 * kTopK));
        nics.store(other, home, kTokens * kRow);
    }
}

/// Two GPUs share an expert: a row, its weight and the sum of its results cross once.
void shared_by_two(const Rows& rows, Nics& nics) {
    nics.all_to_all(4 * kExperts);
    for (int home = 0; home < kGpus; ++home)
        for (int rank = 0; rank < kGpus / 2; ++rank) {
            const int gpu = 2 * rank + home % 2;
            nics.store(home, gpu, kRow * rows_to(rows, home, rank));
            nics.store(home, gpu, 4 * rows_to(rows, home, rank));
            nics.store(gpu, home, kRow * rows_to(rows, home, rank));
        }
}

/// A token and the list of its experts once, how many those were, one sum back; and AllReady.
void once(const Rows& rows, Nics& nics) {
    nics.all_to_all(16);
    for (int home = 0; home < kGpus; ++home) nics.store(home, on_rail(home, 1 - node(home)), 8);
    for (const auto& [home, away] : rows.away) {
        const int other = on_rail(home, 1 - node(home));
        nics.store(home, other, kRow + 4 + 2 * away);
        nics.store(other, home, kRow + 4);
    }
}

/// A token and its choices once, how many messages those were, one sum back; a block for each
/// token: no SM has two. Flags stay in the node.
void one_sided_once(const Rows& rows, Nics& nics) {
    for (int home = 0; home < kGpus; ++home) nics.store(home, on_rail(home, 1 - node(home)), 8);
    for (const auto& [home, away] : rows.away) {
        const int other = on_rail(home, 1 - node(home));
        nics.store(home, other, kRow + 8 * kTopK);
        nics.store(other, home, kRow);
    }
}

struct Crossing {
    std::string name;
    std::string system;
    std::function<void(SystemSpec&)> change;
    int tensor_parallel;
    void (*bytes)(const Rows&, Nics&);
};

const std::vector<Crossing> kCrossings = {
    {"all_to_all", "all-to-all", [](SystemSpec& s) { s.pxn = false; }, 1, direct},
    {"all_to_all_by_rails", "all-to-all", [](SystemSpec& s) { s.pxn = true; }, 1, by_rails},
    {"hierarchical", "hierarchical", [](SystemSpec&) {}, 1, hierarchical},
    {"moe_hub_relay", "moe-hub-relay", [](SystemSpec&) {}, 1, once},
    {"one_sided_relay", "one-sided-relay", [](SystemSpec&) {}, 1, one_sided_once},
    {"megatron_te_shared", "megatron-te", [](SystemSpec&) {}, 2, shared_by_two},
};

class NicBytes : public ::testing::TestWithParam<Crossing> {};
INSTANTIATE_TEST_SUITE_P(Systems, NicBytes, ::testing::ValuesIn(kCrossings),
                         [](const auto& one) { return one.param.name; });

TEST_P(NicBytes, are_the_closed_form) {
    Case layer;
    layer.machine = small_cluster(2);
    layer.machine.gpus_per_node = kNode;
    layer.machine.gpu = load_gpu("h800-sxm");
    layer.model = small_model(kExperts, kTopK, kRow / 2);
    layer.options.tensor_parallel = GetParam().tensor_parallel;
    layer.options.verify = true;
    const int ranks = kGpus / GetParam().tensor_parallel;
    SystemSpec system = load_system(GetParam().system);
    GetParam().change(system);
    for (const std::string routed : {"uniform", "zipf:1.5"}) {
        const Routing routing = make_routing(parse_routing(routed), layer.model, kGpus * kTokens);
        Nics nics;
        GetParam().bytes(rows_of(routing, ranks), nics);
        for (const Grain grain : {Grain::packet, Grain::row}) {
            layer.options.grain = grain;
            const LayerResult result = simulate_layer(
                {layer.machine, layer.model, routing, contiguous_placement(kExperts, ranks)},
                system, layer.options);
            EXPECT_LT(result.largest_error, 1e-11);
            for (int gpu = 0; gpu < kGpus; ++gpu) {
                Bytes sent = 0;
                for (const LinkUse& link : result.links)
                    if (link.from == fmt::format("gpu {}", gpu) && link.to.starts_with("leaf"))
                        sent += link.bytes;
                EXPECT_EQ(sent, 64 * nics.up[gpu]) << "gpu " << gpu;
            }
        }
    }
}

TEST(OncePerNode, is_the_plain_system_in_one_node) {
    Case layer;
    layer.routing = "zipf:1";
    EXPECT_EQ(layer.run("moe-hub-relay").time, layer.run("moe-hub").time);
    EXPECT_EQ(layer.run("one-sided-relay").time, layer.run("one-sided").time);
}

/// One SM that passes on what several would.
TEST(OncePerNode, takes_the_time_of_those_in_between) {
    Case layer;
    layer.machine = small_cluster(2);
    layer.machine.gpu = load_gpu("h800-sxm");
    layer.machine.nic.bandwidth *= 100;
    layer.tokens = 2048;
    const Routing routing = make_routing({}, layer.model, layer.tokens);
    const LayerInput input{layer.machine, layer.model, routing,
                           contiguous_placement(layer.model.experts, layer.machine.gpus())};
    for (const std::string name : {"moe-hub-relay", "one-sided-relay"}) {
        SystemSpec system = load_system(name);
        const Ps several = simulate_layer(input, system, layer.options).time;
        system.communication_sms = 1;
        EXPECT_GT(simulate_layer(input, system, layer.options).time,
                  1.05 * static_cast<double>(several))
            << name;
    }
}

TEST(OncePerNode, says_what_it_cannot_run) {
    Case layer;
    layer.options.tensor_parallel = 2;
    EXPECT_EQ(error_of([&] { layer.run("moe-hub-relay"); }),
              "moe-hub-relay cannot run this: once_per_node: experts are whole, found 2 GPUs for "
              "each");
    EXPECT_EQ(error_of([&] { layer.run("one-sided-relay"); }),
              "one-sided-relay cannot run this: experts are whole, found 2 GPUs for each");
    layer.options.tensor_parallel = 1;
    SystemSpec system = load_system("moe-hub-relay");
    system.communication_sms = 0;
    const Routing routing = make_routing({}, layer.model, layer.tokens);
    const LayerInput input{layer.machine, layer.model, routing, contiguous_placement(8, 4)};
    EXPECT_EQ(error_of([&] { check_layer(input, system, layer.options); }),
              "moe-hub-relay cannot run this: once_per_node: rows are passed on by 0 SMs, allowed: "
              "1 to 131");
}

}  // namespace
}  // namespace moehub::testing::node_bytes_test
