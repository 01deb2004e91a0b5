// Does a search believe of its layout what evaluate() says, swap after swap?
#include "place/search/search.hpp"
#include "place_ready.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace moehub::place_search_test {
namespace {

using ItemGpus = std::vector<std::vector<int>>;

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// A search over all layers of one profile, and the layout that its places mean.
struct Searched {
    Ready ready;
    std::vector<HeldExperts> held;
    PlaceOptions options;
    PlaceInput input;

    Searched(const Ready::Size& size, int nodes, std::uint64_t seed) : ready(size, seed) {
        options.objective = parse_objective(
            "load+2*gpus+3*nodes+4*transitions+5*node-transitions+6*pair+7*activated+8*moved");
        options.batch = 10;
        options.current =
            round_robin_layout({size.profile.layers, size.profile.experts}, size.gpus);
        input = {.profiles = ready.profiles, .gpus = size.gpus, .nodes = nodes};
        for (int layer = 0; layer < size.profile.layers; ++layer)
            held.push_back(held_by(*options.current, layer));
    }
    Search search() const {
        const Profile& first = ready.profiles.front();
        SearchSpec spec{*options.objective,
                        input.gpus,
                        input.nodes,
                        options.batch,
                        first.layers,
                        std::int64_t{first.layers} * first.experts,
                        {}};
        const LoadViews views(ready.profiles, 0, 1);
        std::vector<SearchLayer> layers;
        for (int layer = 0; layer < first.layers; ++layer) {
            Loads loads(views.of(layer), ready.items[at(layer)], input.gpus);
            loads.place(ready.item_gpus[at(layer)]);
            layers.push_back({&ready.items[at(layer)], &ready.tokens[at(layer)], &held[at(layer)],
                              std::move(loads)});
        }
        return {spec, std::move(layers)};
    }
    ExpertLayout layout(const ItemGpus& item_gpus) const {
        const Profile& first = ready.profiles.front();
        ExpertLayout layout = empty_layout({first.layers, first.experts}, input.gpus);
        for (std::size_t layer = 0; layer < item_gpus.size(); ++layer)
            for (std::size_t item = 0; item < item_gpus[layer].size(); ++item)
                layout.on[layer][at(item_gpus[layer][item])].push_back(static_cast<int>(item));
        return layout;
    }
};

TEST(Search, believes_what_evaluate_says) {
    struct Shape {
        int layers, gpus, nodes;
    };
    for (const Shape& shape : {Shape{3, 4, 2}, {1, 4, 1}, {2, 1, 1}, {2, 6, 3}, {2, 4, 4}}) {
        SCOPED_TRACE(std::to_string(shape.gpus) + " GPUs on " + std::to_string(shape.nodes));
        Searched one({{shape.layers, 12, 3, 100, 0}, 1, shape.gpus, 0}, shape.nodes, 5);
        Search search = one.search();
        search.set_evenness(2);
        for (int step = 0; step < 60; ++step) {
            ASSERT_NEAR(search.objective() / shape.layers,
                        mean_value(one.input, one.options, one.layout(search.item_gpus())), 1e-9);
            const Ready::Pair pair = one.ready.any_pair();
            const Search::Swap swap{pair.layer, pair.a, pair.b};
            if (search.gpu_of(swap.layer)[at(swap.a)] == search.gpu_of(swap.layer)[at(swap.b)])
                continue;
            const double change = search.change(swap);
            EXPECT_LE(search.least_change(swap), change + 1e-9);
            const double before = search.energy();
            search.apply(swap);
            ASSERT_NEAR(search.energy(), before + change, 1e-7) << "step " << step;
        }
    }
}

TEST(Search, aligned_keeps_groups_and_loses_no_transition) {
    for (const int nodes : {1, 2}) {
        Searched one({{4, 12, 3, 100, 0}, 1, 4, 0}, nodes, 7);
        one.options.objective = parse_objective("transitions");
        Search search = one.search();
        const ItemGpus before = search.item_gpus();
        const double value = search.objective();
        search.align();
        EXPECT_LT(search.objective(), value);
        for (std::size_t layer = 0; layer < before.size(); ++layer) {
            std::map<int, std::set<int>> label;
            for (std::size_t item = 0; item < before[layer].size(); ++item)
                label[before[layer][item]].insert(search.item_gpus()[layer][item]);
            std::map<int, std::set<int>> node;
            for (const auto& [old, now] : label) {
                ASSERT_EQ(now.size(), 1U);
                node[old / (4 / nodes)].insert(*now.begin() / (4 / nodes));
            }
            for (const auto& [old, now] : node) EXPECT_EQ(now.size(), 1U);
        }
    }
}

}  // namespace
}  // namespace moehub::place_search_test
