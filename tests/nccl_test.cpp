// Do collectives take what NCCL's protocols and TensorRT-LLM's kernel say: start and hops when
// small, links when large, the bytes of their flags on the wire?
#include "sim/collective/nccl.hpp"

#include "validated.hpp"

#include <moehub/collective.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace moehub::nccl_test {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;
using Element = Collective::Element;

constexpr Bytes kKiB = 1 << 10;
constexpr Bytes kMiB = 1 << 20;

CollectiveResult run(const Machine& machine, Op op, Bytes bytes, Element element = Element::half,
                     Algorithm algorithm = Algorithm::automatic) {
    return run_collective(machine, {.op = op,
                                    .algorithm = algorithm,
                                    .element = element,
                                    .gpus = machine.gpus(),
                                    .bytes = bytes});
}

Machine machine_of(const std::string& name, int gpus) {
    return with_gpus(load_machine(name), gpus);
}

double us(const Machine& machine, Op op, Bytes bytes, Element element = Element::half) {
    return to_us(run(machine, op, bytes, element).time);
}

/// A store's way to another GPU's memory.
double way(const Machine& machine) {
    return to_us(machine.hub.store_latency + 2 * machine.link.latency + machine.hub.write_latency);
}

TEST(Nccl, a_small_ring_takes_its_start_and_its_hops) {
    for (const char* name : {"dgx-h100", "dgx-b200"}) {
        for (const int gpus : {2, 4, 8}) {
            const Machine machine = machine_of(name, gpus);
            const double hop = way(machine) + to_us(machine.nccl.ll.hop);
            const double start = to_us(machine.nccl.start);
            const int hops = gpus - 1;
            EXPECT_NEAR(us(machine, Op::all_gather, 512), start + hops * hop, 0.02 * gpus + 0.1);
            EXPECT_NEAR(us(machine, Op::all_reduce, 512), start + 2 * hops * hop,
                        0.04 * gpus + 0.1);
        }
    }
}

TEST(Nccl, a_large_ring_takes_its_links_and_one_more_phase_of_its_blocks) {
    const Machine machine = load_machine("dgx-h100");
    const CollectiveResult result = run(machine, Op::all_gather, 512 * kMiB, Element::int8);
    EXPECT_EQ(result.chosen, "ring, Simple");
    const double part = 64.0 * kMiB;
    const double payload = 0.79 * machine.link.bandwidth;  // headers, acknowledgements, credits
    const double links = 7 * part / payload * 1e6;
    const double blocks = part / (machine.nccl.channels * machine.nccl.simple.rate) * 1e6;
    EXPECT_NEAR(to_us(result.time) / (links + blocks), 1, 0.05);
}

TEST(Nccl, flags_are_bytes_on_the_links) {
    const Machine machine = load_machine("dgx-h100");
    const auto lines = [&](Op op, Bytes bytes, const char* protocol) {
        const CollectiveResult result = run(machine, op, bytes, Element::int8);
        EXPECT_EQ(result.chosen, protocol);
        return result.bytes_up / (10 * 16);  // 128 B with a header, and an acknowledgement
    };
    const Bytes parts = 8 * 7;  // parts of all GPUs that go over links
    EXPECT_EQ(lines(Op::all_gather, kMiB, "ring, LL"), parts * (2 * kMiB / 8 / 128));
    EXPECT_EQ(lines(Op::all_reduce, kMiB, "ring, LL"), 2 * parts * (2 * kMiB / 8 / 128));
    EXPECT_EQ(lines(Op::all_gather, 15 * kMiB, "ring, LL128"), parts * (16 * kMiB / 8 / 128));
    EXPECT_EQ(lines(Op::all_gather, 64 * kMiB, "ring, Simple"), parts * (64 * kMiB / 8 / 128));
    EXPECT_EQ(lines(Op::all_to_all, 64 * kKiB, "sends, LL"), parts * (2 * 64 * kKiB / 8 / 128));
    EXPECT_EQ(lines(Op::all_to_all, 8 * kMiB, "sends, Simple"), parts * (8 * kMiB / 8 / 128));
}

TEST(Nccl, one_shot_sends_the_buffer_to_all_others) {
    for (const int gpus : {2, 8}) {
        const Machine machine = machine_of("dgx-h100", gpus);
        const Bytes bytes = 256 * kKiB;
        const CollectiveResult result =
            run(machine, Op::all_reduce, bytes, Element::half, Algorithm::one_shot);
        EXPECT_EQ(result.bytes_up, gpus * (gpus - 1) * (bytes / 128) * 10 * 16);
        const double sent = static_cast<double>((gpus - 1) * bytes);
        const double read = 2.0 * gpus * static_cast<double>(bytes);
        const double closed = to_us(machine.nccl.one_shot_start) + way(machine) +
                              sent / (0.79 * machine.link.bandwidth) * 1e6 +
                              read / machine.nccl.one_shot_memory * 1e6;
        EXPECT_NEAR(to_us(result.time) / closed, 1, 0.05) << gpus;
    }
}

TEST(Nccl, it_chooses_as_its_estimates_say) {
    const auto chosen = [](const char* name, int gpus, Op op, Bytes bytes,
                           Element element = Element::half) {
        const sim::NcclCall call{op, bytes, element};
        return sim::name_of(sim::choose(load_machine(name), static_cast<std::uint32_t>(gpus), call),
                            op, false);
    };
    EXPECT_EQ(chosen("dgx-h100", 8, Op::all_gather, 4 * kMiB), "ring, LL");
    EXPECT_EQ(chosen("dgx-h100", 8, Op::all_gather, 8 * kMiB), "ring, LL128");
    EXPECT_EQ(chosen("dgx-h100", 8, Op::all_gather, 32 * kMiB), "ring, Simple");
    EXPECT_EQ(chosen("dgx-h100", 4, Op::all_gather, 2 * kMiB), "ring, LL");
    EXPECT_EQ(chosen("dgx-h100", 4, Op::all_gather, 4 * kMiB), "ring, Simple");
    EXPECT_EQ(chosen("dgx-h100", 8, Op::all_reduce, 4 * kMiB), "nvls");
    EXPECT_EQ(chosen("dgx-h100", 8, Op::all_reduce, 64 * kMiB, Element::int8), "ring, Simple");
    EXPECT_EQ(chosen("dgx-h100", 4, Op::all_reduce, 512 * kMiB), "ring, Simple");
    EXPECT_EQ(chosen("dgx-b200", 8, Op::all_gather, 8 * kMiB), "ring, LL");
    EXPECT_EQ(chosen("dgx-b200", 8, Op::all_gather, 16 * kMiB), "ring, Simple");
    EXPECT_EQ(chosen("dgx-b200", 8, Op::all_reduce, 64 * kMiB), "nvls");
    EXPECT_EQ(chosen("ascend-910b-cluster", 8, Op::all_reduce, 64 * kMiB), "ring, Simple");
}

// Where NCCL changes too late or too early, a larger call may be a little faster than a smaller.
TEST(Nccl, more_bytes_take_longer) {
    for (const char* name : {"dgx-h100", "gb200-nvl72"}) {
        for (const int gpus : {2, 4, 8}) {
            const Machine machine = machine_of(name, gpus);
            for (const Op op :
                 {Op::all_to_all, Op::all_gather, Op::reduce_scatter, Op::all_reduce}) {
                double before = 0;
                for (Bytes bytes = 256; bytes <= 256 * kMiB; bytes *= 2) {
                    const double time = us(machine, op, bytes);
                    EXPECT_GE(time, 0.97 * before) << name << " " << gpus << " " << bytes;
                    before = time;
                }
            }
        }
    }
}

TEST(Nccl, sums_of_bytes_take_longer_than_sums_of_halves) {
    const Machine machine = machine_of("dgx-h100", 2);
    EXPECT_GT(us(machine, Op::reduce_scatter, 64 * kMiB, Element::int8),
              1.02 * us(machine, Op::reduce_scatter, 64 * kMiB));
    EXPECT_EQ(us(machine, Op::all_gather, 64 * kMiB, Element::int8),
              us(machine, Op::all_gather, 64 * kMiB));
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Medians of the rows above 10 µs, in percent, as they stand; a point more is a step back.
TEST(Nccl, published_times_are_met) {
#ifdef MOEHUB_SANITIZED
    GTEST_SKIP() << "collectives of 1 GB take minutes under a sanitizer";
#endif
    const Validation result = predicted_whole("kernels/collectives.csv", 791, 20);
    std::map<std::string, std::vector<double>> errors;
    for (const ValidationRow& row : result.rows)
        if (row.measured > 10) errors[row.shape[0].second].push_back(std::abs(row.error) * 100);
    const std::map<std::string, double> medians = {
        {"dgx-h100", 4.1}, {"dgx-h200", 4.5}, {"dgx-b200", 3.6}, {"gb200-nvl72", 1.8}};
    for (const auto& [machine, median] : medians) {
        EXPECT_LT(quantile(errors[machine], 0.5), median + 1) << machine;
        EXPECT_LT(quantile(errors[machine], 0.9), 20) << machine;
    }
}

}  // namespace
}  // namespace moehub::nccl_test
