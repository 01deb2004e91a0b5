// Is a machine that passes its check also one that can be simulated? Random settings within the
// limits, on a node, a cluster and a mesh: refused in one line, or every row arrives once. A seed
// that fails is in the test's name.
#include "base/portable_math.hpp"
#include "base/rng.hpp"
#include "small_layer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace moehub::testing::random_settings_test {
namespace {

/// Values of one kind of key; drawn from those named, or from all between, small ones as often as
/// large ones.
struct Values {
    std::vector<std::int64_t> named;
    std::int64_t least = 0;
    std::int64_t most = 0;
    std::string unit;

    std::string draw(Rng& rng) const {
        if (!named.empty() && rng.below(2) == 0)
            return fmt::format("{}{}", named[rng.below(named.size())], unit);
        const double low = portable_log(static_cast<double>(least) + 1);
        const double high = portable_log(static_cast<double>(most) + 1);
        const double value = portable_exp(low + rng.uniform() * (high - low)) - 1;
        return fmt::format("{}{}",
                           std::clamp(std::llround(value), std::llround(double(least)),
                                      std::llround(double(most))),
                           unit);
    }
};

struct Key {
    std::string name;
    Values values;
};

std::vector<Key> keys() {
    const std::int64_t second = kSecond;
    std::vector<Key> all = {
        {"switches", {{1, 3}, 1, 255, ""}},
        {"spines", {{0, 2}, 0, 100, ""}},
        {"leaf_nodes", {{0, 1}, 0, 100, ""}},
        {"leaf_uplinks", {{0, 1}, 0, 100, ""}},
        {"spine_latency", {{0, 1000}, 0, second, " ps"}},
        {"hub.staging_packets", {{1, 8}, 1, 1 << 20, ""}},
        {"moe_hub.store_bytes", {{16, 32, 64, 128}, 16, 4096, " B"}},
        {"moe_hub.rpm_entries", {{1}, 1, 1 << 20, ""}},
        {"moe_hub.rpm_timer", {{0}, 0, second, " ps"}},
        {"moe_hub.rat_entries", {{1}, 1, 1 << 20, ""}},
        {"moe_hub.rat_banks", {{1}, 1, 1024, ""}},
        {"moe_hub.rat_lookup", {{0}, 0, second, " ps"}},
        {"moe_hub.ready_latency", {{0}, 0, second, " ps"}},
        {"collective.launch", {{0}, 0, second, " ps"}},
        {"collective.outstanding_loads", {{1}, 1, 1 << 30, ""}},
        {"collective.switch_channels", {{1}, 1, 4096, ""}},
        {"collective.channel_copy", {{}, 2'000'000, second, " B/s"}},
        {"gpu.sms", {{2, 3}, 2, 4096, ""}},
        {"gpu.hbm_bandwidth", {{}, 1'000'000, second, " B/s"}},
    };
    for (const std::string key : {"store_latency", "write_latency", "read_latency"})
        all.push_back({"hub." + key, {{1000}, 1000, second, " ps"}});
    for (const std::string table : {"link.", "nic."}) {
        all.push_back({table + "bandwidth", {{}, 1'000'000, 100 * second, " B/s"}});
        all.push_back({table + "latency", {{1000}, 1000, second, " ps"}});
        all.push_back({table + "flit", {{1, 16, 32, 64, 100, 4096}, 1, 1 << 20, " B"}});
        all.push_back({table + "payload", {{16, 64, 128, 256, 4160}, 16, 1 << 20, " B"}});
        all.push_back({table + "header_flits", {{0, 2}, 0, 1024, ""}});
        all.push_back({table + "ack_flits", {{0, 2}, 0, 1024, ""}});
        all.push_back({table + "multicast_flits", {{0, 2}, 0, 1024, ""}});
        all.push_back({table + "credit_flits", {{0, 16}, 0, 16, ""}});
        all.push_back({table + "request_channels", {{1, 31}, 1, 31, ""}});
        all.push_back({table + "buffer_flits", {{10, 11}, 1, 1 << 20, ""}});
    }
    return all;
}

Overrides random_settings(Rng& rng) {
    std::vector<Key> all = keys();
    rng.shuffle(all);
    Overrides settings;
    for (std::size_t i = 0; i < 1 + rng.below(5); ++i)
        settings.push_back(all[i].name + "=" + all[i].values.draw(rng));
    return settings;
}

void run_or_refuse(Rng& rng) {
    const std::pair<const char*, int> machines[] = {
        {"dgx-h800", 3}, {"dgx-h100", 1}, {"h100-cluster", 16}, {"ascend-910b-cluster", 4}};
    const auto& [name, gpus] = machines[rng.below(std::size(machines))];
    const Overrides settings = random_settings(rng);
    SCOPED_TRACE(fmt::format("{}, {} GPUs: --set {}", name, gpus, fmt::join(settings, " --set ")));
    Case layer;
    try {
        layer.machine = with_gpus(load_machine(name, settings), gpus);
    } catch (const InputError& error) {
        const std::string why = error.what();
        EXPECT_NE(why.find("allowed"), std::string::npos) << why;
        EXPECT_EQ(why.find('\n'), std::string::npos) << why;
        return;
    }
    layer.model = small_model(48, 2, 320);
    layer.tokens = 16;
    layer.options.verify = true;
    layer.options.grain = rng.below(2) == 0 ? Grain::packet : Grain::row;
    for (const std::string system : {"moe-hub", "mh-base", "megatron-te", "deepep-ll", "nvls"}) {
        if (!layer.allowed(system)) continue;
        try {
            EXPECT_GT(layer.run(system).time, 0) << system;
        } catch (const std::exception& error) {
            ADD_FAILURE() << system << ": " << error.what();
        }
    }
}

class RandomSettings : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSettings,
                         ::testing::Range(std::uint64_t{0}, std::uint64_t{20}));

TEST_P(RandomSettings, are_refused_in_one_line_or_simulated) {
    Rng rng(GetParam());
    for (int i = 0; i < 20; ++i) run_or_refuse(rng);
}

}  // namespace
}  // namespace moehub::testing::random_settings_test
