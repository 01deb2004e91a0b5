// Does METIS find experts that belong together, with equal slots and within the load cap?
#include "base/rng.hpp"
#include "error_of.hpp"
#include "model/routing_trace.hpp"
#include "place/methods.hpp"
#include "place/partition.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace moehub::metis_test {
namespace {

void count(Profile& profile) {
    profile.counts.assign(static_cast<std::size_t>(profile.layers * profile.experts), 0);
    for (int layer = 0; layer < profile.layers; ++layer)
        for (std::int64_t token = 0; token < profile.tokens; ++token)
            for (const auto expert : profile.chosen_by(layer, token))
                profile.counts[static_cast<std::size_t>(layer * profile.experts + expert)] += 1;
    profile.layer_numbers.resize(static_cast<std::size_t>(profile.layers));
    std::iota(profile.layer_numbers.begin(), profile.layer_numbers.end(), 0);
    profile.model_layers = profile.layers;
}

/// Families of experts, each layer's in an order of its own; most tokens choose within a family,
/// the same in every layer.
struct Families {
    int layers = 4, experts = 16, families = 4, top_k = 3;
    double stray = 0.1;
    std::uint64_t seed = 5;
};

Profile profile_of(const Families& what, std::vector<std::vector<int>>& order) {
    Profile profile;
    profile.name = "families";
    profile.layers = what.layers;
    profile.experts = what.experts;
    profile.top_k = what.top_k;
    profile.tokens = 400;
    Rng rng(what.seed);
    const int size = what.experts / what.families;
    order.assign(static_cast<std::size_t>(what.layers), {});
    for (auto& experts : order) {
        experts.resize(static_cast<std::size_t>(what.experts));
        std::iota(experts.begin(), experts.end(), 0);
        rng.shuffle(experts);
    }
    for (const auto& experts : order)
        for (std::int64_t token = 0; token < profile.tokens; ++token) {
            std::set<int> chosen;
            while (static_cast<int>(chosen.size()) < what.top_k) {
                const int family = static_cast<int>(token) % what.families;
                const int place =
                    rng.uniform() < what.stray
                        ? static_cast<int>(rng.below(experts.size()))
                        : family * size +
                              static_cast<int>(rng.below(static_cast<std::uint64_t>(size)));
                chosen.insert(experts[static_cast<std::size_t>(place)]);
            }
            for (const int expert : chosen)
                profile.chosen.push_back(static_cast<std::uint16_t>(expert));
        }
    count(profile);
    return profile;
}

PlaceInput input_of(const Profile& profile, int gpus) {
    PlaceInput input;
    input.profiles = {profile};
    input.gpus = gpus;
    return input;
}

TEST(Metis, finds_families_and_lines_them_up_along_the_layers) {
    std::vector<std::vector<int>> order;
    const Profile profile = profile_of({}, order);
    const Solution solution = solve_metis(input_of(profile, 4), {});
    check(solution.layout, "metis");
    std::vector<int> gpu_of_family(4, -1);
    for (std::size_t layer = 0; layer < 4; ++layer)
        for (std::size_t family = 0; family < 4; ++family) {
            std::set<int> experts(
                order[layer].begin() + static_cast<std::ptrdiff_t>(family * 4),
                order[layer].begin() + static_cast<std::ptrdiff_t>(family * 4 + 4));
            int gpu = -1;
            for (int g = 0; g < 4; ++g) {
                const auto& own = solution.layout.on[layer][static_cast<std::size_t>(g)];
                if (std::set<int>(own.begin(), own.end()) == experts) gpu = g;
            }
            ASSERT_GE(gpu, 0) << "layer " << layer << ", family " << family;
            if (layer == 0) gpu_of_family[family] = gpu;
            EXPECT_EQ(gpu, gpu_of_family[family]) << "layer " << layer;
        }
}

TEST(Metis, gives_equal_slots_at_every_size) {
    const Families sizes[] = {
        {2, 8, 4, 2, 0.9, 1},   {2, 8, 2, 2, 0.9, 2},  {2, 4, 4, 2, 1, 3},
        {1, 64, 8, 6, 0.9, 4},  {2, 24, 4, 1, 0.9, 5}, {1, 128, 32, 8, 0.5, 6},
        {1, 60, 10, 4, 0.3, 7}, {2, 16, 1, 4, 0, 8},   {2, 2, 2, 1, 0, 9}};
    for (const Families& size : sizes) {
        std::vector<std::vector<int>> order;
        const Profile profile = profile_of(size, order);
        for (int gpus = 1; gpus <= size.experts; ++gpus) {
            if (size.experts % gpus != 0) continue;
            const ExpertLayout layout = solve_metis(input_of(profile, gpus), {}).layout;
            check(layout, "metis");
            EXPECT_EQ(slots_per_gpu(layout), size.experts / gpus);
        }
    }
}

TEST(Metis, gives_the_same_twice_and_refuses_what_it_cannot_do) {
    std::vector<std::vector<int>> order;
    Profile profile = profile_of({}, order);
    PlaceInput input = input_of(profile, 4);
    EXPECT_EQ(solve_metis(input, {}).layout, solve_metis(input, {}).layout);
    const auto error_of = [](const PlaceInput& bad) {
        return moehub::error_of([&] { solve_metis(bad, {}); });
    };
    input.redundant = 4;
    EXPECT_EQ(error_of(input), "metis: found --replicas, allowed: none");
    EXPECT_EQ(error_of(input_of(profile, 3)),
              "metis: found 16 experts, allowed: a multiple of the 3 GPUs");
    profile.tokens = 0;
    EXPECT_EQ(error_of(input_of(profile, 4)),
              "metis: families: found counts alone, allowed: profiles with every token's experts");
}

TEST(Metis, takes_several_profiles_and_stops_when_told) {
    std::vector<std::vector<int>> order;
    PlaceInput input = input_of(profile_of({}, order), 4);
    input.profiles.push_back(profile_of({.seed = 6}, order));
    input.profiles.back().weight = 3;
    check(solve_metis(input, {}).layout, "metis");
    std::stop_source source;
    source.request_stop();
    PlaceOptions options;
    options.stop = source.get_token();
    const Solution solution = solve_metis(input, options);
    EXPECT_TRUE(solution.cut_short);
    check(solution.layout, "metis");
}

Matrix random_ties(int experts, Rng& rng) {
    Matrix ties(experts, experts);
    for (int a = 0; a < experts; ++a)
        for (int b = 0; b < a; ++b) ties(a, b) = ties(b, a) = static_cast<double>(rng.below(100));
    return ties;
}

TEST(Partition, is_made_equal_by_the_least_loss) {
    Matrix ties(4, 4);
    const auto tie = [&ties](int a, int b, double weight) { ties(a, b) = ties(b, a) = weight; };
    tie(0, 1, 9);
    tie(1, 2, 5);
    tie(2, 0, 6);
    tie(2, 3, 1);
    Partition partition{2, {0, 0, 0, 1}};
    EXPECT_EQ(partition.cut(ties), 1);
    make_equal(partition, ties);
    EXPECT_EQ(partition.part_of, (std::vector{0, 0, 1, 1}));
    EXPECT_EQ(partition.cut(ties), 11);
}

TEST(Partition, is_made_equal_and_kept_below_the_cap_from_anywhere) {
    Rng rng(2);
    for (int round = 0; round < 30; ++round) {
        const Matrix ties = random_ties(24, rng);
        Partition partition{4, std::vector<int>(24, 0)};
        for (int& part : partition.part_of) part = static_cast<int>(rng.below(4));
        std::vector<double> load(24);
        for (double& tokens : load) tokens = static_cast<double>(50 + rng.below(100));
        make_equal(partition, ties);
        EXPECT_EQ(partition.sizes(), (std::vector{6, 6, 6, 6}));
        ASSERT_TRUE(keep_load_below(partition, ties, load, 1.03));
        EXPECT_EQ(partition.sizes(), (std::vector{6, 6, 6, 6}));
        const auto loads = partition.loads(load);
        const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / 4;
        EXPECT_LE(*std::max_element(loads.begin(), loads.end()), 1.03 * mean);
    }
}

TEST(Partition, says_when_the_cap_cannot_be_kept) {
    Partition partition{2, {0, 0, 1, 1}};
    const std::vector<double> load = {100, 1, 1, 1};
    EXPECT_FALSE(keep_load_below(partition, Matrix(4, 4), load, 1.05));
    EXPECT_TRUE(keep_load_below(partition, Matrix(4, 4), load, 2));
}

double gpus_per_token(const Profile& profile, const ExpertLayout& layout) {
    double sum = 0;
    for (int layer = 0; layer < profile.layers; ++layer) {
        const Placement placement = placement_of(layout, layer);
        for (std::int64_t token = 0; token < profile.tokens; ++token) {
            std::set<int> gpus;
            for (const auto expert : profile.chosen_by(layer, token))
                gpus.insert(placement.hosts[expert].front());
            sum += static_cast<double>(gpus.size());
        }
    }
    return sum / static_cast<double>(profile.layers) / static_cast<double>(profile.tokens);
}

TEST(Metis, sends_tokens_of_recorded_routing_to_fewer_gpus) {
    const char* folder = std::getenv("MOEHUB_ROUTING_DIR");
    const std::string path =
        (folder != nullptr ? std::string(folder) : MOEHUB_SOURCE_DIR "/../shared/data/routing") +
        "/dsv2lite-law.npy";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "no recorded routing: set MOEHUB_ROUTING_DIR to the folder of "
                        "dsv2lite-law.npy";
    Routing routing = read_routing(path, 64);
    Profile profile;
    profile.layers = 4;  // the first layers are enough, and quick
    profile.experts = 64;
    profile.top_k = routing.top_k;
    profile.tokens = routing.tokens;
    profile.chosen = routing.chosen.copy();
    count(profile);
    const ExpertLayout layout = solve_metis(input_of(profile, 8), {}).layout;
    const double contiguous = gpus_per_token(profile, contiguous_layout({4, 64}, 8));
    EXPECT_LT(gpus_per_token(profile, layout), 0.85 * contiguous);
    for (int layer = 0; layer < 4; ++layer) {
        Partition partition{8, std::vector<int>(64)};
        const Placement placement = placement_of(layout, layer);
        for (std::size_t expert = 0; expert < 64; ++expert)
            partition.part_of[expert] = placement.hosts[expert].front();
        const auto loads = partition.loads(profile.counts_of(layer));
        const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / 8;
        EXPECT_LE(*std::max_element(loads.begin(), loads.end()), 1.06 * mean * (1 + 1e-9));
    }
}

}  // namespace
}  // namespace moehub::metis_test
