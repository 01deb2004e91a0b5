// Does work end soon after its asker wants that, and only then?

#include "base/parallel.hpp"

#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace moehub::ending_test {
namespace {

LayerInput large_layer() {
    const Model model = load_model("mixtral-8x7b");
    const Machine machine = with_gpus(load_machine("dgx-h800"), 8);
    return {machine, model, make_routing({}, model, 1 << 20), contiguous_placement(8, 8)};
}

template <class Work>
void expect_ends(const Work& work) {
    using Clock = std::chrono::steady_clock;
    std::stop_source source;
    std::atomic<bool> begun = false;
    std::jthread asker([&] {
        while (!begun) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        source.request_stop();
    });
    const std::stop_token token = source.get_token();
    const EndsOn ends(token);
    const auto begin = Clock::now();
    begun = true;
    EXPECT_THROW(work(), Ended);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(Ending, a_simulation_ends) {
    const LayerInput input = large_layer();
    LayerOptions options;
    options.grain = Grain::packet;
    expect_ends([&] { simulate_layer(input, "moe-hub", options); });
}

TEST(Ending, pieces_in_other_threads_end) {
    const LayerInput input = large_layer();
    LayerOptions options;
    options.grain = Grain::packet;
    expect_ends([&] {
        run_parallel(3, [&](std::size_t) { simulate_layer(input, "moe-hub", options); }, {3, {}});
    });
}

TEST(Ending, no_piece_begins_afterwards) {
    std::stop_source source;
    const std::stop_token token = source.get_token();
    const EndsOn ends(token);
    std::atomic<int> begun = 0;
    EXPECT_THROW(run_parallel(100,
                              [&](std::size_t) {
                                  ++begun;
                                  source.request_stop();
                              },
                              {1, {}}),
                 Ended);
    EXPECT_EQ(begun, 1);
}

TEST(Ending, nothing_ends_without_being_asked) {
    std::stop_source source;
    {
        const std::stop_token token = source.get_token();
        const EndsOn ends(token);
        EXPECT_NO_THROW(end_if_asked());
        source.request_stop();
        EXPECT_THROW(end_if_asked(), Ended);
    }
    EXPECT_NO_THROW(end_if_asked()) << "it was of those that are gone";
    EXPECT_FALSE(current_end().stop_requested());
}

}  // namespace
}  // namespace moehub::ending_test
