// Are the bytes the same on every CPU? glibc picks its exp, log, pow by the CPU at run time; its
// tunables make it pick as on a CPU without FMA.
#include "cli_fixture.hpp"
#include "model/reference.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/presets.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace moehub::portable_test {
namespace {

constexpr std::string_view kOldCpu =
    "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable";

/// A hash of all bits of the numbers added (FNV-1a).
class Digest {
  public:
    void add(double value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        sum_ = (sum_ ^ bits) * 0x100000001b3u;
    }
    std::uint64_t sum() const { return sum_; }

  private:
    std::uint64_t sum_ = 0xcbf29ce484222325u;
};

std::uint64_t of_libm() {
    Digest digest;
    for (int i = 1; i < 100'000; ++i) digest.add(std::exp(-1e-4 * i));
    return digest.sum();
}

std::uint64_t of_reference_layer() {
    const Model model = load_model("mixtral-8x7b");
    const Routing routing = make_routing(parse_routing("lognormal:1"), model, 2000);
    const ReferenceLayer layer(model, 8, 8);
    Digest digest;
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const double value : layer.output(routing, token)) digest.add(value);
    return digest.sum();
}

std::uint64_t of_kernels() {
    const Gpu gpu = load_gpu("h200-sxm");
    Digest digest;
    for (std::int64_t rows = 1; rows < 20'000; ++rows)
        digest.add(gather_traffic(gpu, {4 * rows, rows, 4096}).read);
    for (std::int64_t groups = 2; groups < 200; ++groups)
        for (const auto count : rows_per_group({groups, 40 * groups, 100, 0.7}))
            digest.add(static_cast<double>(count));
    return digest.sum();
}

/// No test by itself: the one below runs it under both kinds of CPU and reads what it prints.
TEST(PortableDigests, DISABLED_printed) {
    fmt::print("libm {:x}\nlayer {:x}\nkernels {:x}\n", of_libm(), of_reference_layer(),
               of_kernels());
}

using Portable = cli_test::Cli;

std::string digest_named(const std::string& name, const std::string& printed) {
    const auto start = printed.find("\n" + name + " ");
    return start == std::string::npos
               ? "none"
               : printed.substr(start + 1, printed.find('\n', start + 1) - start - 1);
}

TEST_F(Portable, numbers_are_the_same_bits_with_and_without_fma) {
    const std::string self = cli_test::fs::read_symlink("/proc/self/exe").string();
    // All of it, though this process may run a share of the tests.
    const std::string line = fmt::format(
        "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX "
        "'{}' --gtest_also_run_disabled_tests --gtest_filter=PortableDigests.DISABLED_printed",
        self);
    const auto here = shell(line);
    const auto old = shell(fmt::format("env {} {}", kOldCpu, line));
    ASSERT_EQ(here.code, 0) << here.err;
    ASSERT_EQ(old.code, 0) << old.err;
    for (const std::string name : {"layer", "kernels"}) {
        EXPECT_NE(digest_named(name, here.out), "none");
        EXPECT_EQ(digest_named(name, here.out), digest_named(name, old.out));
    }
    if (digest_named("libm", here.out) == digest_named("libm", old.out))
        GTEST_SKIP() << "this C library has one exp for all CPUs: nothing was compared";
}

TEST_F(Portable, commands_print_the_same_bytes_with_and_without_fma) {
    const std::string profile = MOEHUB_SOURCE_DIR "/tests/corpus/profile_npy/tokens.npy";
    std::vector<std::string> commands = {
        "compare --gpus 8 --tokens 512 --routing lognormal:0.5 --tp 2 --verify --json",
        "model --gpus 4 --tokens 512 --training --json",
        "reproduce moe-hub --quick --figure ablation --json",
        "validate " MOEHUB_SOURCE_DIR "/validation/h200/ops_golden.csv --json",
        "profile " + profile + " --json",
    };
    for (const std::string method : {"joint", "exact", "moetuner", "metis", "eplb"})
        commands.push_back(
            fmt::format("place --profile {0} --gpus 2 --time-limit 1 --dense-layers 0 --method {1} "
                        "-o {2} > /dev/null && cat {2}",
                        profile, method, file(method + ".json")));
    for (const std::string& command : commands) {
        const auto here = moehub(command);
        const auto old = shell(fmt::format("env {} '{}' {}", kOldCpu, MOEHUB_PROGRAM, command));
        EXPECT_EQ(here.code, 0) << command << here.err;
        EXPECT_EQ(here.out, old.out) << command;
    }
}

}  // namespace
}  // namespace moehub::portable_test
