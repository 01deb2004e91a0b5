// Does a token cross once to every node that needs it, and its sum once back: are the bytes on
// every GPU's NIC and NVLink the closed form, to the flit? Three nodes of four GPUs.
#include "small_layer.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::forwarded_test {
namespace {

constexpr int kNodes = 3;
constexpr int kPerNode = 4;
constexpr int kGpus = kNodes * kPerNode;
constexpr int kExperts = 24;
constexpr int kTopK = 4;
constexpr int kTokens = 60;  ///< tokens of a GPU
constexpr Bytes kRow = 512;

Machine three_nodes() {
    Machine machine = load_machine("h800-cluster");
    machine.nodes = kNodes;
    machine.gpus_per_node = kPerNode;
    machine.link.credit_flits = 0;  // their number depends on time
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

using Tokens = std::vector<std::set<int>>;  ///< GPUs of each token

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

#ifndef MOEHUB_SANITIZED  // long, and in code that shorter tests run
/// Rows of the published file that begin so, as a file.
std::string published_rows(const std::vector<std::string>& beginnings) {
    std::ifstream all(MOEHUB_SOURCE_DIR "/validation/published_cluster_comm.csv");
    const std::string path = ::testing::TempDir() + "cluster_comm_part.csv";
    std::ofstream part(path);
    std::string line;
    for (std::size_t i = 0; std::getline(all, line); ++i) {
        const bool wanted = std::any_of(beginnings.begin(), beginnings.end(),
                                        [&](const auto& some) { return line.starts_with(some); });
        if (i == 0 || wanted) part << line << '\n';
    }
    return path;
}

TEST(Forwarded, rows_take_as_long_as_published) {
    const Validation found = validate(published_rows(
        {"deepep,h200-cluster,16,8,4096,7168,256,8,2,1,2,dispatch,774", "deepep-ll,h800-cluster,16",
         "deepep-ll-rdma,h800-cluster,8", "hybrid-ep,gb200-nvl72,8,4,4096,7168,64,8,,2"}));
    const std::map<std::string, std::pair<std::size_t, double>> today = {
        {"deepep", {1, 0.12}},
        {"deepep-ll", {2, 0.12}},
        {"deepep-ll-rdma", {2, 0.06}},
        {"hybrid-ep", {4, 0.06}}};
    ASSERT_EQ(found.summary.size(), today.size());
    for (const ValidationSummary& some : found.summary) {
        ASSERT_TRUE(today.contains(some.name)) << some.name;
        EXPECT_EQ(some.rows, today.at(some.name).first) << some.name;
        EXPECT_LT(some.mean, today.at(some.name).second) << some.name;
    }
}
#endif

/// Two nodes of H800: what crosses, NICs and NVLink bind in turn.
LayerResult on_two_nodes(const char* system, const Overrides& overrides = {}) {
    Case layer;
    layer.machine = with_gpus(load_machine("h800-cluster"), 16);
    layer.model = small_model(64, 8, 2048);
    layer.tokens = 16 * 256;
    layer.options.compute = false;
    const Routing routing = make_routing({}, layer.model, layer.tokens);
    return simulate_layer({layer.machine, layer.model, routing, contiguous_placement(64, 16)},
                          load_system(system, overrides), layer.options);
}

TEST(Forwarded, fewer_sms_and_a_slower_queue_pair_take_longer) {
    const Ps most = on_two_nodes("hybrid-ep").dispatch;
    EXPECT_GT(on_two_nodes("hybrid-ep", {"communication_sms=2"}).dispatch, 2 * most);
    const LayerResult plain = on_two_nodes("deepep");
    const LayerResult paced = on_two_nodes("deepep", {"qp_rate=5GB/s"});
    // A token of 2 KiB in FP8 with scales, number and choices crosses at 5 GB/s; its sum in BF16.
    const double crossing = 256 * (2048 + 64 + 100) / 5e9;
    EXPECT_LT(plain.dispatch, paced.dispatch);
    EXPECT_GT(to_seconds(paced.dispatch), crossing * 0.98);
    EXPECT_LT(to_seconds(paced.dispatch), crossing * 1.3);
    EXPECT_GT(to_seconds(paced.combine), 256 * 4100 / 5e9 * 0.98);
}

TEST(Forwarded, low_latency_rows_over_nics_alone_leave_nvlink_idle) {
    const LayerResult result = on_two_nodes("deepep-ll-rdma");
    for (const LinkUse& link : result.links) {
        const bool nvlink = link.from.starts_with("switch") || link.to.starts_with("switch");
        EXPECT_TRUE(!nvlink || link.bytes == 0) << link.from << " to " << link.to;
    }
    EXPECT_GT(result.dispatch, on_two_nodes("deepep-ll").dispatch);
}

TEST(Forwarded, low_latency_rows_over_nics_alone_give_the_reference) {
    Case layer;
    layer.machine = three_nodes();
    layer.model = small_model(kExperts, kTopK, kRow / 2);
    layer.tokens = kGpus * kTokens;
    layer.options.verify = true;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        layer.options.pass = pass;
        EXPECT_LT(layer.run("deepep-ll-rdma").largest_error, 1e-9);
    }
}

TEST(Forwarded, rows_that_cross_give_the_reference) {
    Case layer;
    layer.machine = three_nodes();
    layer.model = small_model(kExperts, kTopK, kRow / 2);
    layer.tokens = kGpus * kTokens - 5;
    layer.options.verify = true;
    for (const char* system : {"deepep", "deepep-single-qp", "deepep-v2", "hybrid-ep"}) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
            layer.options.pass = pass;
            EXPECT_LT(layer.run(system).largest_error, 1e-9) << system;
        }
    }
}

TEST(Forwarded, nics_are_needed_where_nothing_else_is_used) {
    Case layer;
    EXPECT_FALSE(layer.allowed("deepep-ll-rdma"));
}

/// Nodes that a token of top-8 reaches on average when groups of experts are nodes.
double nodes_reached(int experts, int nodes, int top_groups) {
    MovedRows what;
    what.experts = experts;
    what.top_k = 8;
    what.groups = nodes;
    what.top_groups = top_groups;
    constexpr std::int64_t kDrawn = 20'000;
    const Routing routing = routing_by_scores(what, kDrawn);
    std::size_t sum = 0;
    for (std::int64_t token = 0; token < kDrawn; ++token) {
        std::set<int> reached;
        for (const int expert : routing.chosen_by(0, token))
            reached.insert(expert * nodes / experts);
        sum += reached.size();
    }
    return static_cast<double>(sum) / kDrawn;
}

TEST(Forwarded, tokens_reach_as_many_nodes_as_in_deepeps_tests) {
    EXPECT_NEAR(nodes_reached(256, 2, 2), 1.99, 0.01);
    EXPECT_NEAR(nodes_reached(256, 4, 4), 3.61, 0.02);
    EXPECT_NEAR(nodes_reached(256, 8, 4), 3.98, 0.02);
    EXPECT_NEAR(nodes_reached(512, 8, 8), 5.27, 0.03);
}

}  // namespace
}  // namespace moehub::testing::forwarded_test
