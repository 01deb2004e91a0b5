// Do the units of MoE-Hub do in a layer what they are for?
#include "small_layer.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::hub_layer_test {
namespace {

TEST(HubLayer, a_small_rat_evicts_and_restores_and_costs_time_but_no_row) {
    Case layer;
    layer.tokens = 1024;
    layer.options.grain = Grain::packet;
    const LayerResult roomy = layer.run("moe-hub");
    EXPECT_EQ(statistic(roomy, "aau", "evictions"), 0);
    EXPECT_EQ(statistic(roomy, "aau", "rows"), 2048);
    layer.machine.moe_hub.rat_entries = 16;
    layer.options.verify = true;
    const LayerResult tight = layer.run("moe-hub");
    EXPECT_GT(statistic(tight, "aau", "evictions"), 1000);
    EXPECT_GT(statistic(tight, "aau", "restores"), 0);
    EXPECT_EQ(statistic(tight, "aau", "rows"), 2048);
    EXPECT_LT(tight.largest_error, 1e-12);
    EXPECT_GE(tight.time, roomy.time);
}

TEST(HubLayer, every_packet_is_looked_up_and_all_but_the_first_of_a_row_hit) {
    for (const Grain grain : {Grain::packet, Grain::row}) {
        Case layer;
        layer.options.grain = grain;
        const LayerResult result = layer.run("moe-hub");
        // 512 B of a row are four packets, its source column is one.
        EXPECT_EQ(statistic(result, "aau", "lookups"), 512 * 5);
        EXPECT_EQ(statistic(result, "aau", "rat_hits"), 512 * 4);
    }
}

TEST(HubLayer, full_row_blocks_are_released_early_and_the_rest_by_all_ready) {
    Case layer;
    layer.tokens = 4096;
    const LayerResult result = layer.run("moe-hub");
    EXPECT_GT(statistic(result, "dam", "ready"), 8);
    EXPECT_GE(statistic(result, "dam", "released"), 1);
    EXPECT_LE(statistic(result, "dam", "released"), 8);
    EXPECT_GT(statistic(result, "dam", "deallocated"), 0);
    // Four packets of each row's data count; its source column does not.
    EXPECT_EQ(statistic(result, "dam", "counter_updates"), 4096 * 2 * 4);
}

TEST(HubLayer, pages_reserve_little_more_than_is_used_and_a_region_its_worst_case) {
    Case layer;
    layer.tokens = 4096;
    const LayerResult whole = layer.run("moe-hub");
    EXPECT_EQ(statistic(whole, "memory", "reserved_bytes"),
              statistic(whole, "memory", "worst_case_bytes"));
    layer.options.page_rows = 128;
    const LayerResult paged = layer.run("moe-hub");
    EXPECT_EQ(statistic(paged, "memory", "used_bytes"), 4096 * 2 * (512 + 16));
    EXPECT_LT(statistic(paged, "memory", "reserved_bytes"),
              1.3 * statistic(paged, "memory", "used_bytes"));
    EXPECT_EQ(paged.time, whole.time);
}

TEST(HubLayer, replicas_of_a_hot_expert_share_its_rows) {
    Case layer;
    layer.model = small_model(8, 1);
    layer.tokens = 1024;
    const Routing routing = everything_to_the_first(layer.model, layer.tokens);
    const LayerResult alone = layer.run("moe-hub", routing);
    EXPECT_EQ(statistic(alone, "memory", "most_rows"), 1024);
    Placement placement = contiguous_placement(8, 4);
    placement.hosts[0] = {0, 1, 2, 3};
    for (const auto policy : {ReplicaPolicy::round_robin, ReplicaPolicy::least_loaded}) {
        layer.options.replicas = policy;
        const LayerResult shared = layer.run("moe-hub", routing, placement);
        EXPECT_EQ(statistic(shared, "memory", "most_rows"), 256);
        EXPECT_LT(shared.time, alone.time);
    }
}

TEST(HubLayer, the_rpm_merges_sectors_to_packets) {
    Case layer;
    layer.machine.moe_hub.store_bytes = 32;
    const LayerResult merged = layer.run("moe-hub");
    EXPECT_GT(statistic(merged, "rpm", "stores_per_packet"), 2.5);
    const LayerResult plain = layer.run("mh-dep");
    EXPECT_GT(plain.packets, 3 * merged.packets);
    EXPECT_GT(plain.bytes_up, merged.bytes_up);
    EXPECT_EQ(plain.payload, merged.payload);
}

TEST(HubLayer, without_the_dam_the_first_gemm_ends_later) {
    Case layer;
    layer.tokens = 8192;
    EXPECT_LT(layer.run("moe-hub").first_gemm, layer.run("mh-pkt").first_gemm);
    EXPECT_LT(layer.run("mh-dep").first_gemm, layer.run("mh-base").first_gemm);
}

}  // namespace
}  // namespace moehub::testing::hub_layer_test
