// Do packets with lists of targets reach each target once and no other, at the bytes and times of
// closed forms, and do loads by lists bring the exact sums? Both grains, both schemes.
#include "error_of.hpp"
#include "grains.hpp"
#include "sim/fabric.hpp"
#include "sim/hub/hub.hpp"
#include "traffic.hpp"

#include <moehub/presets.hpp>

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::multimem_test {
namespace {

using sim::GpuId;
using sim::RegionId;
using sim::RowGoal;

// small_machine(): a flit takes 100 ps on one of four links.
constexpr Ps kFlit = 100;
constexpr Ps kStore = 150 * kNs, kHop = 250 * kNs, kWrite = 400 * kNs, kRead = 600 * kNs;
constexpr Ps kFetch = 20 * kNs, kReplicate = kNs, kLookup = kNs;
constexpr Bytes kLine = 128;
constexpr std::uint32_t kExperts = 4;  ///< on each GPU
constexpr Ps kResults = 500 * kUs;     ///< when experts are through with what has come
constexpr Ps kLoads = 600 * kUs;

/// A token that a GPU sends to experts and collects from them.
struct Token {
    GpuId home = 0;
    std::vector<RowGoal> goals;
};

std::uint64_t identity(const RowGoal& goal, std::uint32_t token) {
    return sim::identity_of(1 + token * 4096 + goal.gpu * 64u + goal.region);
}
double number(const RowGoal& goal, std::uint32_t token, std::size_t line) {
    return 1000.0 * (goal.gpu + 1) + 10.0 * (goal.region + 1) + token + static_cast<double>(line);
}

struct Bench {
    Bench(const Machine& machine, const sim::FabricOptions& options, Bytes row = 8 * kLine)
        : fabric(machine, options), row_bytes(row), lines(static_cast<std::size_t>(row / kLine)) {
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(machine.gpus()); ++i) {
            sim::Hub& hub = hubs.emplace_back(
                fabric.gpu(i), machine, sim::Hub::Options{0, lines, kLine, HubUnits::dysharp});
            for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
                sim::RowSpace space;
                space.name = "expert";
                space.rows = 4096;
                space.data_bytes = row;
                hub.set_results(hub.add_region(space), hub.add_sums({}, row));
            }
            totals = hub.add_sums({0, 4096}, row);
            stored = fabric.gpu(i).add_counter("stored");
            loaded = fabric.gpu(i).add_counter("loaded");
        }
    }
    sim::Fabric fabric;
    Bytes row_bytes;
    std::size_t lines;
    std::deque<sim::Hub> hubs;
    RegionId totals = 0;
    sim::CounterId stored = 0;
    sim::CounterId loaded = 0;
    std::vector<double> input = std::vector<double>(64, 1.0);
};

sim::Transfer row_of(Bench& bench, std::uint32_t number, const Token& token) {
    sim::Transfer transfer;
    transfer.group = transfer.target.list = bench.fabric.groups().add_list(token.goals);
    transfer.bytes = bench.row_bytes;
    transfer.address = number * static_cast<std::uint64_t>(bench.row_bytes);
    transfer.target.row = number;
    return transfer;
}

sim::TransferId store(Bench& bench, std::uint32_t number, const Token& token) {
    sim::Transfer transfer = row_of(bench, number, token);
    transfer.answered = bench.stored;
    transfer.from_sm = true;
    transfer.target.allocate = true;
    transfer.target.numbers = bench.input.data();
    return bench.fabric.gpu(token.home).post(transfer);
}

sim::TransferId load(Bench& bench, std::uint32_t number, const Token& token) {
    sim::Transfer transfer = row_of(bench, number, token);
    transfer.kind = sim::EventKind::load;
    transfer.answered = bench.loaded;
    transfer.target.into = bench.totals;
    return bench.fabric.gpu(token.home).post(transfer);
}

sim::Process compute_at(Bench& bench, GpuId gpu, Ps when) {
    co_await bench.fabric.gpu(gpu).delay(when);
    sim::Hub& hub = bench.hubs[gpu];
    for (RegionId region = 0; region < kExperts; ++region) {
        for (std::uint32_t row = 0; row < hub.rows(region); ++row) {
            const std::uint32_t token = hub.memory(region).row_id(row);
            const RowGoal self{gpu, region};
            std::vector<double> numbers(bench.lines);
            for (std::size_t l = 0; l < numbers.size(); ++l) numbers[l] = number(self, token, l);
            hub.sums(region).add_row(row, identity(self, token), numbers.data());
        }
    }
}

/// Stores all of a GPU's tokens, and loads the sums when experts are through.
sim::Process send_and_collect(Bench& bench, GpuId gpu, std::vector<Token> tokens) {
    std::int64_t own = 0;
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].home != gpu) continue;
        store(bench, i, tokens[i]);
        ++own;
    }
    co_await bench.fabric.gpu(gpu).until(bench.stored, own);
    co_await bench.fabric.gpu(gpu).delay(kLoads - bench.fabric.gpu(gpu).now());
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].home == gpu) load(bench, i, tokens[i]);
    }
    co_await bench.fabric.gpu(gpu).until(bench.loaded, own);
}

void run_all(Bench& bench, const std::vector<Token>& tokens) {
    for (std::uint32_t i = 0; i < bench.hubs.size(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        bench.fabric.gpu(i).spawn("experts", compute_at(bench, gpu, kResults));
        bench.fabric.gpu(i).spawn("tokens", send_and_collect(bench, gpu, tokens));
    }
    bench.fabric.run();
}

/// Every target has the token once, whole, and nobody else has it.
void expect_rows(Bench& bench, const std::vector<Token>& tokens) {
    std::map<RowGoal, std::multiset<std::uint32_t>> want;
    for (std::uint32_t i = 0; i < tokens.size(); ++i)
        for (const RowGoal& goal : tokens[i].goals) want[goal].insert(i);
    for (std::uint32_t gpu = 0; gpu < bench.hubs.size(); ++gpu) {
        for (RegionId region = 0; region < kExperts; ++region) {
            const sim::RowMemory& memory = bench.hubs[gpu].memory(region);
            std::multiset<std::uint32_t> found;
            for (std::uint32_t row = 0; row < memory.rows(); ++row) {
                EXPECT_TRUE(memory.complete(row));
                found.insert(memory.row_id(row));
            }
            EXPECT_EQ(found, (want[{static_cast<GpuId>(gpu), region}]))
                << "expert " << region << " of gpu " << gpu;
        }
    }
}

std::uint32_t gpus_of(const Token& token) {
    std::set<GpuId> gpus;
    for (const RowGoal& goal : token.goals) gpus.insert(goal.gpu);
    return static_cast<std::uint32_t>(gpus.size());
}

void expect_sums(Bench& bench, const std::vector<Token>& tokens) {
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        const sim::RowSums& totals = bench.hubs[tokens[i].home].sums(bench.totals);
        std::uint64_t all = 0;
        std::vector<double> numbers(bench.lines);
        for (const RowGoal& goal : tokens[i].goals) {
            all += identity(goal, i);
            for (std::size_t l = 0; l < numbers.size(); ++l) numbers[l] += number(goal, i, l);
        }
        EXPECT_TRUE(totals.complete(i, gpus_of(tokens[i]))) << "token " << i;
        EXPECT_EQ(totals.identity(i), totals.whole() * all) << "token " << i;
        for (std::size_t l = 0; l < numbers.size(); ++l) {
            EXPECT_EQ(totals.numbers(i)[l], numbers[l]) << "line " << l << " of token " << i;
        }
    }
}

/// Flits on every GPU's links, both ways, from the packet format alone.
struct Wires {
    explicit Wires(std::size_t gpus) : up(gpus), down(gpus) {}
    std::vector<std::int64_t> up;
    std::vector<std::int64_t> down;

    static std::int64_t list(std::size_t targets) {
        return static_cast<std::int64_t>((targets + 7) / 8);
    }
    void store(const Token& token, std::int64_t packets) {
        up[token.home] += packets * (1 + list(token.goals.size()) + 8);
        for (const auto& [gpu, targets] : by_gpu(token)) {
            down[gpu] += packets * (1 + list(targets) + 8);
            up[gpu] += packets;
        }
        down[token.home] += packets;  // acknowledgements, merged
    }
    void load(const Token& token, std::int64_t packets, bool reduce_locally) {
        up[token.home] += packets * (1 + list(token.goals.size()));
        for (const auto& [gpu, targets] : by_gpu(token)) {
            down[gpu] += packets * (1 + list(targets));
            up[gpu] += packets * 9 * (reduce_locally ? 1 : static_cast<std::int64_t>(targets));
        }
        down[token.home] += packets * 9;
    }
    static std::map<GpuId, std::size_t> by_gpu(const Token& token) {
        std::map<GpuId, std::size_t> gpus;
        for (const RowGoal& goal : token.goals) ++gpus[goal.gpu];
        return gpus;
    }
};

void expect_bytes(const Bench& bench, const Wires& wires) {
    std::vector<Bytes> up(wires.up.size()), down(wires.up.size());
    for (const LinkUse& link : bench.fabric.links()) {
        for (std::size_t gpu = 0; gpu < up.size(); ++gpu) {
            const std::string name = fmt::format("gpu {}", gpu);
            if (link.from == name) up[gpu] += link.bytes;
            if (link.to == name) down[gpu] += link.bytes;
        }
    }
    for (std::size_t gpu = 0; gpu < up.size(); ++gpu) {
        EXPECT_EQ(up[gpu], 16 * wires.up[gpu]) << "gpu " << gpu << " up";
        EXPECT_EQ(down[gpu], 16 * wires.down[gpu]) << "gpu " << gpu << " down";
    }
}

class Multimem : public InGrainAndScheme {
  protected:
    sim::FabricOptions options() const {
        sim::FabricOptions options = InGrainAndScheme::options();
        options.slow_ingress = true;
        return options;
    }
};
IN_BOTH_GRAINS_AND_SCHEMES(Multimem);

TEST_P(Multimem, a_store_reaches_each_target_once_and_no_other) {
    Bench bench(small_machine(), options());
    const std::vector<Token> tokens = {{2, {{1, 0}, {4, 3}, {7, 1}}}};
    store(bench, 0, tokens[0]);
    bench.fabric.run();
    expect_rows(bench, tokens);
    EXPECT_EQ(bench.fabric.payload_received(), 3 * bench.row_bytes);
    Wires wires(8);
    wires.store(tokens[0], 8);
    expect_bytes(bench, wires);
}

TEST_P(Multimem, several_targets_on_one_gpu_are_one_packet_and_several_rows) {
    Bench bench(small_machine(), options());
    const std::vector<Token> tokens = {{0, {{5, 0}, {5, 2}, {5, 3}, {6, 1}}}};
    store(bench, 0, tokens[0]);
    bench.fabric.run();
    expect_rows(bench, tokens);
    EXPECT_EQ(bench.fabric.payload_received(), 2 * bench.row_bytes);
    EXPECT_EQ(bench.fabric.packets_received(), 2 * 8);
    Wires wires(8);
    wires.store(tokens[0], 8);
    expect_bytes(bench, wires);
}

/// Eight targets are one flit of the list, nine are two; a GPU's copy has its own targets' alone.
TEST_P(Multimem, a_flit_names_eight_targets) {
    Token token{0, {}};
    for (GpuId gpu = 1; gpu <= 4; ++gpu)
        for (RegionId region = 0; region < 2; ++region) token.goals.push_back({gpu, region});
    for (const std::int64_t flits : {1, 2}) {
        Bench bench(small_machine(), options());
        store(bench, 0, token);
        bench.fabric.run();
        expect_rows(bench, {token});
        Wires wires(8);
        wires.store(token, 8);
        EXPECT_EQ(wires.up[0], 8 * (1 + flits + 8));
        EXPECT_EQ(wires.down[1], 8 * 10);
        expect_bytes(bench, wires);
        token.goals.push_back({5, 0});
    }
}

TEST_P(Multimem, a_list_of_ones_own_experts_leaves_no_packet) {
    Bench bench(small_machine(), options());
    const Token token{3, {{3, 0}, {3, 2}}};
    sim::Transfer transfer = row_of(bench, 7, token);
    transfer.group = sim::kNoGroup;
    transfer.dst = 3;
    transfer.target.allocate = true;
    transfer.target.numbers = bench.input.data();
    bench.fabric.gpu(3).post(transfer);
    bench.fabric.run();
    EXPECT_EQ(bench.hubs[3].rows(0), 1u);
    EXPECT_EQ(bench.hubs[3].rows(1), 0u);
    EXPECT_EQ(bench.hubs[3].rows(2), 1u);
    EXPECT_EQ(bench.hubs[3].memory(2).row_id(0), 7u);
    EXPECT_EQ(bench.fabric.wire_bytes_up(), 0);
}

/// One packet on an idle machine, hop by hop.
TEST_P(Multimem, a_store_takes_its_list_two_hops_a_lookup_and_the_memory) {
    const Token token{2, {{1, 0}, {4, 3}}};
    Bench bench(small_machine(), options(), kLine);
    store(bench, 0, token);
    bench.fabric.run();
    const Ps at_hub = kFetch + kStore + 2 * (10 * kFlit + kHop) + kReplicate;
    const Ps written = at_hub + kLookup + kRead + kWrite;  // a new row: the AL table is read
    EXPECT_EQ(std::as_const(bench.fabric).transfer(0).delivered_at, written);
    EXPECT_EQ(std::as_const(bench.fabric).transfer(0).completed_at,
              written + 2 * (1 * kFlit + kHop));
}

TEST_P(Multimem, nine_targets_take_a_flit_more_up_and_not_down) {
    Token token{0, {}};
    for (GpuId gpu = 1; gpu <= 3; ++gpu)
        for (RegionId region = 0; region < 3; ++region) token.goals.push_back({gpu, region});
    Machine machine = small_machine();
    machine.dysharp.tlb_banks = 64;
    Bench bench(machine, options(), kLine);
    store(bench, 0, token);
    bench.fabric.run();
    const Ps at_hub = kFetch + kStore + (11 * kFlit + kHop) + (10 * kFlit + kHop) + kReplicate;
    const Ps known = std::as_const(bench.fabric).transfer(0).delivered_at - kRead - kWrite - at_hub;
    EXPECT_GE(known, kLookup);
    EXPECT_LE(known, 3 * kLookup) << "its three rows, where they share a bank";
}

TEST_P(Multimem, replication_adds_its_time_to_requests_and_not_to_answers) {
    const Token token{2, {{1, 0}, {4, 3}}};
    std::vector<Ps> stores, loads;
    for (const Ps replicate : {0 * kNs, 37 * kNs}) {
        Machine machine = small_machine();
        machine.dysharp.replicate = replicate;
        Bench bench(machine, options());
        run_all(bench, {token});
        stores.push_back(std::as_const(bench.fabric).transfer(0).completed_at);
        loads.push_back(std::as_const(bench.fabric).transfer(1).completed_at);
    }
    EXPECT_EQ(stores[1] - stores[0], 37 * kNs);
    EXPECT_EQ(loads[1] - loads[0], 37 * kNs);
}

/// A load of one packet: request, lookup, memory, answer; the TLB still has the row.
TEST_P(Multimem, a_load_takes_its_list_four_hops_a_lookup_and_the_memory) {
    const Token token{2, {{1, 0}, {4, 3}, {6, 1}}};
    Bench bench(small_machine(), options(), kLine);
    run_all(bench, {token});
    const Ps request = kFetch + kStore + 2 * (2 * kFlit + kHop) + kReplicate;
    const Ps answer = kLookup + kRead + 2 * (9 * kFlit + kHop);
    EXPECT_EQ(std::as_const(bench.fabric).transfer(1).completed_at, kLoads + request + answer);
    expect_sums(bench, {token});
}

TEST_P(Multimem, a_load_of_a_row_that_left_the_tlb_reads_the_table_first) {
    Machine machine = small_machine();
    machine.dysharp.tlb_entries = 1;
    Bench bench(machine, options(), kLine);
    const std::vector<Token> tokens = {{2, {{1, 0}}}, {2, {{1, 0}}}};
    run_all(bench, tokens);
    const Ps request = kFetch + kStore + 2 * (2 * kFlit + kHop) + kReplicate;
    const Ps answer = kLookup + kRead + kRead + 2 * (9 * kFlit + kHop);
    EXPECT_EQ(std::as_const(bench.fabric).transfer(2).completed_at, kLoads + request + answer);
    expect_sums(bench, tokens);
    EXPECT_EQ(bench.hubs[1].aau().stats().restores, 2);
}

TEST_P(Multimem, a_load_brings_the_exact_sum_and_the_bytes_of_one_answer) {
    const std::vector<Token> tokens = {{3, {{0, 1}, {1, 0}, {1, 2}, {1, 3}, {6, 0}, {7, 2}}}};
    Bench bench(small_machine(), options());
    run_all(bench, tokens);
    expect_sums(bench, tokens);
    Wires wires(8);
    wires.store(tokens[0], 8);
    wires.load(tokens[0], 8, true);
    expect_bytes(bench, wires);
    // Acknowledgements are gathered too, and take no room.
    EXPECT_EQ(bench.fabric.gather_stats().gathered, 2 * 8);
    EXPECT_EQ(bench.fabric.gather_stats().evicted, 0);
}

TEST_P(Multimem, results_that_a_gpu_does_not_add_up_go_to_the_switch_each_by_itself) {
    const std::vector<Token> tokens = {{3, {{0, 1}, {1, 0}, {1, 2}, {1, 3}, {6, 0}}}};
    Machine machine = small_machine();
    machine.dysharp.reduce_locally = false;
    Bench bench(machine, options());
    run_all(bench, tokens);
    expect_sums(bench, tokens);
    Wires wires(8);
    wires.store(tokens[0], 8);
    wires.load(tokens[0], 8, false);
    EXPECT_EQ(wires.up[1], 8 + 3 * 8 * 9);
    expect_bytes(bench, wires);
}

/// Rows of one packet: an answer of several packets meets one of a single packet.
TEST_P(Multimem, answers_of_one_and_of_several_packets_are_added_in_any_order) {
    Machine machine = small_machine();
    machine.dysharp.reduce_locally = false;
    for (const auto& [several_first, room] :
         {std::pair{false, 512}, {true, 512}, {false, 1}, {true, 1}}) {
        machine.dysharp.sum_packets = room;
        Bench bench(machine, options(), kLine);
        // One of the two has something else to send first.
        sim::Transfer other;
        other.dst = 7;
        other.bytes = 1 << 20;
        const Token token{3, {{0, 1}, {1, 0}, {1, 2}, {1, 3}}};
        struct Busy {
            static sim::Process send(Bench& on, GpuId gpu, sim::Transfer what) {
                co_await on.fabric.gpu(gpu).delay(kLoads);
                on.fabric.gpu(gpu).post(what);
            }
        };
        bench.fabric.gpu(several_first ? 0 : 1)
            .spawn("busy", Busy::send(bench, several_first ? 0 : 1, other));
        std::vector<Token> tokens;
        for (int i = 0; i < 40; ++i) tokens.push_back(token);
        run_all(bench, tokens);
        expect_sums(bench, tokens);
    }
}

std::vector<Token> random_tokens(std::uint32_t seed, int count) {
    std::mt19937 random(seed);
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) {
        Token token{static_cast<GpuId>(random() % 8), {}};
        std::set<RowGoal> goals;
        for (auto n = 1 + random() % 12; n > 0; --n) {
            goals.insert({static_cast<GpuId>((token.home + 1 + random() % 7) % 8),
                          static_cast<RegionId>(random() % kExperts)});
        }
        token.goals.assign(goals.begin(), goals.end());
        std::shuffle(token.goals.begin(), token.goals.end(), random);
        tokens.push_back(token);
    }
    return tokens;
}

TEST_P(Multimem, random_tokens_arrive_and_return_at_the_bytes_of_the_format) {
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
        const std::vector<Token> tokens = random_tokens(seed, 60);
        Machine machine = small_machine();
        machine.dysharp.reduce_locally = seed % 2 == 0;
        machine.dysharp.tlb_entries = seed % 3 == 0 ? 1 : 512;
        machine.dysharp.multimem_entries = seed % 3 == 1 ? 1 : 32;
        machine.link.buffer_flits = seed < 3 ? 11 : 256;
        const Bytes row = (1 + seed) * kLine;
        Bench bench(machine, options(), row);
        run_all(bench, tokens);
        expect_rows(bench, tokens);
        expect_sums(bench, tokens);
        Wires wires(8);
        for (const Token& token : tokens) {
            wires.store(token, row / kLine);
            wires.load(token, row / kLine, machine.dysharp.reduce_locally);
        }
        expect_bytes(bench, wires);
        EXPECT_EQ(bench.fabric.gather_stats().evicted, 0);
    }
}

/// A link that is busy makes answers of one request come at different times.
struct Crowded {
    Bytes down = 0;
    sim::GatherStats stats;
    std::vector<Ps> ends;
};

sim::Process crowd(Bench& bench, GpuId gpu) {
    co_await bench.fabric.gpu(gpu).delay(kLoads);
    sim::Transfer store;
    store.dst = 6;
    store.bytes = 65536;
    bench.fabric.gpu(gpu).post(store);
}

Crowded run_crowded(int room, bool reduce_locally, const sim::FabricOptions& options) {
    Machine machine = small_machine(8, 1);
    machine.dysharp.sum_packets = room;
    machine.dysharp.reduce_locally = reduce_locally;
    Bench bench(machine, options);
    std::vector<Token> tokens;
    for (std::uint32_t i = 0; i < 24; ++i) {
        Token token{static_cast<GpuId>(i % 7), {}};
        for (GpuId gpu = 0; gpu < 8; ++gpu) {
            if (gpu != token.home) token.goals.push_back({gpu, (i + gpu) % kExperts});
        }
        if (token.home != 5) token.goals.push_back({5, (i + 6) % kExperts});
        tokens.push_back(token);
    }
    bench.fabric.gpu(7).spawn("crowd", crowd(bench, 7));
    run_all(bench, tokens);
    expect_rows(bench, tokens);
    expect_sums(bench, tokens);
    Crowded made{bench.fabric.wire_bytes_down(), bench.fabric.gather_stats(), {}};
    EXPECT_LE(made.stats.deepest, room);
    for (std::size_t i = 0; i < bench.fabric.transfers(); ++i) {
        made.ends.push_back(
            std::as_const(bench.fabric).transfer(static_cast<sim::TransferId>(i)).completed_at);
    }
    return made;
}

TEST_P(Multimem, a_buffer_of_one_packet_sends_partial_sums_on_and_loses_nothing) {
    for (const bool reduce_locally : {true, false}) {
        const Crowded roomy = run_crowded(512, reduce_locally, options());
        const Crowded tight = run_crowded(1, reduce_locally, options());
        EXPECT_EQ(roomy.stats.evicted, 0);
        EXPECT_GT(tight.stats.evicted, 0);
        EXPECT_EQ(tight.stats.answers, roomy.stats.answers);
        // Each partial sum that had to go on is a packet of nine flits more.
        EXPECT_EQ(tight.down, roomy.down + tight.stats.evicted * 9 * 16);
        sim::FabricOptions other = options();
        other.scheme =
            std::get<1>(GetParam()) == sim::Scheme::heap ? sim::Scheme::windows : sim::Scheme::heap;
        EXPECT_EQ(run_crowded(1, reduce_locally, other).ends, tight.ends);
    }
}

TEST_P(Multimem, one_entry_of_the_queue_paces_rows_by_its_fetch) {
    Machine machine = small_machine();
    machine.dysharp.multimem_entries = 1;
    machine.dysharp.list_fetch = 100 * kNs;
    Bench bench(machine, options(), kLine);
    for (std::uint32_t i = 0; i < 50; ++i) store(bench, i, {2, {{1, 0}, {4, 3}}});
    bench.fabric.run();
    for (sim::TransferId i = 1; i < 50; ++i) {
        EXPECT_EQ(std::as_const(bench.fabric).transfer(i).delivered_at -
                      std::as_const(bench.fabric).transfer(i - 1).delivered_at,
                  100 * kNs);
    }
}

TEST_P(Multimem, lists_that_the_format_does_not_allow_are_refused_in_one_line) {
    const auto post_to = [&](const Machine& machine, std::uint32_t targets) {
        Bench bench(machine, options(), kLine);
        Token token{0, {}};
        for (std::uint32_t i = 0; i < targets; ++i)
            token.goals.push_back({static_cast<GpuId>(1 + i % 7), i / 7});
        return error_of([&] { store(bench, 0, token); });
    };
    // The count of targets has 15 bits.
    EXPECT_EQ(post_to(small_machine(), 0x7fff), "accepted");
    EXPECT_NE(post_to(small_machine(), 0x8000).find("goes to 32768 experts"), std::string::npos);
    // A packet must fit into a buffer.
    Machine near = small_machine();
    near.link.latency = kNs;
    near.link.buffer_flits = 11;
    EXPECT_EQ(post_to(near, 8), "accepted");
    EXPECT_NE(post_to(near, 2000).find("a token goes to 2000 experts of a node by one list"),
              std::string::npos);
}

TEST_P(Multimem, a_list_reaches_into_no_other_node) {
    Bench bench(small_cluster(2), options());
    EXPECT_THROW(store(bench, 0, {0, {{1, 0}, {9, 0}}}), std::logic_error);
}

/// What is lost or comes twice: rows are missing, sums are not complete or of others.
TEST_P(Multimem, a_fault_shows_in_what_came) {
    using What = sim::Fault::What;
    const std::vector<Token> tokens = {{3, {{0, 1}, {1, 0}, {1, 2}, {6, 0}}}};
    for (const What what : {What::drop, What::duplicate, What::delay}) {
        sim::FabricOptions faulty = options();
        faulty.fault = {what, 1, 1'000'000 * kUs, nullptr};  // the load
        Bench bench(small_machine(), faulty);
        run_all(bench, tokens);
        expect_rows(bench, tokens);
        EXPECT_FALSE(bench.hubs[3].sums(bench.totals).complete(0, 3));
        if (what != What::duplicate) {
            EXPECT_EQ(bench.hubs[3].sums(bench.totals).identity(0), 0u);
        }
    }
    sim::FabricOptions faulty = options();
    faulty.fault = {What::drop, 0, 0, nullptr};  // the store
    Bench bench(small_machine(), faulty);
    store(bench, 0, tokens[0]);
    bench.fabric.run();
    for (const RowGoal& goal : tokens[0].goals) {
        EXPECT_EQ(bench.hubs[goal.gpu].memory(goal.region).rows(), 0u);
    }
    faulty.fault.what = What::duplicate;
    Bench twice(small_machine(), faulty);
    store(twice, 0, tokens[0]);
    EXPECT_THROW(twice.fabric.run(), std::logic_error);
}

TEST_P(Multimem, an_answer_of_a_gpu_that_lost_a_result_gives_another_identity) {
    const Token token{3, {{0, 1}, {1, 0}, {6, 0}}};
    Bench bench(small_machine(), options());
    run_all(bench, {token});
    Bench other(small_machine(), options());
    store(other, 0, token);
    for (const GpuId gpu : {GpuId{0}, GpuId{6}})
        other.fabric.gpu(gpu).spawn("experts", compute_at(other, gpu, kResults));
    other.fabric.gpu(1).spawn("experts", [](Bench& on) -> sim::Process {
        co_await on.fabric.gpu(1).delay(kResults);
        const std::vector<double> none(on.lines);
        on.hubs[1].sums(0).add_row(0, 0, none.data());  // it never computed
    }(other));
    other.fabric.gpu(3).spawn("load", [](Bench& on, Token of) -> sim::Process {
        co_await on.fabric.gpu(3).delay(kLoads);
        load(on, 0, of);
    }(other, token));
    other.fabric.run();
    EXPECT_TRUE(other.hubs[3].sums(other.totals).complete(0, 3));
    EXPECT_NE(other.hubs[3].sums(other.totals).identity(0),
              bench.hubs[3].sums(bench.totals).identity(0));
}

/// Results of a row that never came are not made up.
TEST_P(Multimem, a_load_of_what_never_came_is_a_defect) {
    Bench bench(small_machine(), options());
    load(bench, 0, {3, {{0, 1}}});
    EXPECT_THROW(bench.fabric.run(), std::logic_error);
}

// Switches out of service.

TEST_P(Multimem, one_of_four_switches_down_leaves_three_quarters_of_the_bandwidth) {
    Machine machine = small_machine();
    const std::vector<Flow> flows = {{0, 1, 4 << 20}};
    const Delivery whole = deliver(machine, flows, options());
    machine.switches_down = 1;
    const Delivery less = deliver(machine, flows, options());
    EXPECT_EQ(less.received, whole.received);
    EXPECT_EQ(less.up, whole.up);
    const double packets = 32768;
    const double rest = static_cast<double>(kStore + 2 * kHop + kWrite);
    EXPECT_NEAR(static_cast<double>(whole.end), packets / 4 * 9 * kFlit + rest, 0.01 * 7.4e6);
    EXPECT_NEAR(static_cast<double>(less.end), packets / 3 * 9 * kFlit + rest, 0.01 * 9.9e6);
    EXPECT_EQ(less.delivered.size(), 1u);
}

TEST_P(Multimem, lists_pass_the_switches_that_are_left) {
    Machine machine = small_machine();
    machine.dysharp.multimem_entries = 4096;  // not what limits, nor are lookups
    machine.dysharp.tlb_entries = 4096;
    machine.dysharp.tlb_lookup = 10;
    constexpr std::uint32_t kTokens = 512;
    std::vector<Token> tokens;
    for (std::uint32_t i = 0; i < kTokens; ++i) tokens.push_back({2, {{1, i % 4}, {4, 0}, {4, 1}}});
    for (const int down : {0, 1, 3}) {
        machine.switches_down = down;
        const Bytes row = 32 * kLine;
        Bench bench(machine, options(), row);
        run_all(bench, tokens);
        expect_rows(bench, tokens);
        expect_sums(bench, tokens);
        Ps end = 0;
        for (sim::TransferId i = 0; i < kTokens; ++i) {
            end = std::max(end, std::as_const(bench.fabric).transfer(i).delivered_at);
        }
        const double wire = 32.0 * kTokens / (4 - down) * 10 * kFlit;
        const double rest =
            static_cast<double>(kFetch + kStore + 2 * kHop + kReplicate + kLookup + kRead + kWrite);
        EXPECT_NEAR(static_cast<double>(end), wire + rest, 0.01 * (wire + rest)) << down << " down";
        std::set<std::string> switches;
        for (const LinkUse& link : bench.fabric.links()) {
            if (link.to == "gpu 4" && link.bytes > 0) switches.insert(link.from);
        }
        const bool packet = std::get<0>(GetParam()) == Grain::packet;
        EXPECT_EQ(switches.size(), packet ? static_cast<std::size_t>(4 - down) : 1u);
    }
}

TEST(SwitchesDown, all_of_them_or_more_are_refused) {
    Machine machine = small_machine();
    machine.gpu = load_gpu("h800-sxm");
    machine.switches_down = 3;
    EXPECT_EQ(error_of([&] { check(machine); }), "accepted");
    for (const int down : {4, 5, 100}) {
        machine.switches_down = down;
        const std::string why = error_of([&] { check(machine); });
        EXPECT_NE(why.find("switches_down"), std::string::npos) << why;
        EXPECT_NE(why.find("at most 3 of"), std::string::npos) << why;
    }
    machine.switches_down = -1;
    EXPECT_NE(error_of([&] { check(machine); }), "accepted");
    machine.switches_down = 1;
    machine.topology = NodeTopology::mesh;
    machine.switches = 0;
    machine.in_switch = false;
    EXPECT_NE(error_of([&] { check(machine); }), "accepted") << "a mesh has none";
}

}  // namespace
}  // namespace moehub::testing::multimem_test
