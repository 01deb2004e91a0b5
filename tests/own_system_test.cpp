// Does a system from outside run like the library's own, and does every mistake in it end in one
// clear error?
#include "small_layer.hpp"

#include <moehub/compare.hpp>
#include <moehub/program.hpp>

#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace moehub::testing::own_system_test {
namespace {

using Change = std::function<void(GpuProgram&, Rows&)>;

struct Wrong {  // what a test changes in an otherwise right program
    Change before_sending, before_experts, before_summing;
};

Process push_rows(GpuProgram& gpu, int channel, std::vector<Rows> rows) {
    for (int to = 0; to < gpu.gpus(); ++to) {
        Rows& some = rows[static_cast<std::size_t>(to)];
        const Bytes bytes = static_cast<Bytes>(some.size()) * gpu.row_bytes();
        gpu.send(to, channel, std::move(some), bytes);
    }
    co_await gpu.received(channel, gpu.gpus());
}

Process push_layer(GpuProgram& gpu, Wrong wrong) {
    co_await gpu.route();
    std::vector<Rows> sent = gpu.rows_by_gpu();
    if (wrong.before_sending) wrong.before_sending(gpu, sent[1]);
    co_await push_rows(gpu, 0, std::move(sent));
    Rows rows = gpu.take(0);
    if (wrong.before_experts) wrong.before_experts(gpu, rows);
    co_await gpu.run_experts(rows);
    std::vector<Rows> results(static_cast<std::size_t>(gpu.gpus()));
    for (const CarriedRow& row : rows)
        results[static_cast<std::size_t>(gpu.home_of(row.token))].push_back(row);
    co_await push_rows(gpu, 1, std::move(results));
    Rows own = gpu.take(1);
    if (wrong.before_summing) wrong.before_summing(gpu, own);
    co_await gpu.add_up(std::move(own));
}

LayerInput small_input() {
    const Case layer;
    return {layer.machine, layer.model, make_routing({}, layer.model, layer.tokens),
            contiguous_placement(layer.model.experts, layer.machine.gpus())};
}

LayerResult run(const Wrong& wrong, LayerOptions options = {}) {
    options.verify = true;
    return simulate_layer(
        small_input(),
        own_system(
            "push", [wrong](GpuProgram& gpu) { return push_layer(gpu, wrong); }, 2),
        options);
}

TEST(OwnSystem, runs_in_both_grains_and_stands_in_a_comparison) {
    LayerOptions packet;
    packet.grain = Grain::packet;
    const LayerResult row = run({});
    EXPECT_EQ(row.bytes_up, run({}, packet).bytes_up);
    EXPECT_GT(row.breakdown.communication, 0);
    std::vector<SystemSpec> systems = load_systems({"ideal", "moe-hub"});
    systems.push_back(own_system(
        "push", [](GpuProgram& gpu) { return push_layer(gpu, {}); }, 2));
    const Comparison comparison = compare_systems(small_input(), systems);
    EXPECT_EQ(comparison.rows.back().result.system, "push");
    EXPECT_GT(comparison.rows.back().result.time, comparison.rows.front().result.time);
}

/// Experts in one call or row by row: the gradients of their weights follow once.
Process compute_in_parts(GpuProgram& gpu, std::size_t parts) {
    co_await gpu.route();
    co_await push_rows(gpu, 0, gpu.rows_by_gpu());
    Rows rows = gpu.take(0);
    std::vector<Rows> results(static_cast<std::size_t>(gpu.gpus()));
    for (std::size_t part = 0; part < parts; ++part) {
        Rows some;
        for (std::size_t i = part; i < rows.size(); i += parts) some.push_back(rows[i]);
        co_await gpu.run_experts(some);
        for (const CarriedRow& row : some)
            results[static_cast<std::size_t>(gpu.home_of(row.token))].push_back(row);
    }
    co_await push_rows(gpu, 1, std::move(results));
    co_await gpu.add_up(gpu.take(1));
}

TEST(OwnSystem, has_one_set_of_weight_gradients_however_its_experts_run) {
    const auto gradients = [](Pass pass, std::size_t parts) {  // SM time of theirs, ps
        const auto program = [parts](GpuProgram& gpu) { return compute_in_parts(gpu, parts); };
        LayerOptions options;
        options.pass = pass;
        options.timeline.record = true;
        const LayerResult result =
            simulate_layer(small_input(), own_system("parts", program, 2), options);
        double sum = 0;
        for (const TimeSeries& series : result.timeline.sms)
            if (series.name == "gradients")
                sum += std::accumulate(series.values.begin(), series.values.end(), 0.0) *
                       static_cast<double>(series.bin);
        return sum;
    };
    EXPECT_EQ(gradients(Pass::forward, 1), 0);
    const double once = gradients(Pass::backward, 1);
    EXPECT_GT(once, 0);
    for (const std::size_t parts : {2U, 4U})
        EXPECT_DOUBLE_EQ(gradients(Pass::backward, parts), once);
}

TEST(OwnSystem, that_loses_doubles_or_changes_rows_ends_with_an_error) {
    const Change lose = [](GpuProgram&, Rows& rows) { rows.pop_back(); };
    const Change twice = [](GpuProgram&, Rows& rows) { rows.push_back(rows.back()); };
    for (const Change& change : {lose, twice}) {
        EXPECT_THROW(run({change, {}, {}}), std::logic_error);
        EXPECT_THROW(run({{}, change, {}}), std::logic_error);
        EXPECT_THROW(run({{}, {}, change}), std::logic_error);
    }
    static const std::vector<double> junk(4096, std::numeric_limits<double>::quiet_NaN());
    EXPECT_THROW(run({{}, {}, [](GpuProgram&, Rows& rows) { rows.front().numbers = junk.data(); }}),
                 std::logic_error);
}

TEST(OwnSystem, that_computes_rows_of_others_or_of_nobody_is_told_so) {
    for (const Change& change : std::vector<Change>{
             [](GpuProgram&, Rows&rows) { rows.front().expert = 60000; },
             [](GpuProgram&, Rows&rows) { rows.front().token = 4'000'000'000; },
             [](GpuProgram&, Rows&rows) { rows.front().choice = 77; },
             [](GpuProgram&, Rows&rows) { rows.front().numbers = nullptr; },
             [](GpuProgram&gpu, Rows&rows) { rows = gpu.rows_by_gpu()[gpu.gpu() == 0 ? 1 : 0]; }})
        EXPECT_THROW(run({{}, change, {}}), InputError);
    EXPECT_THROW(run({{}, {}, [](GpuProgram& gpu, Rows&) { gpu.home_of(4'000'000'000); }}),
                 InputError);
}

TEST(OwnSystem, that_calls_what_makes_no_sense_is_told_so) {
    for (const Change& change :
         std::vector<Change>{[](GpuProgram&gpu, Rows&) { gpu.send(99, 0, {}, 1); },
                             [](GpuProgram&gpu, Rows&) { gpu.send(-1, 0, {}, 1); },
                             [](GpuProgram&gpu, Rows&) { gpu.send(0, 7, {}, 1); },
                             [](GpuProgram&gpu, Rows&rows) { gpu.send(0, 1, rows, 0); },
                             [](GpuProgram&gpu, Rows&) { gpu.send(0, 1, {}, -5); },
                             [](GpuProgram&gpu, Rows&) { gpu.take(2); }})
        EXPECT_THROW(run({change, {}, {}}), InputError);
    EXPECT_THROW(own_system("nothing", nullptr), InputError);
    EXPECT_THROW(own_system(
                     "none", [](GpuProgram& gpu) { return push_layer(gpu, {}); }, 0),
                 InputError);
}

Process wait_for_ever(GpuProgram& gpu) {
    co_await gpu.received(0, 1000);
}

struct Leaving {  // touches its GPU when an error ends everything
    GpuProgram& gpu;
    ~Leaving() { EXPECT_GE(gpu.now(), 0); }
};

Process fail_on_gpu_1(GpuProgram& gpu) {
    const Leaving leaving{gpu};
    if (gpu.gpu() == 1) throw std::domain_error("mine");
    co_await gpu.received(0, 1000);
}

Process return_at_once(GpuProgram&) {
    co_return;
}

TEST(OwnSystem, that_waits_throws_or_does_nothing_ends_with_its_error) {
    const LayerInput input = small_input();
    EXPECT_THROW(simulate_layer(input, own_system("waits", wait_for_ever), {}), std::runtime_error);
    EXPECT_THROW(simulate_layer(input, own_system("throws", fail_on_gpu_1), {}), std::domain_error);
    EXPECT_THROW(simulate_layer(input, own_system("nothing", return_at_once), {}),
                 std::logic_error);
}

/// Hand-made values are checked like those of files.
TEST(HandMadeInput, that_cannot_be_is_refused) {
    const auto refused = [](const std::function<void(LayerInput&, SystemSpec&, LayerOptions&)>& f) {
        LayerInput input = small_input();
        SystemSpec system = load_system("tutel");
        LayerOptions options;
        f(input, system, options);
        EXPECT_THROW(simulate_layer(input, system, options), InputError);
    };
    const auto with = [](auto& array, std::size_t i, auto value) {
        auto values = array.copy();
        values[i] = value;
        array = std::move(values);
    };
    refused([&](auto& in, auto&, auto&) { with(in.routing.chosen, 0, std::uint16_t{99}); });
    refused([&](auto& in, auto&, auto&) { with(in.routing.chosen, 0, in.routing.chosen[1]); });
    refused([](auto& in, auto&, auto&) {
        in.routing.chosen = in.routing.chosen.part(0, in.routing.chosen.size() - 1);
    });
    refused([](auto& in, auto&, auto&) { in.routing.weights = {}; });
    refused([&](auto& in, auto&, auto&) { with(in.routing.weights, 3, -1.0f); });
    refused([](auto& in, auto&, auto&) { in.routing.tokens = 63; });
    refused([](auto& in, auto&, auto&) { in.routing.layers = 0; });
    refused([](auto& in, auto&, auto&) { in.model.hidden = 1 << 30; });
    refused([](auto& in, auto&, auto&) { in.model.hidden = 0; });
    refused([](auto& in, auto&, auto&) { in.model.expert_ffn = 0; });
    refused([](auto&, auto& system, auto&) { system.chunks = 0; });
    refused([](auto&, auto& system, auto&) { system.dispatch_start = -kUs; });
    refused([](auto&, auto&, auto& options) { options.region_rows = -5; });
    refused([](auto&, auto&, auto& options) { options.page_rows = -1; });
}

}  // namespace
}  // namespace moehub::testing::own_system_test
