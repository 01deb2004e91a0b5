// Does every system run with copies of experts and with ranks that hold different numbers of them,
// or say in one line why not? As DeepSeek serves: 256 experts and 32 copies over 72 GPUs.
#include "error_of.hpp"
#include "small_layer.hpp"

#include <set>

#include <gtest/gtest.h>

namespace moehub::testing::replicas_test {
namespace {

/// Whose libraries have as many experts on every GPU.
const std::set<std::string> kEven = {"fastermoe", "tutel"};

struct Slots {
    std::string what;
    Placement placement;
    bool even;
};

/// Placements of 9 experts on so many ranks.
std::vector<Slots> all_slots(int ranks) {
    const Placement one_more = contiguous_placement(9, ranks);
    Placement copies = one_more;  // the first expert everywhere, the last on two
    copies.hosts.front().clear();
    for (int rank = 0; rank < ranks; ++rank) copies.hosts.front().push_back(rank);
    copies.hosts.back() = {0, ranks - 1};
    Placement empty = one_more;  // nothing on the last
    for (auto& hosts : empty.hosts)
        if (hosts.front() == ranks - 1) hosts = {0};
    Placement even = one_more;  // copies until all have as many
    const auto slots = experts_by_rank(one_more);
    for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (slots[at].size() == slots.front().size()) continue;
        std::vector<int>& hosts = even.hosts[at == 0 ? 1 : 0];
        hosts.push_back(rank);
    }
    return {{"one more", one_more, false},
            {"copies", copies, false},
            {"none on one", empty, false},
            {"copies, even", even, true}};
}

class Replicas : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Systems, Replicas, ::testing::ValuesIn(system_names()));

TEST_P(Replicas, are_computed_once_wherever_they_lie) {
    for (const Machine& machine : {small_gpus(4), small_cluster(2)}) {
        Case layer;
        layer.machine = machine;
        layer.machine.gpu = load_gpu("h800-sxm");
        layer.model = small_model(9, 3);
        layer.tokens = 60;
        layer.options.verify = true;
        const Routing routing = make_routing(parse_routing("zipf:1"), layer.model, layer.tokens);
        const bool runs = layer.allowed(GetParam(), contiguous_placement(9, machine.gpus())) ||
                          kEven.contains(GetParam());
        for (const Slots& slots : all_slots(machine.gpus())) {
            SCOPED_TRACE(slots.what);
            const bool wanted = runs && (slots.even || !kEven.contains(GetParam()));
            const bool allowed = layer.allowed(GetParam(), slots.placement);
            if (machine.nodes == 1) {
                EXPECT_EQ(allowed, wanted);
            }
            if (!allowed) continue;
            const LayerResult result = layer.run(GetParam(), routing, slots.placement);
            EXPECT_LT(result.largest_error, 1e-11);
        }
    }
}

/// 256 experts are three or four on each of 72 GPUs; 32 copies make it four, whoever is hot.
TEST(UnevenSlots, are_evened_out_by_copies) {
    for (const long long hot : {1, 7, 100}) {
        std::vector<long long> rows(256, 10);
        for (std::size_t expert = 0; expert < rows.size(); expert += 5) rows[expert] *= hot;
        const Placement placement = with_replicas(contiguous_placement(256, 72), rows, 32);
        for (const auto& experts : experts_by_rank(placement)) EXPECT_EQ(experts.size(), 4u);
    }
}

TEST(UnevenSlots, the_reason_is_said_with_the_numbers_found) {
    Case layer;
    layer.model = small_model(9, 2);
    EXPECT_EQ(error_of([&] { layer.run("tutel"); }),
              "tutel cannot run this: it needs as many experts on every GPU, found 2 to 3 on each "
              "of 4 (9 experts, 0 copies); so many more copies make it even: 3");
}

}  // namespace
}  // namespace moehub::testing::replicas_test
