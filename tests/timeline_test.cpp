// Does a recorded timeline say what happened, and does recording change nothing?
#include "sim/fabric.hpp"
#include "sim/gpu/card.hpp"
#include "sim/gpu/gemm.hpp"
#include "small_tp.hpp"

#include <moehub/program.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace moehub::testing::timeline_test {
namespace {

Case recorded(Grain grain, bool record = true) {
    Case one;
    one.options.grain = grain;
    one.options.timeline = {record, 16};
    return one;
}

/// SMs · ps.
double sm_time(const TimeSeries& sms) {
    return std::accumulate(sms.values.begin(), sms.values.end(), 0.0) *
           static_cast<double>(sms.bin);
}

double total(const std::vector<TimeSeries>& units, const std::string& name) {
    double sum = 0;
    for (const TimeSeries& unit : units)
        if (unit.name == name) sum += std::accumulate(unit.values.begin(), unit.values.end(), 0.0);
    return sum;
}

void expect_same(const LayerResult& a, const LayerResult& b) {
    EXPECT_EQ(a.time, b.time) << a.system;
    EXPECT_EQ(a.first_gemm, b.first_gemm);
    EXPECT_EQ(a.dispatch, b.dispatch);
    EXPECT_EQ(a.combine, b.combine);
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.packets, b.packets);
    EXPECT_EQ(a.payload, b.payload);
    EXPECT_EQ(a.bytes_up, b.bytes_up);
    EXPECT_EQ(a.sm_busy, b.sm_busy);
    EXPECT_EQ(a.breakdown.compute, b.breakdown.compute);
    ASSERT_EQ(a.links.size(), b.links.size());
    for (std::size_t i = 0; i < a.links.size(); ++i) EXPECT_EQ(a.links[i].bins, b.links[i].bins);
}

/// Kernels that hold their SMs; all others run blocks.
bool holds(const std::string& kernel) {
    static const std::set<std::string> names = {"dispatch", "combine", "relay", "exchange"};
    return names.contains(kernel);
}

void expect_sound(const LayerResult& result, const Machine& machine) {
    const Timeline& timeline = result.timeline;
    double ran = 0;
    for (const TimeSeries& sms : timeline.sms) {
        if (!holds(sms.name)) ran += sm_time(sms);
        for (const double value : sms.values) {
            EXPECT_GE(value, 0) << result.system << " " << sms.where << " " << sms.name;
            EXPECT_LE(value, machine.gpu.sms * (1 + 1e-12)) << result.system << " " << sms.name;
        }
    }
    const double busy = result.sm_busy * static_cast<double>(result.time) * machine.gpu.sms *
                        static_cast<double>(machine.gpus());
    EXPECT_NEAR(ran, busy, 1e-9 * busy + 1) << result.system;
    EXPECT_FALSE(timeline.spans.empty()) << result.system;
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
        const KernelSpan& span = timeline.spans[i];
        EXPECT_LT(span.begin, span.end);
        EXPECT_LE(span.end, result.time) << result.system << " " << span.kernel;
        EXPECT_NE(timeline.kernels[static_cast<std::size_t>(span.kernel)], "other")
            << result.system;
        for (std::size_t j = 0; j < i; ++j) {
            const KernelSpan& other = timeline.spans[j];
            if (other.gpu != span.gpu || other.kernel != span.kernel) continue;
            EXPECT_GT(span.begin, other.end) << result.system;
        }
    }
    EXPECT_EQ(std::accumulate(timeline.sent.begin(), timeline.sent.end(), Bytes{0}), result.payload)
        << result.system;
}

bool has_step(const RowPath& row, const std::string& what) {
    return std::any_of(row.steps.begin(), row.steps.end(),
                       [&](const RowStep& step) { return step.what == what; });
}

TEST(Timeline, recording_changes_nothing_under_any_system) {
    for (const std::string& system : system_names()) {
        for (const Grain grain : kGrains) {
            const Case one = recorded(grain);
            if (!one.allowed(system)) continue;
            const LayerResult with = one.run(system);
            const LayerResult without = recorded(grain, false).run(system);
            expect_same(with, without);
            EXPECT_TRUE(without.timeline.spans.empty());
            expect_sound(with, one.machine);
        }
    }
}

TEST(Timeline, records_between_nodes_too) {
    for (const std::string& system : system_names()) {
        Case one = recorded(Grain::row);
        one.machine = small_cluster(2);
        one.machine.gpu = load_gpu("h800-sxm");
        one.model = small_model(16);
        if (!one.allowed(system)) continue;
        const LayerResult with = one.run(system);
        one.options.timeline.record = false;
        expect_same(with, one.run(system));
        expect_sound(with, one.machine);
        if (system.starts_with("ideal")) continue;
        for (const RowPath& row : with.timeline.rows) {
            EXPECT_TRUE(has_step(row, "computed")) << system << " token " << row.token;
            EXPECT_TRUE(has_step(row, "returned")) << system << " token " << row.token;
        }
    }
}

TEST(Timeline, recording_changes_no_sub_layer) {
    for (const SystemInfo& system : all_tp_systems()) {
        for (const Grain grain : kGrains) {
            TpCase one;
            one.tokens = 256;
            one.options.grain = grain;
            const LayerResult without = one.run(system.name);
            one.options.timeline.record = true;
            const LayerResult with = one.run(system.name);
            expect_same(with, without);
            expect_sound(with, one.machine);
            for (const RowPath& row : with.timeline.rows)
                EXPECT_TRUE(has_step(row, "normalised") || has_step(row, "summed")) << system.name;
        }
    }
}

TEST(Timeline, follows_rows_there_and_back_under_any_system) {
    for (const std::string& system : system_names()) {
        const Case one = recorded(Grain::row);
        if (!one.allowed(system) || system.starts_with("ideal")) continue;  // nothing moves there
        const LayerResult result = one.run(system);
        const Timeline& timeline = result.timeline;
        EXPECT_LE(timeline.rows.size(), 16u);
        EXPECT_GE(timeline.rows.size(), 8u);
        EXPECT_EQ(timeline.every % 2, 1) << "shares a divisor with top-2";
        for (const RowPath& row : timeline.rows) {
            ASSERT_FALSE(row.steps.empty()) << system;
            EXPECT_TRUE(has_step(row, "computed")) << system << " token " << row.token;
            EXPECT_TRUE(has_step(row, "returned")) << system << " token " << row.token;
            EXPECT_LE(row.steps.back().at, result.time) << system;
            EXPECT_TRUE(
                std::is_sorted(row.steps.begin(), row.steps.end(),
                               [](const RowStep& a, const RowStep& b) { return a.at < b.at; }));
            if (row.from == row.to) continue;
            EXPECT_TRUE(has_step(row, "stored") || has_step(row, "loaded"))
                << system << " token " << row.token;
            EXPECT_TRUE(has_step(row, "in memory")) << system << " token " << row.token;
        }
    }
}

/// What the paper's figure shows: stored, through hub and switch, in memory, released.
TEST(Timeline, a_row_of_moe_hub_passes_every_unit) {
    for (const Grain grain : kGrains) {
        const LayerResult result = recorded(grain).run("moe-hub");
        for (const RowPath& row : result.timeline.rows) {
            std::vector<std::string> steps;
            for (const RowStep& step : row.steps) steps.push_back(step.what);
            const std::string from = "gpu " + std::to_string(row.from);
            const std::string to = "gpu " + std::to_string(row.to);
            EXPECT_EQ(row.steps.front().where, from);
            EXPECT_EQ(row.steps.back().where, from);
            std::vector<std::string> all = {"stored",   "in memory",     "released",
                                            "computed", "result stored", "result in memory",
                                            "returned"};
            if (row.from != row.to)
                all = {"stored",
                       "left the hub",
                       "at the switch",
                       "in memory",
                       "released",
                       "computed",
                       "result stored",
                       "result left the hub",
                       "result at the switch",
                       "result in memory",
                       "returned"};
            EXPECT_EQ(steps, all);
            for (const RowStep& step : row.steps) {
                if (step.what != "released" && step.what != "computed") continue;
                EXPECT_EQ(step.where, to);
            }
        }
    }
}

TEST(Timeline, units_count_what_their_statistics_do) {
    const LayerResult hub = recorded(Grain::packet).run("moe-hub");
    EXPECT_EQ(total(hub.timeline.units, "aau"), statistic(hub, "aau", "lookups"));
    EXPECT_EQ(total(hub.timeline.units, "dam"), statistic(hub, "dam", "counter_updates"));
    EXPECT_EQ(total(hub.timeline.units, "dam releases"),
              statistic(hub, "dam", "ready") + statistic(hub, "dam", "released"));
    EXPECT_GE(total(hub.timeline.units, "rpm"), statistic(hub, "rpm", "packets"));

    const LayerResult dysharp = recorded(Grain::packet).run("dysharp");
    EXPECT_EQ(total(dysharp.timeline.units, "al"), statistic(dysharp, "al", "lookups"));
    EXPECT_EQ(total(dysharp.timeline.units, "ts"), statistic(dysharp, "ts", "counter_updates"));
    EXPECT_EQ(total(dysharp.timeline.units, "or"), statistic(dysharp, "or", "updates"));
    EXPECT_EQ(total(dysharp.timeline.units, "gather"), statistic(dysharp, "switch", "answers"));

    TpCase tp;
    tp.tokens = 256;
    tp.options.grain = Grain::packet;
    tp.options.timeline.record = true;
    const LayerResult cais = tp.run("cais");
    EXPECT_EQ(total(cais.timeline.units, "merge"), statistic(cais, "merge", "requests"));
}

TEST(Timeline, is_the_same_every_time) {
    const Timeline a = recorded(Grain::row).run("moe-hub").timeline;
    const Timeline b = recorded(Grain::row).run("moe-hub").timeline;
    ASSERT_EQ(a.rows.size(), b.rows.size());
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
        ASSERT_EQ(a.rows[i].steps.size(), b.rows[i].steps.size());
        for (std::size_t j = 0; j < a.rows[i].steps.size(); ++j) {
            EXPECT_EQ(a.rows[i].steps[j].at, b.rows[i].steps[j].at);
            EXPECT_EQ(a.rows[i].steps[j].what, b.rows[i].steps[j].what);
        }
    }
    ASSERT_EQ(a.sms.size(), b.sms.size());
    for (std::size_t i = 0; i < a.sms.size(); ++i) EXPECT_EQ(a.sms[i].values, b.sms[i].values);
    EXPECT_EQ(a.sent, b.sent);
}

Process push_layer(GpuProgram& gpu) {
    co_await gpu.route();
    const auto push = [&](int channel, std::vector<Rows> rows) {
        for (int to = 0; to < gpu.gpus(); ++to) {
            Rows& some = rows[static_cast<std::size_t>(to)];
            const Bytes bytes = static_cast<Bytes>(some.size()) * gpu.row_bytes();
            gpu.send(to, channel, std::move(some), bytes);
        }
    };
    push(0, gpu.rows_by_gpu());
    co_await gpu.received(0, gpu.gpus());
    Rows rows = gpu.take(0);
    co_await gpu.run_experts(rows);
    std::vector<Rows> results(static_cast<std::size_t>(gpu.gpus()));
    for (const CarriedRow& row : rows)
        results[static_cast<std::size_t>(gpu.home_of(row.token))].push_back(row);
    push(1, std::move(results));
    co_await gpu.received(1, gpu.gpus());
    co_await gpu.add_up(gpu.take(1));
}

TEST(Timeline, a_program_of_ones_own_has_one) {
    const Case one = recorded(Grain::row);
    const LayerResult result =
        simulate_layer({one.machine, one.model, make_routing({}, one.model, one.tokens),
                        contiguous_placement(one.model.experts, one.machine.gpus())},
                       own_system("push", push_layer, 2), one.options);
    expect_sound(result, one.machine);
    for (const char* kernel : {"router", "dispatch", "expert up", "expert down", "weighted sum"}) {
        EXPECT_TRUE(std::any_of(result.timeline.sms.begin(), result.timeline.sms.end(),
                                [&](const TimeSeries& sms) { return sms.name == kernel; }))
            << kernel;
    }
    for (const RowPath& row : result.timeline.rows) {
        EXPECT_TRUE(has_step(row, "taken") && has_step(row, "returned"));
    }
}

TEST(Timeline, follows_no_more_rows_than_asked_for_and_none_when_none) {
    Case one = recorded(Grain::row);
    one.options.timeline.followed_rows = 0;
    EXPECT_TRUE(one.run("moe-hub").timeline.rows.empty());
    one.options.timeline.followed_rows = 1'000'000;
    const Timeline all = one.run("moe-hub").timeline;
    EXPECT_EQ(all.every, 1);
    EXPECT_EQ(static_cast<std::int64_t>(all.rows.size()), one.tokens * one.model.top_k);
}

/// A kernel that holds SMs has them when blocks have left them: together they are never more than
/// there are, and their time is the scheduler's own.
TEST(Timeline, sms_of_kernels_add_up_to_the_schedulers) {
    sim::Fabric fabric(small_machine(1, 1), {});
    const Gpu gpu = load_gpu("h800-sxm");
    sim::Card card(fabric.gpu(0), gpu);
    sim::KernelLog log;
    card.blocks.record(log);
    using sim::KernelName;
    const GemmPlan plan = plan_gemm(gpu, {4096, 4096, 4096});
    fabric.gpu(0).spawn("GEMM", run_gemm(card, plan, KernelName::expert_up));
    const auto hold = [&](Ps from, Ps until, KernelName kernel, int sms) -> Process {
        co_await fabric.gpu(0).delay(from);
        card.blocks.hold(sms, kernel);
        co_await fabric.gpu(0).delay(until - from);
        card.blocks.release(sms, kernel);
    };
    fabric.gpu(0).spawn("a", hold(20 * kUs, 90 * kUs, KernelName::dispatch, 20));
    fabric.gpu(0).spawn("b", hold(21 * kUs, 22 * kUs, KernelName::combine, 30));
    fabric.gpu(0).spawn("c", hold(50 * kUs, 120 * kUs, KernelName::relay, 40));
    fabric.run();
    const auto time = [&](KernelName kernel) {
        const auto& bins = log.sms(kernel).bins();
        return static_cast<double>(std::accumulate(bins.begin(), bins.end(), std::int64_t{0}));
    };
    EXPECT_EQ(time(KernelName::expert_up), card.blocks.sm_time());
    const double held =
        time(KernelName::dispatch) + time(KernelName::combine) + time(KernelName::relay);
    EXPECT_GT(held, 0);
    EXPECT_LT(held, 20.0 * 70 * kUs + 30.0 * kUs + 40.0 * 70 * kUs) << "it waits for blocks to end";
}

}  // namespace
}  // namespace moehub::testing::timeline_test
