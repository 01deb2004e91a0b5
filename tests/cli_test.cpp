// Runs the program itself: exit codes, and the exact line for every kind of bad input.
#include "cli_fixture.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cli_test {
namespace {

namespace fs = std::filesystem;
using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;

TEST_F(Cli, list_prints_names_and_titles_as_json) {
    const Outcome outcome = shell("moehub list machines --json");
    EXPECT_EQ(outcome.code, 0);
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.size(), 2u);  // and the schema
    EXPECT_EQ(json["machines"][0]["name"], "ascend-910b-cluster");
}

TEST_F(Cli, introduces_itself_without_arguments) {
    const auto outcome = moehub("");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const auto* command :
         {"moehub compare", "moehub run", "moehub model", "moehub lines", "moehub list",
          "moehub show", "moehub collective", "moehub validate"})
        EXPECT_NE(outcome.out.find(command), std::string::npos) << command;
}

TEST_F(Cli, the_version_is_that_of_the_build) {
    const auto outcome = moehub("--version");
    EXPECT_EQ(outcome.code, 0);
    const auto build = text_of(MOEHUB_SOURCE_DIR "/CMakeLists.txt");
    const auto version = outcome.out.substr(7, outcome.out.size() - 8);
    EXPECT_NE(build.find("project(moehub VERSION " + version + " "), std::string::npos) << version;
}

TEST_F(Cli, every_command_helps_with_an_example) {
    for (const auto* command : {"compare", "run", "model", "area", "lines", "list", "show",
                                "collective", "validate", "profile", "place"}) {
        const auto outcome = moehub(std::string(command) + " --help");
        EXPECT_EQ(outcome.code, 0);
        EXPECT_NE(outcome.out.find("Example:\n  moehub " + std::string(command)), std::string::npos)
            << outcome.out;
    }
}

TEST_F(Cli, a_misspelt_name_is_answered_with_the_nearest) {
    expect_refused(
        "vaildate x.csv",
        "unknown command \"vaildate\", allowed: compare, run, gain, model, sweep, merge, plan, "
        "area, lines, "
        "list, show, "
        "collective, predict, validate, reproduce, profile, place, completion, man; did you mean "
        "\"validate\"?");
    expect_refused("collective --grian packet",
                   "collective: unknown option \"--grian\"; did you mean \"--grain\"?");
    expect_refused("--zzzzzzzz", "unknown option \"--zzzzzzzz\"; see moehub --help");
    expect_refused("collective --op all_reduc",
                   "--op: found \"all_reduc\", allowed: all_to_all, all_gather, reduce_scatter, "
                   "all_reduce; did you mean \"all_reduce\"?");
    expect_refused("collective --algorithm tree",
                   "--algorithm: found \"tree\", allowed: direct, ring, nvls, auto, one-shot, "
                   "nvls-tree, collnet");
    expect_refused("collective --grain flit", "--grain: found \"flit\", allowed: packet, row");
}

TEST_F(Cli, a_malformed_command_line_is_refused) {
    expect_refused("validate", "validate: FILE is required");
    expect_refused("collective --bytes", "collective: --bytes: found nothing, allowed: a value");
    expect_refused("collective --gpus 2 --gpus 4", "collective: --gpus: stands more than once");
    expect_refused("collective dgx-h100",
                   "collective: unexpected argument \"dgx-h100\"; see moehub collective --help");
}

TEST_F(Cli, a_file_is_written_beside_a_table_on_standard_output) {
    const auto outcome =
        moehub("compare --gpus 2 --tokens 64 --systems ideal --csv - -o '" + file("text") + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("system,")) << outcome.out;
    EXPECT_NE(text_of(file("text")).find("time µs"), std::string::npos);
}

TEST_F(Cli, what_would_be_refused_is_not_shown_as_usual) {
    for (const char* command : {"compare", "model", "plan", "reproduce", "sweep", "validate"})
        EXPECT_EQ(moehub(std::string(command) + " --help").out.find("N=0"), std::string::npos)
            << command;
}

TEST_F(Cli, a_file_without_a_name_is_refused) {
    expect_refused("validate ''", "FILE: found \"\", allowed: a file");
    expect_refused("plan --rank ''", "--rank: found \"\", allowed: a file");
    expect_refused("compare -o ''", "--output: found \"\", allowed: a file");
}

TEST_F(Cli, a_wrong_size_is_refused) {
    for (const std::string bad : {"0", "-5", "8X", "1.5", "nan", "1e30", "9000000000000000000", ""})
        expect_refused("collective --bytes '" + bad + "'",
                       "--bytes: found \"" + bad +
                           "\", allowed: a size from 1 B to 1 TiB such as 8589934592, 8G, "
                           "64MiB or \"64 MB\"");
    for (const std::string bad : {"1", "0", "-2", "two", "2.5", "99999999999"})
        expect_refused("collective --gpus '" + bad + "'",
                       "--gpus: found \"" + bad + "\", allowed: a whole number, 2 or more");
}

TEST_F(Cli, what_a_machine_cannot_run_is_refused) {
    expect_refused_about("collective --machine dgx-h10 --bytes 1M", "dgx-h10");
    expect_refused_about("collective --machine dgx-h100 --gpus 1000 --bytes 1M", "1000");
    expect_refused_about("collective --op all_to_all --algorithm ring --bytes 1M", "all_to_all");
    expect_refused_about("collective --set nonsense --bytes 1M", "nonsense");
    expect_refused_about(
        "collective --op all_reduce --algorithm nvls --set in_switch=false --bytes 1M", "nvls");
}

TEST_F(Cli, sizes_are_read_as_people_write_them) {
    const auto bytes_of = [&](const std::string& size) {
        const auto outcome = moehub("collective --gpus 2 --json --bytes '" + size + "'");
        return outcome.code == 0 ? nlohmann::json::parse(outcome.out)["bytes"].get<long>() : -1;
    };
    EXPECT_EQ(bytes_of("1048576"), 1048576);
    EXPECT_EQ(bytes_of("1M"), 1048576);
    EXPECT_EQ(bytes_of("64k"), 65536);
    EXPECT_EQ(bytes_of("2MiB"), 2097152);
    EXPECT_EQ(bytes_of("2 MB"), 2000000);
}

TEST_F(Cli, a_collective_is_the_same_every_time_but_for_the_wall) {
    const std::string line = "collective --op all_gather --gpus 4 --bytes 1M --json";
    auto one = nlohmann::json::parse(moehub(line).out);
    auto other = nlohmann::json::parse(moehub(line).out);
    for (const auto* key : {"time_us", "bus_bandwidth_bytes_per_second", "traffic_bytes", "packets",
                            "events", "machine", "op", "algorithm", "gpus", "bytes", "grain"})
        EXPECT_TRUE(one.contains(key)) << key;
    EXPECT_EQ(one.erase("wall_seconds"), 1u);
    EXPECT_EQ(other.erase("wall_seconds"), 1u);
    EXPECT_EQ(one, other);
    EXPECT_EQ(one["algorithm"], "ring");
    const double seconds = one["time_us"].get<double>() * 1e-6;
    EXPECT_NEAR(one["bus_bandwidth_bytes_per_second"].get<double>(), 1048576 / seconds * 3 / 4, 1);
}

TEST_F(Cli, validate_shows_summary_and_worst_rows) {
    std::string csv = "op,groups,rows,max_rows,k,n,skew,us\n";
    for (int i = 1; i <= 12; ++i)
        csv += "gemm,1,512,512,4096,1024,," + std::to_string(10 * i) + "\n";
    const auto path = saved("ops.csv", csv + "fft,1,8,8,8,8,,1\n");
    const auto lines = [](const Outcome& outcome) {
        return std::count(outcome.out.begin(), outcome.out.end(), '\n');
    };
    const auto worst = moehub("validate " + path);
    EXPECT_EQ(worst.code, 0) << worst.err;
    EXPECT_EQ(worst.err, "");
    EXPECT_NE(worst.out.find("The 10 worst rows"), std::string::npos);
    EXPECT_NE(worst.out.find("no model of this operator, or not of this size"), std::string::npos);
    EXPECT_EQ(worst.out.find('\x1b'), std::string::npos) << "no colour into a pipe";
    EXPECT_EQ(lines(moehub("validate --rows " + path)), lines(worst) + 2);
    const auto json = nlohmann::json::parse(moehub("validate --json " + path).out);
    EXPECT_EQ(json["rows"].size(), 12u);
}

TEST_F(Cli, a_bad_file_is_refused) {
    expect_refused("validate /no/such.csv",
                   "/no/such.csv: cannot be read: No such file or directory");
    const auto empty = saved("empty.csv", "");
    expect_refused("validate " + empty,
                   empty + ":1: the file is empty, allowed: a header row and rows of data");
    const auto row =
        saved("row.csv", "op,groups,rows,max_rows,k,n,skew,us\ngemm,1,8,8,8,8,,fast\n");
    expect_refused("validate " + row, row + ":2: us: found \"fast\", allowed: a finite number");
    expect_refused_about(
        "validate --gpu h2000 " +
            saved("ok.csv", "us,op,groups,rows,max_rows,k,n,skew\n9,gemm,1,8,8,8,8,\n"),
        "h2000");
}

TEST_F(Cli, an_output_file_is_replaced_whole_or_not_at_all) {
    const auto path = saved("out.json", "old");
    EXPECT_EQ(moehub("collective --gpus 2 --bytes 0 -o " + path).code, 2);
    EXPECT_EQ(text_of(path), "old");
    const auto outcome = moehub("collective --gpus 2 --bytes 64k --json -o " + path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(nlohmann::json::parse(text_of(path))["bytes"], 65536);
    const auto folder = fs::path(path).parent_path();
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2) << "only stderr and out.json";
    expect_refused("collective --gpus 2 --bytes 64k -o /no/such/out",
                   "/no/such/out: cannot be written: No such file or directory");
    expect_refused("collective --gpus 2 --bytes 64k -o " + folder.string(),
                   folder.string() + ": cannot be written: Is a directory");
}

TEST_F(Cli, a_linked_output_file_stays_a_link) {
    const auto path = saved("real.txt", "old");
    fs::create_symlink(path, file("link.txt"));
    EXPECT_EQ(moehub("collective --gpus 2 --bytes 64k -o " + file("link.txt")).code, 0);
    EXPECT_TRUE(fs::is_symlink(file("link.txt")));
    EXPECT_NE(text_of(path), "old");
}

TEST_F(Cli, a_reader_that_leaves_ends_it_quietly) {
    const auto outcome = shell("{ moehub list; echo $? >&2; } | true");
    EXPECT_TRUE(outcome.err == "0\n") << outcome.err;
}

TEST_F(Cli, a_full_disk_is_reported) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
    const auto outcome = shell("moehub >/dev/full");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "moehub: standard output: cannot be written: No space left on device\n");
}

/// Through the program itself, where all kinds are linked together.
TEST_F(Cli, a_bad_row_of_every_kind_of_measurements_is_refused_in_one_line) {
    const std::pair<std::string, std::string> kinds[] = {
        {"op,groups,rows,max_rows,k,n,skew,us\n", "gemm,1,-5,,16,16,,1\n"},
        {"machine,gpus,op,algorithm,bytes,us,busbw_GBps,source\n", "x,0,a,b,1,1,,s\n"},
        {"op,dtype,batch,heads,kv_heads,seq,head_dim,groups,rows,k,n,us\n",
         "rms_norm,bf16,,,,,,,0,4096,,1\n"},
        {"model,tokens,rows,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,combine_us"
         "\n",
         "mixtral-8x7b,128,256,1,1,1,nan,1,1,1\n"},
        {"system,machine,gpus,tokens_per_gpu,hidden,experts,top_k,routing,"
         "dispatch_bytes_per_element,combine_bytes_per_element,phase,us\n",
         "one-sided,gb200-nvl72,8,128,2000000000,256,8,perfect,2,2,dispatch,31.7\n"},
    };
    for (const auto& [header, row] : kinds) {
        const auto file = saved("bad.csv", header + row);
        expect_refused_about("validate " + file, "bad.csv:2:");
    }
}

}  // namespace
}  // namespace cli_test
