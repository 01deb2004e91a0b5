// Is a trace one that viewers of trace events understand, does it stay small, and does the program
// write it?
#include "report/perfetto.hpp"

#include "cli_fixture.hpp"
#include "small_tp.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::testing::perfetto_test {
namespace {

using nlohmann::json;

LayerResult recorded(const std::string& system, int gpus = 4) {
    Case one;
    one.machine = small_gpus(gpus);
    one.options.timeline = {true, 8};
    return one.run(system);
}

/// What the format asks for, event by event.
void expect_events(const json& trace, double longest_us) {
    struct Slice {
        double begin, end;
    };
    std::map<std::pair<int, int>, std::vector<Slice>> slices;
    std::set<int> named;
    std::set<std::pair<int, int>> named_threads;
    for (const json& event : trace.at("traceEvents")) {
        ASSERT_TRUE(event.contains("ph") && event.contains("pid") && event.contains("tid") &&
                    event.contains("ts") && event.contains("name"))
            << event;
        const std::string kind = event["ph"];
        const double at = event["ts"];
        EXPECT_GE(at, 0) << event;
        EXPECT_LE(at, longest_us + 0.001) << event;
        const std::pair<int, int> track{event["pid"], event["tid"]};
        if (kind == "M" && event["name"] == "process_name") {
            EXPECT_TRUE(named.insert(track.first).second) << event;
            EXPECT_FALSE(event["args"]["name"].get<std::string>().empty());
        } else if (kind == "M" && event["name"] == "thread_name") {
            EXPECT_TRUE(named_threads.insert(track).second) << event;
        } else if (kind == "M") {
            EXPECT_TRUE(event["args"]["sort_index"].is_number_integer()) << event;
        } else if (kind == "C") {
            EXPECT_GE(event["args"]["value"].get<double>(), 0) << event;
        } else if (kind == "X") {
            EXPECT_GE(event["dur"].get<double>(), 0) << event;
            slices[track].push_back({at, at + event["dur"].get<double>()});
        } else {
            EXPECT_TRUE(kind == "s" || kind == "t" || kind == "f") << event;
        }
    }
    // Slices of a thread lie in each other or apart; every track has a name.
    for (auto& [track, list] : slices) {
        EXPECT_TRUE(named.contains(track.first));
        EXPECT_TRUE(named_threads.contains(track));
        std::sort(list.begin(), list.end(), [](const Slice& a, const Slice& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
        });
        for (std::size_t i = 1; i < list.size(); ++i)
            EXPECT_TRUE(list[i].begin >= list[i - 1].end - 1e-6 ||
                        list[i].end <= list[i - 1].end + 1e-6)
                << track.first << " " << track.second << " at " << list[i].begin;
    }
    // A flow starts once, ends once, never goes back, and each of its steps lies in a slice.
    std::map<std::int64_t, std::string> flows;
    std::map<std::int64_t, double> last;
    for (const json& event : trace.at("traceEvents")) {
        const std::string kind = event["ph"];
        if (kind != "s" && kind != "t" && kind != "f") continue;
        const std::int64_t id = event["id"];
        const double at = event["ts"];
        flows[id] += kind;
        EXPECT_GE(at, last[id]);
        last[id] = at;
        const auto& on = slices[{event["pid"], event["tid"]}];
        EXPECT_TRUE(std::any_of(on.begin(), on.end(), [&](const Slice& slice) {
            return slice.begin <= at && at < slice.end;
        })) << event;
        EXPECT_EQ(event.contains("bp"), kind == "f");
    }
    for (const auto& [id, kinds] : flows) {
        EXPECT_EQ(kinds.front(), 's') << id;
        EXPECT_EQ(kinds.back(), 'f') << id;
        EXPECT_EQ(kinds.find_first_not_of('t', 1), kinds.size() - 1) << kinds;
    }
}

TEST(Perfetto, every_event_is_well_formed) {
    for (const char* system : {"moe-hub", "dysharp", "megatron-te", "comet", "nvls", "deepep"}) {
        const LayerResult result = recorded(system);
        const Trace trace = perfetto_trace({{system, &result}});
        const json parsed = json::parse(trace.json);
        expect_events(parsed, to_us(result.time));
        EXPECT_EQ(static_cast<std::int64_t>(parsed["traceEvents"].size()), trace.events);
        std::set<std::int64_t> ids;
        for (const json& event : parsed["traceEvents"])
            if (event["ph"] == "s") ids.insert(event["id"].get<std::int64_t>());
        EXPECT_EQ(ids.size(), result.timeline.rows.size()) << system;
    }
}

TEST(Perfetto, systems_are_processes_of_their_own) {
    const LayerResult hub = recorded("moe-hub");
    const LayerResult ideal = recorded("ideal");
    const json parsed = json::parse(perfetto_trace({{"ideal", &ideal}, {"moe-hub", &hub}}).json);
    expect_events(parsed, to_us(std::max(hub.time, ideal.time)));
    std::set<std::string> names;
    for (const json& event : parsed["traceEvents"])
        if (event["name"] == "process_name") names.insert(event["args"]["name"]);
    for (const char* name : {"ideal · gpu 0", "ideal · gpu 3", "moe-hub · gpu 0", "moe-hub · gpu 3",
                             "moe-hub · switch 0 of node 0"})
        EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_EQ(parsed["otherData"]["layer_us"]["ideal"], to_us(ideal.time));
}

/// A counter's area is what was recorded.
TEST(Perfetto, counters_keep_what_they_count) {
    const LayerResult result = recorded("moe-hub");
    for (const std::int64_t most : {std::int64_t{1'000'000}, std::int64_t{200}}) {
        const Trace trace = perfetto_trace({{"moe-hub", &result}}, most);
        EXPECT_EQ(trace.joined > 1, most == 200);
        const json parsed = json::parse(trace.json);
        double area = 0;  // SMs · µs on GPU 0
        double last = 0;
        double since = 0;
        int gpu = -1;
        for (const json& event : parsed["traceEvents"]) {
            if (event["name"] == "process_name" && event["args"]["name"] == "moe-hub · gpu 0")
                gpu = event["pid"];
            if (event["ph"] != "C" || event["pid"] != gpu || event["name"] != "SMs: expert up")
                continue;
            area += last * (event["ts"].get<double>() - since);
            last = event["args"]["value"];
            since = event["ts"];
        }
        double want = 0;
        for (const TimeSeries& sms : result.timeline.sms) {
            if (sms.where != "gpu 0" || sms.name != "expert up") continue;
            for (const double value : sms.values) want += value * to_us(sms.bin);
        }
        EXPECT_GT(want, 0);
        EXPECT_NEAR(area / want, 1, 0.01) << most;
    }
}

TEST(Perfetto, a_sub_layer_has_one) {
    TpCase one;
    one.tokens = 256;
    one.options.timeline.record = true;
    const LayerResult result = one.run("cais");
    expect_events(json::parse(perfetto_trace({{"L1 cais", &result}}).json), to_us(result.time));
}

using TraceCli = cli_test::Cli;

TEST_F(TraceCli, run_writes_a_trace_and_says_what_it_holds) {
    const std::string path = file("trace.json");
    const auto outcome = moehub("run --tokens 512 --gpus 4 --trace-rows 5 --trace '" + path + "'");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("trace: one row of "), std::string::npos) << outcome.err;
    const json parsed = json::parse(cli_test::text_of(path));
    std::set<std::int64_t> ids;
    for (const json& event : parsed["traceEvents"])
        if (event["ph"] == "s") ids.insert(event["id"].get<std::int64_t>());
    EXPECT_LE(ids.size(), 5u);
    EXPECT_GE(ids.size(), 3u);
}

TEST_F(TraceCli, compare_writes_all_systems_and_the_same_result) {
    const std::string path = file("trace.json");
    const std::string layer = "compare --tokens 512 --gpus 4 --systems ideal,moe-hub --json";
    const auto with = moehub(layer + " --trace '" + path + "'");
    ASSERT_EQ(with.code, 0) << with.err;
    EXPECT_EQ(with.out, moehub(layer).out);
    EXPECT_NE(cli_test::text_of(path).find("ideal · gpu 0"), std::string::npos);
    const auto tp = moehub(
        "compare --layer-type tp --tokens 512 --gpus 4 --sublayer all --systems ideal,cais "
        "--trace '" +
        path + "'");
    ASSERT_EQ(tp.code, 0) << tp.err;
    EXPECT_NE(cli_test::text_of(path).find("L2 cais · gpu 0"), std::string::npos);
}

TEST_F(TraceCli, a_mistake_is_one_line_and_writes_nothing) {
    const std::string nowhere = file("no folder/trace.json");
    const auto unwritable = moehub("run --tokens 512 --trace '" + nowhere + "'");
    EXPECT_EQ(unwritable.code, 2);
    EXPECT_NE(unwritable.err.find("cannot be written"), std::string::npos) << unwritable.err;
    const std::string path = file("trace.json");
    const auto many = moehub("run --tokens 512 --trace '" + path + "' --trace-rows 5000");
    EXPECT_EQ(many.code, 2);
    EXPECT_NE(many.err.find("--trace-rows"), std::string::npos) << many.err;
    EXPECT_EQ(moehub("run --tokens 512 --trace-rows 5").code, 2);
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace moehub::testing::perfetto_test
