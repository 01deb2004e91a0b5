// A sweep from its arguments to its table.
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/sweep_arguments.hpp"
#include "cli/sweep_points.hpp"
#include "cli/values.hpp"
#include "report/progress.hpp"
#include "report/sweep_report.hpp"
#include "report/table.hpp"

#include <cstdlib>

namespace moehub {
namespace {

constexpr const char* kProgram = "moehub " MOEHUB_VERSION;
constexpr int kInterrupted = 130;

int threads_of(const SweepArguments& arguments) {
    if (!arguments.threads) return 0;
    return static_cast<int>(count_of("--threads", *arguments.threads, {1, 4096}));
}

CheckedStudy checked_study(const Study& study, int threads) {
    Progress progress("checking");
    return check_points(study, {threads, [&](std::size_t done, std::size_t total) {
                                    progress.update(done, total);
                                }});
}

std::string saved_text(const SweepStore& store, std::size_t total, const std::string& file) {
    return fmt::format("{} of {} points are saved in {}; run the same command again to go on",
                       store.saved(), total, file);
}

std::size_t points_of(const SweepStore& store, const SweepShard& shard) {
    return store.saved() + missing_points(store, shard).size();
}

/// Nothing is being saved when this is called, and nothing will be.
[[noreturn]] void leave(SweepStore& store, std::size_t total, const std::string& file) {
    const std::string text = saved_text(store, total, file);
    try {
        store.close();
    } catch (const InputError&) {
        // What was saved is in the database's log, which the next run reads.
    }
    fmt::print(stderr, "\nmoehub: interrupted: {}\n", text);
    std::_Exit(kInterrupted);
}

std::vector<SweepFailure> simulate(const Study& study, SweepStore& store, SweepRunOptions options,
                                   const std::string& file) {
    const Interrupt interrupt;
    Progress progress("simulating");
    const std::size_t total = points_of(store, options.shard);
    options.stop = interrupt.token();
    options.stopped = [&] { leave(store, total, file); };
    options.progress = [&progress, before = store.saved()](std::size_t done, std::size_t all) {
        progress.update_rate(before, done, all);
    };
    try {
        return run_sweep(study, point_simulator(study), store, options);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}; {}", error.what(), saved_text(store, total, file)));
    }
}

void print(const SweepArguments& arguments, const Study& study, const SweepOutcomes& outcomes,
           const std::string& file) {
    const bool csv_only = arguments.csv == "-";
    if (!arguments.csv.empty()) put(sweep_csv(study, outcomes), csv_only ? "" : arguments.csv);
    if (arguments.model.layer.json) return put(to_json(study, outcomes, file), "");
    if (csv_only) return;
    put(head_text(study) + "\n" + sweep_text(study, outcomes, wants_colour(stdout)) +
            fmt::format("Results: {}{}\n", file, arguments.csv.empty() ? "" : ", " + arguments.csv),
        "");
}

void fail(const Study& study, const std::vector<SweepFailure>& failures) {
    if (failures.empty()) return;
    const SweepFailure& first = failures.front();
    throw std::runtime_error(
        fmt::format("{} of {} points failed, all others are saved; first {}: {}", failures.size(),
                    points_in(study), words_of(study, point_of(study, first.point)), first.what));
}

}  // namespace

void run_sweep_command(const SweepArguments& arguments) {
    if (arguments.csv == "-" && arguments.model.layer.json)
        throw InputError("--csv: found - with --json, allowed: one of them on standard output");
    if (arguments.csv != "-") require_writable(arguments.csv);
    const Study study = study_of(arguments);
    SweepRunOptions options;
    options.shard = shard_of(arguments);
    options.threads = threads_of(arguments);
    const CheckedStudy checked = checked_study(study, options.threads);
    if (arguments.dry_run) {
        put(points_text(study, checked.refusals) +
                fmt::format("{} points, {} of them will be refused; none was run\n",
                            points_in(study), checked.refused),
            "");
        return;
    }
    const std::string file = database_of(arguments, study);
    SweepStore store(file, study, {kProgram, definition_of(study), checked.inputs, options.shard});
    const std::vector<SweepFailure> failures = simulate(study, store, options, file);
    const SweepOutcomes outcomes = store.outcomes();
    store.close();
    print(arguments, study, outcomes, file);
    fail(study, failures);
}

}  // namespace moehub
