// A sweep from its arguments to its table.
#include "base/source_checksum.hpp"
#include "cli/html_output.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/sweep_command.hpp"
#include "cli/sweep_ranks.hpp"
#include "report/document.hpp"
#include "report/progress.hpp"
#include "report/sweep_page.hpp"
#include "report/sweep_report.hpp"
#include "request/sweep_points.hpp"
#include "request/values.hpp"
#include "study/sweep/ranks.hpp"

#include <moehub/version.hpp>

#include <cstdlib>
#include <future>

#include <unistd.h>

namespace moehub {
namespace {

std::string program() {
    return fmt::format("moehub {}, sources {}", version(), source_checksum());
}

int threads_of(const SweepArguments& arguments) {
    if (!arguments.threads) return 0;
    return static_cast<int>(count_of("--threads", *arguments.threads, {1, 4096}));
}

CheckedStudy check_showing_life(const Study& study, const CheckOptions& options, Transport* ranks) {
    if (ranks == nullptr) return check_points(study, options);
    auto checked = std::async(std::launch::async, [&] { return check_points(study, options); });
    while (checked.wait_for(RankOptions{}.alive) != std::future_status::ready) show_life(*ranks);
    return checked.get();
}

CheckedStudy checked_study(const Study& study, int threads, Transport* ranks) {
    Progress progress("checking");
    const CheckOptions options{
        threads, [&](std::size_t done, std::size_t total) { progress.update(done, total); }};
    return check_showing_life(study, options, ranks);
}

std::string saved_text(const SweepStore& store, std::size_t total) {
    return fmt::format("{} of {} points are saved in {}; run the same command again to go on",
                       store.saved(), total, store.path());
}

std::size_t points_of(const SweepStore& store, const SweepShard& shard) {
    return store.saved() + missing_points(store, shard).size();
}

SweepIdentity identity_of(const Study& study, const CheckedStudy& checked,
                          const SweepShard& shard) {
    return {program(), definition_of(study), checked.inputs, shard};
}

/// Ranks that say the same simulate the same.
std::string signature_of(const SweepIdentity& identity) {
    return fmt::format("{}\n{}\n{}", identity.program, identity.inputs, identity.definition);
}

void tell(const RankReport& report) {
    if (!report.lost.empty())
        fmt::print(stderr, "moehub: lost on the way, others did their points: rank {}\n",
                   fmt::join(report.lost, ", "));
    if (!report.strangers.empty())
        fmt::print(
            stderr,
            "moehub: simulated nothing, its moehub, study or a file that it names is another: rank "
            "{}\n",
            fmt::join(report.strangers, ", "));
}

/// Nothing is being saved when this is called, and nothing will be.
[[noreturn]] void leave(SweepStore& store, std::size_t total) {
    const std::string text = saved_text(store, total);
    try {
        store.close();
    } catch (const InputError&) {
        // What was saved is in the database's log, which the next run reads.
    }
    const char* const front = isatty(fileno(stderr)) != 0 ? "\r\x1b[K" : "";  // over the progress
    fmt::print(stderr, "{}moehub: interrupted; {}\n", front, text);
    std::_Exit(kInterruptedCode);
}

/// From the first point on a database is there to be named when Ctrl-C ends the program.
void note_written(const std::string& database) {
    FileInWork(database).is_written();
}

/// What is simulated, by whom.
struct Work {
    const Study& study;
    SweepIdentity identity;
    SweepRunOptions options;
    Transport* ranks = nullptr;  ///< null: this process alone
    bool& lost;                  ///< set where ranks were
};

std::vector<SweepFailure> simulate(const Work& work, SweepStore& store) {
    SweepRunOptions options = work.options;
    Progress progress("simulating");
    if (store.saved() > 0) note_written(store.path());
    options.progress = [&, before = store.saved()](std::size_t done, std::size_t all) {
        if (done == 1) note_written(store.path());
        progress.update_rate(before, done, all);
    };
    const SimulatePoint simulate_point = point_simulator(work.study);
    if (work.ranks == nullptr) return run_sweep(work.study, simulate_point, store, options);
    RankOptions several;
    several.run = options;
    several.signature = signature_of(work.identity);
    RankReport report = lead_ranks(*work.ranks, work.study, simulate_point, store, several);
    work.lost = !report.lost.empty();
    tell(report);
    return std::move(report.failures);
}

std::vector<SweepFailure> simulate_guarded(Work work, SweepStore& store) {
    const std::size_t total = points_of(store, work.options.shard);
    work.options.stopped = [&] { leave(store, total); };
    try {
        return simulate(work, store);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}; {}", error.what(), saved_text(store, total)));
    }
}

struct Finished {
    SweepOutcomes outcomes;
    std::vector<SweepFailure> failures;
};

/// Ctrl-C waits while the database is opened and closed, so that it leaves one plain file.
Finished simulate_into(const std::string& file, Work work) {
    std::optional<Interrupt> interrupt;  // mpirun has its own way with Ctrl-C: it ends all ranks
    if (work.ranks == nullptr) work.options.stop = interrupt.emplace().token();
    SweepStore store(file, work.study, work.identity);
    Finished finished;
    finished.failures = simulate_guarded(work, store);
    finished.outcomes = store.outcomes();
    store.close();
    if (interrupt && interrupt->happened()) throw Interrupted();
    return finished;
}

void print(const SweepArguments& arguments, const Study& study, const SweepOutcomes& outcomes,
           const std::string& file) {
    const bool csv_only = arguments.csv == "-";
    if (!arguments.csv.empty()) put(sweep_csv(study, outcomes), csv_only ? "" : arguments.csv);
    const auto document = [&] { return document_text("sweep", sweep_json(study, outcomes, file)); };
    const HtmlOutput& html = arguments.model.layer.html;
    if (html.asked()) put_page(html, sweep_page(study, outcomes), document());
    if (arguments.model.layer.json) return put(document(), "");
    if (csv_only) return;
    const TextStyle style = style_for("");
    put(fitted(head_text(study) + "\n" + sweep_text(study, outcomes, style) +
                   fmt::format("Results: {}{}\n", file,
                               arguments.csv.empty() ? "" : ", " + arguments.csv),
               style.width),
        "");
}

void fail(const Study& study, const std::vector<SweepFailure>& failures) {
    if (failures.empty()) return;
    const SweepFailure& first = failures.front();
    throw std::runtime_error(
        fmt::format("{} of {} points failed, all others are saved; first {}: {}", failures.size(),
                    points_in(study), words_of(study, point_of(study, first.point)), first.what));
}

/// On a rank that simulates what it is told to. What is wrong with the study rank 0 says.
void follow(const SweepArguments& arguments, Transport& ranks) {
    RankOptions options;
    std::optional<Study> study;
    try {
        study = study_of(arguments);
        options.run.threads = threads_of(arguments);
        const CheckedStudy checked = check_showing_life(*study, {options.run.threads}, &ranks);
        options.signature = signature_of(identity_of(*study, checked, {}));
    } catch (const InputError&) {
        study = Study{};  // no points, no signature
    }
    ranks.finish(follow_rank(ranks, *study, point_simulator(*study), options));
}

void check_outputs(const SweepArguments& arguments, const std::string& database) {
    std::vector<std::string> inputs;
    if (arguments.study) inputs.push_back(*arguments.study);
    require_writable({{"-o", database},
                      output_file("--csv", arguments.csv == "-" ? "" : arguments.csv),
                      html_file(arguments.model.layer.html)},
                     inputs);
}

void run(const SweepArguments& arguments, Transport* ranks, bool& lost) {
    if (arguments.csv == "-" && arguments.model.layer.json)
        throw InputError("--csv: found - with --json, allowed: one of them on standard output");
    const Study study = study_of(arguments);
    const std::string file = database_of(arguments, study);
    if (!arguments.dry_run) check_outputs(arguments, file);
    SweepRunOptions options;
    options.shard = shard_of(arguments);
    options.threads = threads_of(arguments);
    const CheckedStudy checked = checked_study(study, options.threads, ranks);
    if (arguments.dry_run) {
        put(points_text(study, checked.refusals) +
                fmt::format("{} points, {} of them will be refused; none was run\n",
                            points_in(study), checked.refused),
            "");
        return;
    }
    const Work work{study, identity_of(study, checked, options.shard), options, ranks, lost};
    const Finished finished = simulate_into(file, work);
    print(arguments, study, finished.outcomes, file);
    fail(study, finished.failures);
}

}  // namespace

void run_sweep_command(const SweepArguments& arguments) {
    const std::unique_ptr<Transport> ranks = load_transport();
    if (ranks && ranks->rank() > 0) return follow(arguments, *ranks);
    bool lost = false;
    try {
        run(arguments, ranks.get(), lost);
    } catch (...) {
        if (ranks) end_ranks(*ranks, lost);
        throw;
    }
    if (ranks) end_ranks(*ranks, lost);
}

}  // namespace moehub
