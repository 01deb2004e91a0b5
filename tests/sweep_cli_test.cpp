// Does `moehub sweep` keep what it has, go on where it was stopped, and refuse what is not its own?
#include "answers/question.hpp"
#include "base/sqlite.hpp"
#include "cli_fixture.hpp"
#include "recorded_files.hpp"

#include <moehub/error.hpp>
#include <moehub/expert_layout.hpp>

#include <chrono>
#include <map>
#include <random>

#include <nlohmann/json.hpp>

namespace sweep_cli_test {
namespace {

#ifdef MOEHUB_SANITIZED
constexpr const char* kPoints = " --sweep tokens=64,128 --systems ideal,moe-hub --seeds 2";
constexpr int kKills = 2;
#else
constexpr const char* kPoints = " --sweep tokens=64..256*2 --systems ideal,moe-hub --seeds 12";
constexpr int kKills = 10;
#endif

class SweepCli : public cli_test::Cli {
  protected:
    std::string sweep(const std::string& name) const {
        return "sweep" + std::string(kPoints) + " -o '" + file(name + ".sqlite") + "' --csv '" +
               file(name + ".csv") + "'";
    }
    std::string csv(const std::string& name) const {
        return cli_test::text_of(file(name + ".csv"));
    }
    /// A shell command that ends when a first point is being saved, or after a minute.
    std::string until_saved(const std::string& name) const {
        return "for i in $(seq 6000); do [ -s '" + file(name + ".sqlite-wal") +
               "' ] && break; sleep 0.01; done";
    }
    std::int64_t rows(const std::string& name) const {
        moehub::Database database(file(name), moehub::DatabaseMode::write);
        return database.whole("SELECT count(*) FROM results");
    }
};

TEST_F(SweepCli, any_number_of_threads_gives_the_same_table) {
    ASSERT_EQ(moehub(sweep("one") + " --threads 1").code, 0);
    ASSERT_EQ(moehub(sweep("four") + " --threads 4").code, 0);
    EXPECT_EQ(csv("one"), csv("four"));
    EXPECT_GT(csv("one").size(), 1000u);
    EXPECT_FALSE(cli_test::fs::exists(file("one.sqlite-wal")));
    EXPECT_FALSE(cli_test::fs::exists(file("one.sqlite-lock")));
}

TEST_F(SweepCli, a_layer_in_a_sweep_is_the_same_layer_as_by_itself) {
    const auto table = moehub(
        "sweep --sweep link.latency=300ns --systems moe-hub --seed 3 --tokens "
        "128 --csv - -o '" +
        file("a.sqlite") + "'");
    const auto alone =
        moehub("run --system moe-hub --set link.latency=300ns --seed 3 --tokens 128 --json");
    const auto at = alone.out.find("\"time_us\": ");
    ASSERT_NE(at, std::string::npos);
    const double time = std::stod(alone.out.substr(at + 11));
    const auto line = table.out.substr(table.out.find('\n') + 1);
    EXPECT_TRUE(table.out.starts_with("link.latency_us,system,seed,")) << "value and unit apart";
    const std::string_view settings = "0.3,moe-hub,3,,1.0,,";
    ASSERT_TRUE(line.starts_with(settings)) << line;
    EXPECT_NEAR(std::stod(line.substr(settings.size())), time, 1e-9 * time);
}

TEST_F(SweepCli, whole_numbers_are_whole_in_json) {
    const auto outcome =
        moehub("sweep --sweep tokens=64 --systems moe-hub --json -o '" + file("a.sqlite") + "'");
    for (const char* key : {"packets", "rows", "up_bytes"}) {
        const auto at = outcome.out.find("\"" + std::string(key) + "\": ");
        ASSERT_NE(at, std::string::npos) << outcome.out;
        const std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
        EXPECT_EQ(line.find('.'), std::string::npos) << line;
    }
}

TEST_F(SweepCli, killed_ten_times_it_ends_with_the_same_table) {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    ASSERT_EQ(moehub(sweep("whole") + " --threads 1").code, 0);
    const double length = std::chrono::duration<double>(Clock::now() - began).count();
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 draw(seed);
    const std::int64_t all = rows("whole.sqlite");
    bool hit_at_work = false;
    // Points that are saved when it is killed at that moment.
    const auto kill_at = [&](const std::string& moment) -> std::int64_t {
        shell("'" MOEHUB_PROGRAM "' " + sweep("killed") + " --threads 1 & pid=$!; " + moment +
              "; kill -9 $pid; wait $pid");
        if (!cli_test::fs::exists(file("killed.sqlite"))) return 0;
        try {
            const std::int64_t saved = rows("killed.sqlite");
            hit_at_work = hit_at_work || (saved > 0 && saved < all);
            return saved;
        } catch (const moehub::InputError&) {
            return 0;  // killed before there was a table
        }
    };
    std::int64_t before = 0;
    for (int i = 0; i < kKills; ++i) {
        // The first as soon as something is saved, the others at any moment of a whole run.
        const std::int64_t saved = kill_at(
            i == 0 ? until_saved("killed")
                   : "sleep " + std::to_string(std::uniform_real_distribution(0.0, length)(draw)));
        EXPECT_GE(saved, before);
        before = saved;
    }
    // Where chance would have it that none hit a sweep at work: from the beginning, later and
    // later.
    for (int i = 1; i < 40 && !hit_at_work; ++i) {
        for (const char* end : {"", "-wal", "-shm", "-lock"})
            cli_test::fs::remove(file("killed.sqlite" + std::string(end)));
        kill_at("sleep " + std::to_string(length * i / 40));
    }
    EXPECT_TRUE(hit_at_work);
    const auto last = moehub(sweep("killed"));
    EXPECT_EQ(last.code, 0) << last.err;
    EXPECT_EQ(csv("killed"), csv("whole"));
}

TEST_F(SweepCli, a_finished_sweep_runs_nothing_again) {
    ASSERT_EQ(moehub(sweep("a")).code, 0);
    {
        // A result that no simulation gives shows whether it was left alone.
        moehub::Database database(file("a.sqlite"), moehub::DatabaseMode::write);
        database.run("UPDATE results SET time_us = 123456 WHERE point = 1");
    }
    ASSERT_EQ(moehub(sweep("a")).code, 0);
    EXPECT_NE(csv("a").find(",123456.0,"), std::string::npos);
}

TEST_F(SweepCli, a_finished_sweep_on_a_disk_that_cannot_be_written_is_reported) {
    const std::string line = "sweep" + std::string(kPoints) + " -o '" + file("a.sqlite") + "'";
    const auto first = moehub(line);
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string folder = file(".");
    // A mount of one's own takes rights that not every user has.
    const std::string read_only =
        "unshare -m sh -c 'mount --bind \"$0\" \"$0\" && mount -o "
        "remount,ro,bind \"$0\" && exec \"$@\"' '" +
        folder + "' ";
    if (shell(read_only + "true").code != 0) GTEST_SKIP() << "no mount of one's own";
    EXPECT_NE(shell(read_only + "touch '" + file("b") + "'").code, 0);
    const auto again = shell(read_only + "'" MOEHUB_PROGRAM "' " + line);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out, first.out);
    const auto other = shell(read_only + "'" MOEHUB_PROGRAM "' " + sweep("b"));
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("cannot be written"), std::string::npos) << other.err;
}

TEST_F(SweepCli, a_kind_that_there_is_not_is_answered_with_its_line) {
    const std::string study =
        saved("s.toml", "systems = [\"a\"]\nkind = \"layr\"\n[grid]\na = [1]\n");
    expect_refused_about("sweep '" + study + "'",
                         "s.toml:2: kind: found \"layr\", allowed: layer, tp,");
    expect_refused_about("sweep '" + study + "'", "did you mean \"layer\"?");
}

TEST_F(SweepCli, a_key_of_one_system_runs_that_system_beside_the_usual_ones) {
    const auto outcome = moehub("sweep --sweep system.comet.chunks=1,2 --dry-run");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* line : {"system.comet.chunks=1, comet\n", "system.comet.chunks=2, comet\n",
                             "system.comet.chunks=2, megatron-te\n"})
        EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
}

TEST_F(SweepCli, models_are_swept_with_attention_that_gpus_share) {
    const auto outcome = moehub(
        "sweep --kind model --sweep attention_tp=1,2 --gpus 4 --tokens 256 --systems moe-hub "
        "--csv - -o '" +
        file("a.sqlite") + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\n1,moe-hub,"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\n2,moe-hub,"), std::string::npos) << outcome.out;
}

TEST_F(SweepCli, shards_merged_are_the_whole) {
    ASSERT_EQ(moehub(sweep("whole")).code, 0);
    std::string parts;
    for (const char* shard : {"1/3", "2/3", "3/3"}) {
        const std::string name = std::string("part") + shard[0];
        ASSERT_EQ(moehub(sweep(name) + " --shard " + shard).code, 0);
        parts += " '" + file(name + ".sqlite") + "'";
    }
    const auto some = moehub("merge '" + file("some.sqlite") + "' '" + file("part1.sqlite") + "'");
    EXPECT_EQ(some.code, 2) << "for scripts";
    EXPECT_NE(some.err.find(" points are missing; merge all parts"), std::string::npos) << some.err;
    EXPECT_TRUE(cli_test::fs::exists(file("some.sqlite")));
    ASSERT_EQ(
        moehub("merge '" + file("all.sqlite") + "'" + parts + " --csv '" + file("all.csv") + "'")
            .code,
        0);
    EXPECT_EQ(csv("all"), csv("whole"));
    // What was merged can be gone on with: nothing is left to do.
    ASSERT_EQ(moehub(sweep("all")).code, 0);
    EXPECT_EQ(csv("all"), csv("whole"));
    expect_refused_about(sweep("part1") + " --shard 2/3", "holds shard 1/3, asked for is 2/3");
}

TEST_F(SweepCli, a_wrong_key_or_value_is_said_before_anything_runs) {
    const std::string study =
        saved("s.toml", "[grid]\ntokens = [64, 128]\nlink.latensy = [\"1 us\"]\n");
    const std::string database = " -o '" + file("none.sqlite") + "'";
    expect_refused("sweep '" + study + "'" + database,
                   study + ":3: unknown key \"link.latensy\"; did you mean \"link.latency\"?");
    const std::string value = saved("v.toml", "[grid]\nlink.latency = [\"1 us\", \"1 kg\"]\n");
    expect_refused("sweep '" + value + "'" + database,
                   value +
                       ":2: link.latency: expected a time such as \"250 ns\" (ps, ns, us, ms, "
                       "s), found \"1 kg\"");
    expect_refused("sweep --sweep tokens=64,many" + database,
                   "--sweep: tokens: found \"many\", allowed: a whole number from 1 to 16777216");
    expect_refused("sweep --sweep system.moe-hub.packt=1" + database,
                   "--sweep: unknown key \"system.moe-hub.packt\"; did you mean "
                   "\"system.moe-hub.packet\"?");
    expect_refused("sweep --sweep model.top_k=2,99" + database,
                   "--sweep: model.top_k: found 99, allowed at most experts = 8 (preset "
                   "models/mixtral-8x7b:7)");
    expect_refused_about("sweep --sweep tokens=64 --systems moe-hub,moehub" + database,
                         "did you mean \"moe-hub\"?");
    expect_refused("sweep --sweep tokens=64 --shard 0/2" + database,
                   "--shard: found \"0/2\", allowed: I/N with I from 1 to N, as in 2/4");
    expect_refused_about("sweep --sweep tokens=64 --training" + database,
                         "unknown key \"training\"");
    expect_refused_about("sweep --sweep tokens_per_gpu=16,32 --tokens 64" + database,
                         "--tokens-per-gpu excludes --tokens");
    expect_refused_about("sweep --sweep page_pool=1MiB,2MiB" + database,
                         "--page-pool requires --page-rows");
    expect_refused_about("sweep" + database, "sweep: found neither a study nor --sweep");
    EXPECT_FALSE(cli_test::fs::exists(file("none.sqlite")));
}

TEST_F(SweepCli, what_a_system_cannot_run_is_listed_and_the_rest_runs) {
    const std::string database = " -o '" + file("a.sqlite") + "'";
    const auto outcome =
        moehub("sweep --sweep region_rows=8,4096 --tokens 128 --systems moe-hub" + database);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("refused"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("Refused, 1 point, first region_rows=8, moe-hub: "),
              std::string::npos)
        << outcome.out;
    EXPECT_EQ(rows("a.sqlite"), 2);
}

TEST_F(SweepCli, what_is_not_its_database_is_left_alone) {
    const std::string text =
        saved("text.sqlite", "this is no database, but it is long enough for one");
    expect_refused("sweep --sweep tokens=64 -o '" + text + "'", text + ": is not a database");
    EXPECT_EQ(cli_test::text_of(text), "this is no database, but it is long enough for one");
    const std::string left = "; it is left as it is, -o names another file";
    {
        moehub::Database foreign(file("f.sqlite"), moehub::DatabaseMode::create);
        foreign.run("CREATE TABLE recipes (name TEXT)");
    }
    expect_refused("sweep --sweep tokens=64 -o '" + file("f.sqlite") + "'",
                   file("f.sqlite") + ": is a database, but not of a sweep" + left);
    ASSERT_EQ(moehub("sweep --sweep tokens=64 --systems ideal -o '" + file("a.sqlite") + "'").code,
              0);
    expect_refused_about("sweep --sweep tokens=65 --systems ideal -o '" + file("a.sqlite") + "'",
                         "a.sqlite: holds another study's results (sweep-");
    const auto changed = [&](const std::string& sql) {
        moehub::Database database(file("a.sqlite"), moehub::DatabaseMode::write);
        database.run(sql);
    };
    const std::string again =
        "sweep --sweep tokens=64 --systems ideal -o '" + file("a.sqlite") + "'";
    changed("UPDATE study SET value = 'moehub 0.0.1' WHERE key = 'program'");
    expect_refused_about(again, "holds results of moehub 0.0.1, this is moehub ");
    changed("PRAGMA user_version = 99");
    expect_refused(again,
                   file("a.sqlite") + ": is of schema version 99, this program's is 2" + left);
}

TEST_F(SweepCli, outputs_do_not_replace_one_another) {
    const std::string few = "sweep --sweep tokens=64 --systems ideal";
    const std::string in_folder = "cd '" + file(".") + "' && moehub ";
    const auto expect_apart = [&](const std::string& arguments, const std::string& line) {
        const auto outcome = shell(in_folder + arguments);
        EXPECT_EQ(outcome.err, "moehub: " + line + "\n") << arguments;
        EXPECT_EQ(outcome.code, 2) << arguments;
    };
    const std::string apart = ": found the file of another output, allowed: its own";
    ASSERT_EQ(shell(in_folder + few + " -o x.sqlite").code, 0);
    expect_apart(few + " -o x.sqlite --csv ./x.sqlite", "--csv" + apart);
    expect_apart(few + " -o x.sqlite --csv y --html y", "--html" + apart);
    expect_apart("merge y.sqlite x.sqlite --csv y.sqlite", "--csv" + apart);
    expect_apart("merge y.sqlite x.sqlite --csv ./x.sqlite",
                 "--csv: found ./x.sqlite, which is read, allowed: another file");
    expect_apart("run --tokens 64 --trace z -o z", "--trace" + apart);
    expect_apart("compare --tokens 64 --trace z --html ./z", "--trace" + apart);
    expect_apart("run --tokens 64 --trace -", "--trace: found \"-\", allowed: a file");
    EXPECT_EQ(rows("x.sqlite"), 1);
    // A name of SQLite's own is a file's name like any other.
    ASSERT_EQ(shell(in_folder + few + " -o file:u.sqlite").code, 0);
    EXPECT_TRUE(cli_test::fs::exists(file("file:u.sqlite")));
}

TEST_F(SweepCli, a_machine_that_was_changed_meanwhile_is_noticed) {
    const std::string machine = saved("m.toml", "extends = \"dgx-h800\"\n");
    const std::string line = "sweep --sweep tokens=64 --systems ideal --machine '" + machine +
                             "' -o '" + file("a.sqlite") + "'";
    ASSERT_EQ(moehub(line).code, 0);
    saved("m.toml", "extends = \"dgx-h800\"\nlink.latency = \"5 us\"\n");
    expect_refused_about(line, "was changed");
}

#ifndef MOEHUB_SANITIZED  // so few points do not fill it
TEST_F(SweepCli, a_full_disk_loses_nothing) {
    ASSERT_EQ(moehub(sweep("whole")).code, 0);
    const auto full = shell("ulimit -f 100; '" MOEHUB_PROGRAM "' " + sweep("full"));
    EXPECT_EQ(full.code, 2);
    EXPECT_NE(full.err.find("full.sqlite: cannot be written: "), std::string::npos) << full.err;
    EXPECT_NE(full.err.find("run the same command again to go on\n"), std::string::npos)
        << full.err;
    EXPECT_EQ(std::count(full.err.begin(), full.err.end(), '\n'), 1) << full.err;
    ASSERT_EQ(moehub(sweep("full")).code, 0);
    EXPECT_EQ(csv("full"), csv("whole"));
    expect_refused_about("sweep --sweep tokens=64 -o '" + file("no/folder.sqlite") + "'",
                         "folder.sqlite: cannot be written: No such file or directory");
}
#endif

TEST_F(SweepCli, after_ctrl_c_it_says_what_is_saved_and_goes_on_from_there) {
    const std::string longer =
        "sweep --sweep tokens=8192..16384*2 --seeds 50 -o '" + file("long.sqlite") + "'";
    // What a shell starts in the background ignores Ctrl-C: there is who sends it.
    const std::string pid = file("pid");
    const auto first = shell("{ " + until_saved("long") + "; kill -INT $(cat '" + pid +
                             "'); } >/dev/null & sh -c 'echo $$ > \"$0\"; exec \"$@\"' '" + pid +
                             "' '" MOEHUB_PROGRAM "' " + longer);
    EXPECT_EQ(first.code, 130) << first.err;
    EXPECT_NE(first.err.find(" of 300 points are saved in "), std::string::npos) << first.err;
    EXPECT_EQ(first.out, "");
    for (const char* end : {"-lock", "-wal", "-shm", "-journal"})
        EXPECT_FALSE(cli_test::fs::exists(file("long.sqlite" + std::string(end)))) << end;
    EXPECT_GT(rows("long.sqlite"), 0);
    EXPECT_LT(rows("long.sqlite"), 300);
}

TEST_F(SweepCli, a_dry_run_lists_all_and_writes_nothing) {
    const auto outcome = shell("cd '" + file(".") +
                               "' && moehub sweep --sweep tokens=64,128 --zip "
                               "link.latency=1us,2us --zip gpus=4,8 --systems ideal --dry-run");
    EXPECT_EQ(outcome.out,
              "tokens=64, link.latency=1us, gpus=4, ideal\n"
              "tokens=64, link.latency=2us, gpus=8, ideal\n"
              "tokens=128, link.latency=1us, gpus=4, ideal\n"
              "tokens=128, link.latency=2us, gpus=8, ideal\n"
              "4 points, 0 of them will be refused; none was run\n");
    for (const auto& entry : cli_test::fs::directory_iterator(file(".")))
        EXPECT_EQ(entry.path().filename(), "stderr");
}

TEST_F(SweepCli, models_and_sub_layers_too) {
    const auto model = moehub(
        "sweep --kind model --sweep training=false,true --tokens 1024 --systems "
        "megatron-te,moe-hub --csv - -o '" +
        file("m.sqlite") + "'");
    EXPECT_EQ(std::count(model.out.begin(), model.out.end(), '\n'), 5) << model.err;
    EXPECT_NE(model.out.find("tokens_per_second"), std::string::npos);
    const auto part = moehub(
        "compare --layer-type tp --sweep sublayer=L1,L2 --tokens 512 --systems "
        "ideal,cais --csv - -o '" +
        file("t.sqlite") + "'");
    EXPECT_EQ(std::count(part.out.begin(), part.out.end(), '\n'), 5) << part.err;
    expect_refused_about("sweep --kind tp --sweep routing=uniform -o '" + file("n.sqlite") + "'",
                         "routing: found with --layer-type tp");
}

TEST_F(SweepCli, refusals_stand_at_the_points_of_their_setting_and_system) {
    const auto outcome = moehub(
        "sweep --sweep in_switch=true,false --systems megatron-te,nvls --seeds 2 --tokens 512 "
        "--dry-run");
    const std::string why =
        ": will be refused: nvls cannot run this: the switches of dgx-h800 do not multicast and "
        "reduce\n";
    EXPECT_EQ(outcome.out,
              "in_switch=true, seed 1, megatron-te\nin_switch=true, seed 1, nvls\n"
              "in_switch=true, seed 2, megatron-te\nin_switch=true, seed 2, nvls\n"
              "in_switch=false, seed 1, megatron-te\nin_switch=false, seed 1, nvls" +
                  why + "in_switch=false, seed 2, megatron-te\nin_switch=false, seed 2, nvls" +
                  why + "8 points, 2 of them will be refused; none was run\n");
}

TEST_F(SweepCli, a_dry_run_is_said_in_every_form) {
    const std::string line =
        "sweep --kind tp --sweep in_switch=true,false --tokens 1024 --systems tp-nvls --dry-run";
    const auto points = nlohmann::json::parse(moehub(line + " --json").out)["points"];
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[1]["words"], "in_switch=false, tp-nvls");
    EXPECT_TRUE(points[0]["refused"].is_null());
    EXPECT_TRUE(points[1]["refused"].is_string());
    EXPECT_TRUE(moehub(line + " --csv -").out.starts_with("words,refused\n"));
    ASSERT_EQ(moehub(line + " --html '" + file("dry.html") + "'").code, 0);
    EXPECT_NE(cli_test::text_of(file("dry.html")).find("in_switch=false, tp-nvls"),
              std::string::npos);
    EXPECT_NE(moehub(line).out.find("2 points, 1 of them will be refused; none was run\n"),
              std::string::npos);
}

/// What each kind needs besides, as small as it can be.
const std::map<std::string, std::string>& minimal_sweeps() {
    static const std::map<std::string, std::string> kMinimal = {
        {"layer", "--sweep tokens=64,128"},
        {"tp", "--sweep tokens=1024,2048"},
        {"model", "--model llama-7b --sweep tokens=1024,2048"},
        {"decode", "--set context=10 --sweep batch_per_gpu=1,2"},
        {"prefill", "--set prompt=64 --sweep batch_per_gpu=1,2"},
        {"gain", "--sweep tokens=64,128"},
        {"collective", "--set op=all_reduce --sweep bytes=64KiB,1MiB"},
        {"predict",
         "--set kernel=gemm --set gpu=h100-sxm --set shape.n=64 --set shape.k=64 --sweep "
         "shape.m=1,2"},
        {"plan", "--sweep gpus=8,16"},
    };
    return kMinimal;
}

/// Nothing is simulated: whatever is asked says what it loaded.
TEST_F(SweepCli, every_kind_runs_dry) {
    for (const moehub::Question& question : moehub::questions())
        for (const moehub::SweepKind& kind : question.sweeps) {
            ASSERT_TRUE(minimal_sweeps().contains(kind.name)) << kind.name;
            const auto dry = moehub("sweep --dry-run --kind " + kind.name + " " +
                                    minimal_sweeps().at(kind.name));
            EXPECT_EQ(dry.code, 0) << kind.name << ": " << dry.err;
            EXPECT_NE(dry.out.find("none was run"), std::string::npos) << kind.name;
        }
}

TEST_F(SweepCli, a_dense_model_runs_again_on_a_changed_machine) {
    const std::string machine = file("m.toml");
    const std::string line = "sweep --kind model --model llama-7b --systems ideal --machine '" +
                             machine + "' --sweep tokens=1024 -o '" + file("d.sqlite") + "'";
    ASSERT_EQ(shell("moehub show dgx-h100 > '" + machine + "'").code, 0);
    ASSERT_EQ(moehub(line).code, 0);
    ASSERT_EQ(shell("moehub show dgx-h100 --set link.latency=9us > '" + machine + "'").code, 0);
    const auto again = moehub(line);
    EXPECT_EQ(again.code, 2) << again.out;
    EXPECT_NE(again.err.find("d.sqlite"), std::string::npos) << again.err;
}

TEST_F(SweepCli, sizes_are_said_as_the_question_takes_them) {
    const auto sweep = [&](const std::string& values) {
        const auto outcome =
            moehub("sweep --kind collective --set op=all_reduce --sweep bytes=" + values +
                   " --csv - -o '" + file(values + ".sqlite") + "'");
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return outcome.out;
    };
    const std::string range = sweep("64K..1M*4");
    EXPECT_TRUE(range.starts_with("bytes,system,")) << range;
    EXPECT_EQ(range, sweep("64KiB,256k,1M"));
    EXPECT_NE(range.find("\n262144,"), std::string::npos) << range;
}

TEST_F(SweepCli, systems_without_a_name_are_refused) {
    for (const std::string line :
         {"sweep --sweep tokens=64 --systems", "plan --system", "gain --models",
          "compare --systems", "model --decode --context 10 --batch-per-gpu 1 --systems"}) {
        const std::string option = line.substr(line.rfind("--"));
        expect_refused(line + " ''", option + ": found \"\", allowed: a name or a file");
    }
}

TEST_F(SweepCli, points_without_systems_are_no_faster_than_others) {
    const auto outcome =
        moehub("sweep --kind collective --set op=all_reduce --sweep bytes=64K,1M --json -o '" +
               file("c.sqlite") + "'");
    const auto document = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(document["results"].size(), 2u);
    for (const auto& row : document["results"]) EXPECT_TRUE(row["speedup"].is_null()) << row;
    EXPECT_NE(
        moehub("sweep --sweep tokens=64 --systems ideal --dry-run").out.find("\n1 point, 0 of"),
        std::string::npos);
}

/// What docs/sweeps.md lists of each kind.
TEST_F(SweepCli, the_page_lists_the_numbers_of_every_kind) {
    const std::string page = cli_test::text_of(MOEHUB_SOURCE_DIR "/docs/sweeps.md");
    for (const moehub::Question& question : moehub::questions())
        for (const moehub::SweepKind& kind : question.sweeps) {
            std::string names;
            for (const moehub::SweepMeasure& measure : kind.measures)
                names += (names.empty() ? "`" : ", `") + measure.name + "`";
            EXPECT_NE(page.find("| `" + kind.name + "` | " + names + " |"), std::string::npos)
                << "| `" << kind.name << "` | " << names << " |";
        }
}

/// None of several is kept in silence.
TEST_F(SweepCli, a_point_has_one_row) {
    const std::string end = " -o '" + file("one.sqlite") + "'";
    const std::string one = "found 2 values, allowed: one a point";
    for (const std::string before : {"sweep ", "sweep --dry-run "}) {
        expect_refused_about(before +
                                 "--kind gain --sweep 'models=deepseek-v3,mixtral-8x7b;"
                                 "mixtral-8x7b'" +
                                 end,
                             "--sweep: models: " + one);
        expect_refused_about(before +
                                 "--kind decode --set context=10 --sweep "
                                 "'batch_per_gpu=32,64;64,32;64'" +
                                 end,
                             "--sweep: batch_per_gpu: " + one);
        expect_refused_about(before +
                                 "--kind decode --set context=10 --set gpus=8,16 --sweep "
                                 "batch_per_gpu=1,2" +
                                 end,
                             "--set: gpus: " + one);
    }
    const auto gain =
        moehub("sweep --kind gain --sweep tokens=64 --json -o '" + file("gain.sqlite") + "'");
    ASSERT_EQ(gain.code, 0) << gain.err;
    const auto alone = moehub("gain --tokens 64 --models mixtral-8x7b --json");
    EXPECT_EQ(nlohmann::json::parse(gain.out)["results"][0]["time_us"],
              nlohmann::json::parse(alone.out)["cases"][0]["time_us"]);
    const auto found = moehub(
        "sweep --kind decode --set find=batch --set tpot=50ms --machine dgx-h100 --model "
        "mixtral-8x7b --systems deepep-ll --sweep context=10 -o '" +
        file("found.sqlite") + "'");
    EXPECT_EQ(found.code, 0) << "the largest batch is one row: " << found.err;
}

/// Tokens of one layer that all choose these two experts.
std::string routing_to(int first, int second) {
    const std::vector<std::int32_t> pair{first, second};
    std::string bytes;
    for (int token = 0; token < 64; ++token) bytes += moehub::bytes_of(pair);
    return moehub::npy("<i4", "(64, 1, 2)", bytes);
}

TEST_F(SweepCli, served_models_run_again_with_changed_routing_and_layout) {
    moehub::ExpertLayout layout = moehub::contiguous_layout({32, 8}, 8);
    const auto save_layout = [&] {
        saved("l.json", moehub::layout_text(layout, moehub::LayoutFormat::json));
    };
    for (const std::string phase : {"decode --set context=10", "prefill --set prompt=64"}) {
        const std::string name = phase.substr(0, phase.find(' '));
        const auto line = [&](const std::string& option, const std::string& input) {
            return "sweep --kind " + phase +
                   " --machine dgx-h100 --model mixtral-8x7b --systems deepep --" + option + " '" +
                   file(input) + "' --sweep batch_per_gpu=1 -o '" + file(name + option) + "'";
        };
        const auto routed = line("routing", "r.npy");
        const auto placed = line("layout", "l.json");
        saved("r.npy", routing_to(0, 1));
        save_layout();
        for (const std::string& one : {routed, placed}) {
            const auto first = moehub(one);
            ASSERT_EQ(first.code, 0) << one << first.err;
            EXPECT_EQ(moehub(one).code, 0);
        }
        saved("r.npy", routing_to(2, 5));
        std::swap(layout.on[0][0], layout.on[0][7]);
        save_layout();
        expect_refused_about(routed, "was changed");
        expect_refused_about(placed, "was changed");
    }
}

/// Whatever is answered with a number is a kind of study, and the number is the command's.
TEST_F(SweepCli, other_kinds_measure_what_their_commands_print) {
    const auto sweep = [this](const std::string& kind, const std::string& arguments) {
        const auto outcome = moehub("sweep --kind " + kind + " " + arguments + " --json -o '" +
                                    file(kind + ".sqlite") + "'");
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return nlohmann::json::parse(outcome.out)["results"];
    };
    const auto asked = [this](const std::string& command) {
        return nlohmann::json::parse(moehub(command + " --json").out);
    };
    const auto collectives = sweep("collective", "--set op=all_reduce --sweep bytes=64K,256K");
    ASSERT_EQ(collectives.size(), 2u);
    EXPECT_EQ(collectives[1]["time_us"],
              asked("collective --op all_reduce --bytes 256K")["time_us"]);
    EXPECT_EQ(collectives[1]["system"], nullptr);
    const auto kernels = sweep("predict",
                               "--set kernel=gemm --set shape.n=7168 --set shape.k=2048 "
                               "--sweep shape.m=64,4096 --sweep dtype=bf16,fp8");
    ASSERT_EQ(kernels.size(), 4u);
    EXPECT_EQ(kernels[3]["time_us"],
              asked("predict gemm m=4096 n=7168 k=2048 --dtype fp8")["time_us"]);
    const auto gains = sweep("gain", "--set tokens=256 --set models=mixtral-8x7b --sweep gpus=2,4");
    ASSERT_EQ(gains.size(), 2u);
    EXPECT_EQ(gains[1]["lead_equal"],
              asked("gain --models mixtral-8x7b --tokens 256 --gpus 4")["cases"][0]["lead_equal"]);
    expect_refused_about("sweep --kind predict --set kernel=gemm --sweep shape.q=1,2",
                         "unknown key \"shape.q\"");
    expect_refused_about("sweep --kind collective --sweep bytes=64K,1M --seeds 2",
                         "seeds: found with kind collective, which has none");
    expect_refused_about("sweep --kind plan --sweep system=deepep,moe-hub",
                         "system: found as a key, allowed: systems, of the whole study");
}

TEST_F(SweepCli, the_example_studies_run) {
    for (const auto& entry :
         cli_test::fs::directory_iterator(MOEHUB_SOURCE_DIR "/examples/studies")) {
        const std::string name = entry.path().stem().string();
#ifdef MOEHUB_SANITIZED
        const std::string run = " --dry-run";  // checks all points without simulating
#else
        const bool long_one = name == "skew" || name == "strong_scaling";
        const std::string run = long_one ? " --dry-run" : "";
#endif
        const auto outcome = moehub("sweep '" + entry.path().string() + "' -o '" +
                                    file(name + ".sqlite") + "'" + run);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_EQ(outcome.out.find("Refused"), std::string::npos) << outcome.out;
    }
}

}  // namespace
}  // namespace sweep_cli_test
