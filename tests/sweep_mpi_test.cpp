// Does a sweep under mpirun give the table of one process, with a rank killed as well?
#include "cli_fixture.hpp"

namespace sweep_mpi_test {
namespace {

#ifndef MOEHUB_SANITIZED  // Open MPI's own memory is not ours to check

constexpr const char* kFew = "sweep --sweep tokens=64,128,256 --seeds 4 --threads 1";
constexpr const char* kMany = "sweep --sweep tokens=2048,4096 --seeds 12 --threads 1";

class SweepMpi : public cli_test::Cli {
  protected:
    void SetUp() override {
        const auto module = cli_test::fs::path(MOEHUB_PROGRAM).parent_path() / "libmoehub_mpi.so";
        if (!cli_test::fs::exists(module) || shell("command -v mpirun").code != 0)
            GTEST_SKIP() << "built without MPI, or no mpirun";
    }
    std::string mpirun(const std::string& options, const std::string& arguments) const {
        return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
               "-n 3 " +
               options + " '" MOEHUB_PROGRAM "' " + arguments;
    }
    std::string to(const std::string& name) const {
        return " -o '" + file(name + ".sqlite") + "' --csv '" + file(name + ".csv") + "'";
    }
    std::string csv(const std::string& name) const {
        return cli_test::text_of(file(name + ".csv"));
    }
    /// Kills one rank of the mpirun whose process is $pid, as soon as results are there.
    std::string kill_rank(int rank, const std::string& name) const {
        return "for i in $(seq 200); do [ -s '" + file(name + ".sqlite-wal") +
               "' ] && break; sleep 0.05; done; for child in $(cat /proc/$pid/task/*/children); do "
               "grep -qz OMPI_COMM_WORLD_RANK=" +
               std::to_string(rank) + " /proc/$child/environ && kill -9 $child; done; ";
    }
};

TEST_F(SweepMpi, three_ranks_give_the_table_of_one) {
    ASSERT_EQ(moehub(kFew + to("one")).code, 0);
    const auto three = shell(mpirun("", kFew + to("three")));
    EXPECT_EQ(three.code, 0) << three.err;
    EXPECT_EQ(csv("three"), csv("one"));
}

TEST_F(SweepMpi, a_rank_whose_files_differ_simulates_nothing) {
    for (const char* folder : {"a", "b"}) cli_test::fs::create_directory(file(folder));
    saved("a/m.toml", "extends = \"dgx-h800\"\n");
    saved("b/m.toml", "extends = \"dgx-h800\"\nlink.latency = \"5 us\"\n");
    const std::string line = std::string(kFew) + " --machine m.toml";
    ASSERT_EQ(shell("cd '" + file("a") + "' && moehub " + line + to("one")).code, 0);
    const std::string rank = "'" MOEHUB_PROGRAM "' " + line + to("two");
    const auto outcome = shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 1 "
        "-wdir '" +
        file("a") + "' " + rank + " : -n 1 -wdir '" + file("b") + "' " + rank);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(csv("two"), csv("one"));
}

TEST_F(SweepMpi, bad_input_is_said_once) {
    const auto outcome =
        shell(mpirun("", "sweep --sweep tokenz=1,2 -o '" + file("n.sqlite") + "'"));
    EXPECT_EQ(outcome.code, 2);
    const std::string line = "moehub: --sweep: unknown key \"tokenz\"; did you mean \"tokens\"?";
    const auto first = outcome.err.find(line);
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(line, first + 1), std::string::npos) << outcome.err;
}

TEST_F(SweepMpi, with_recovery_the_others_do_a_killed_ranks_points) {
    ASSERT_EQ(moehub(kMany + to("one")).code, 0);
    const auto outcome = shell(mpirun("--enable-recovery", kMany + to("r")) + " & pid=$!; " +
                               kill_rank(2, "r") + "wait $pid");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("moehub: lost on the way, others did their points: rank 2"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(csv("r"), csv("one"));
}

TEST_F(SweepMpi, without_it_the_same_command_goes_on) {
    ASSERT_EQ(moehub(kMany + to("one")).code, 0);
    const auto killed =
        shell(mpirun("", kMany + to("k")) + " & pid=$!; " + kill_rank(1, "k") + "wait $pid");
    EXPECT_NE(killed.code, 0);
    const auto again = shell(mpirun("", kMany + to("k")));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(csv("k"), csv("one"));
}

#endif

}  // namespace
}  // namespace sweep_mpi_test
