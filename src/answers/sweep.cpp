// Many settings × seeds × systems over all cores, into a database.
#include "answers/question.hpp"
#include "answers/sweep_request.hpp"
#include "base/parallel.hpp"
#include "base/source_checksum.hpp"
#include "base/zip.hpp"
#include "report/number.hpp"
#include "study/sweep/run.hpp"
#include "study/sweep/store.hpp"
#include "study/sweep/transport.hpp"

#include <moehub/presets.hpp>
#include <moehub/version.hpp>

#include <algorithm>
#include <future>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// "KEY=VALUES".
SweepAxis axis_of(std::string_view option, const std::string& text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    if (equals == 0 || equals == text.size())
        bad_input("{}: found {}, allowed: KEY=VALUE,VALUE,… such as link.latency=100ns,1us", option,
                  moehub::quoted(text));
    const std::string key = text.substr(0, equals);
    SweepAxis axis{{key}, {}, std::string(option)};
    try {
        for (std::string& value : parse_axis_values(std::string_view(text).substr(equals + 1)))
            axis.rows.push_back({std::move(value)});
    } catch (const InputError& error) {
        bad_input("{}: {}: {}", option, key, error.what());
    }
    return axis;
}

Target to_axes(std::vector<SweepAxis>& axes) {
    Target target;
    target.kind = ValueKind::settings;
    target.type = "KEY=A,B";
    target.list = true;
    target.clear = [&axes] { axes.clear(); };
    target.read = [&axes](std::string_view option, const std::string& text) {
        axes.push_back(axis_of(option, text));
    };
    return target;
}

Target to_seeds(std::vector<std::string>& seeds) {
    Target target;
    target.type = "N|A,B";
    target.read = [&seeds](std::string_view, const std::string& text) {
        try {
            seeds = parse_seeds(text);
        } catch (const InputError& error) {
            bad_input("--{}", error.what());
        }
    };
    return target;
}

/// "2/4": the second of four.
std::optional<SweepShard> shard_of(const std::string& text) {
    constexpr std::int64_t kMostShards = 1000000;
    const std::size_t slash = std::min(text.find('/'), text.size());
    try {
        const std::int64_t index = parse_count(text.substr(0, slash));
        const std::int64_t of = parse_count(text.substr(std::min(slash + 1, text.size())));
        if (index >= 1 && index <= of && of <= kMostShards)
            return SweepShard{static_cast<std::size_t>(index - 1), static_cast<std::size_t>(of)};
    } catch (const InputError&) {
        // Said better below.
    }
    bad_input("found {}, allowed: I/N with I from 1 to N, as in 2/4", moehub::quoted(text));
}

Target to_names(std::optional<std::vector<std::string>>& names) {
    Target target;
    target.kind = ValueKind::system;
    target.commas = true;
    target.read = [&names](std::string_view, const std::string& text) { names = listed(text); };
    return target;
}

Options own_options(SweepRequest& request) {
    Target study = to_file(request.study);
    study.type = "STUDY.toml";
    Options options{
        {"study", std::move(study), "a TOML file that says what is swept; without it --sweep does"},
        {"--kind", to_text(request.kind, "KIND"),
         "what each point asks: layer (a MoE layer), tp (a tensor-parallel sub-layer), model, "
         "decode, prefill, gain, collective, predict, plan, …; without it layer"},
        {"--systems", to_names(request.systems),
         "names or TOML files with commas between; without it ideal,megatron-te,moe-hub, of dense "
         "models and tp ideal,tp-nvls,cais, and those that keys name"},
        {"--baseline", to_text(request.baseline, "S"),
         "whose times others are measured by; without it megatron-te or tp-nvls"},
    };
    append(options, sweep_axes_options(request.axes));
    append(options,
           {{"--dry-run", to(request.dry_run), "check all, list the points, run none"},
            {"--shard", to_parsed(request.shard, shard_of, "I/N"),
             "only the I-th of N parts, I from 1 to N; moehub merge joins them"},
            {"--threads", to(request.threads, kThreads),
             "points simulated at a time, same results; without it as many as cores"},
            {"-o,--output", to_file(request.database),
             "database of the results, gone on with where it exists; without it the study's name "
             "and .sqlite"}});
    return options;
}

/// Keys that the command itself says.
bool is_own(const std::string& key) {
    SweepRequest none;
    return find_option(own_options(none), key) != nullptr || key == "json" || key == "csv" ||
           key == "html";
}

/// Options of points beside one's own: those of layers and models, each once.
Asked sweep_asked() {
    struct All {
        SweepRequest request;
        std::vector<Asked> points;
    };
    const auto all = std::make_shared<All>();
    Options options = own_options(all->request);
    for (const Question& question : {compare_question(), model_question()}) {
        all->points.push_back(question.ask());
        for (Option option : all->points.back().options) {
            const std::string key = key_of(option);
            if (find_option(options, key) != nullptr || key == "layer_type" || key == "decode" ||
                key == "prefill" || key == "trace_rows")
                continue;
            option.rules = {};  // points are checked one by one
            options.push_back(std::move(option));
        }
    }
    Asked asked{options, [all](const Asker& asker) { return sweep_answer(all->request, asker); }};
    asked.inputs = [all] {
        return all->request.study ? std::vector{*all->request.study} : std::vector<std::string>{};
    };
    asked.outputs = [all] {
        const SweepRequest& request = all->request;
        return request.database.empty() || request.dry_run
                   ? std::vector<OutputFile>{}
                   : std::vector<OutputFile>{{"-o", request.database, true}};
    };
    return asked;
}

/// What was said besides holds for all points, and stands before what the file says.
void add_settings(const Said& said, Study& study) {
    const auto add = [&study](const std::string& key, const std::string& value,
                              const std::string& where) {
        const auto found = std::find_if(study.fixed.begin(), study.fixed.end(),
                                        [&](const auto& one) { return one.key == key; });
        StudySetting setting{key, value, where};
        if (found == study.fixed.end())
            study.fixed.push_back(std::move(setting));
        else
            *found = std::move(setting);
    };
    for (const auto& [key, texts, given] : said) {
        std::string name = "--" + key;
        std::replace(name.begin(), name.end(), '_', '-');
        if (!given.empty())
            throw InputError(
                name +
                ": found an object in a sweep, allowed: a name or file, loaded at every point");
        if (is_own(key) || key == "layer_type" || key == "seed") continue;
        if (key != "set") add(key, texts.back(), name);
        for (const std::string& one : key == "set" ? texts : std::vector<std::string>{}) {
            const std::size_t equals = one.find('=');
            add(one.substr(0, equals), one.substr(equals + 1), "--set");
        }
    }
}

/// Systems that keys name, "system.NAME.KEY", are run, too.
void add_named_systems(Study& study) {
    static constexpr std::string_view kSystem = "system.";
    const auto add = [&study](const std::string& key) {
        if (!key.starts_with(kSystem)) return;
        const std::string name = key.substr(kSystem.size(), key.rfind('.') - kSystem.size());
        if (std::find(study.systems.begin(), study.systems.end(), name) == study.systems.end())
            study.systems.push_back(name);
    };
    for (const StudySetting& setting : study.fixed) add(setting.key);
    for (const std::string& key : keys_of(study)) add(key);
}

/// Systems of a study that names none: in some kinds its model says by which it runs.
std::vector<std::string> usual_systems(const Study& study, const SweepKind& kind) {
    if (kind.dense_systems.empty()) return kind.usual_systems;
    for (const StudySetting& setting : study.fixed)
        if (setting.key == "model" && load_model(setting.value).experts == 0)
            return kind.dense_systems;
    return kind.usual_systems;
}

Study study_of(const SweepRequest& request, const Said& said) {
    Study study;
    study.origin = "--sweep";
    if (request.study) study = load_study(*request.study);
    if (request.kind) study.kind = *request.kind;
    const std::string where = request.kind ? "--kind" : study.kind_where + ": kind";
    const StudyQuestion asked = study_question(study.kind, where);
    study.axes.insert(study.axes.end(), request.axes.axes.begin(), request.axes.axes.end());
    if (!request.axes.together.empty()) study.axes.push_back(zipped(request.axes.together));
    add_settings(said, study);
    if (!request.axes.seeds.empty()) study.seeds = request.axes.seeds;
    for (const SaidOption& one : said) {
        if (one.key != "seed") continue;
        if (has(said, "seeds"))
            throw InputError("--seed: found with --seeds, allowed: one of the two");
        study.seeds = one.texts;
    }
    if (request.systems) study.systems = *request.systems;
    if (!request.baseline.empty()) study.baseline = request.baseline;
    const auto refuse = [&study](const char* what) {
        bad_input("{}: {}: found with kind {}, which has none", study.origin, what, study.kind);
    };
    if (!study.seeds.empty() && find_option(asked.question.ask().options, "seed") == nullptr)
        refuse("seeds");
    if (asked.kind.systems.empty()) {
        if (!study.systems.empty()) refuse("systems");
        study.systems = {""};
    } else if (study.systems.empty()) {
        study.systems = usual_systems(study, asked.kind);
        add_named_systems(study);
    }
    if (study.axes.empty())
        throw InputError(
            request.study ? study.origin + ": nothing is swept, allowed: [grid], [zip.NAME]"
                          : std::string("sweep: found neither a study nor --sweep, allowed: "
                                        "moehub sweep STUDY.toml, moehub sweep --sweep KEY=A,B"));
    // A question asked again has the same file and goes on; other questions are not in its way.
    if (study.name.empty()) study.name = fmt::format("sweep-{:08x}", crc32(definition_of(study)));
    study.measures = asked.kind.measures;
    return study;
}

std::string database_of(const SweepRequest& request, const Study& study, const Asker& asker) {
    if (!request.database.empty()) return request.database;
    if (asker.scratch) return asker.scratch() + "/sweep.sqlite";
    if (!request.shard) return study.name + ".sqlite";
    return fmt::format("{}-{}-of-{}.sqlite", study.name, request.shard->index + 1,
                       request.shard->of);
}

/// What a system's file calls it; names of no system, such as an engine's own layers, stay.
std::string own_name(const std::string& name) {
    try {
        return load_system(name).name;
    } catch (const InputError&) {
        return name;
    }
}

/// Names that keys use are those in systems' files. Throws InputError.
void load_names(Study& study, const StudyQuestion& asked) {
    try {
        if (!asked.kind.systems.empty() && asked.kind.check != nullptr)
            asked.kind.check(study.systems);
        for (const std::string& name : study.systems) study.own_names.push_back(own_name(name));
    } catch (const InputError& error) {
        bad_input("{}: systems: {}", study.origin, error.what());
    }
}

/// The error with the place of the key that it is about: questions know only options and --set.
[[noreturn]] void fail_at(const Study& study, const SweepPoint& point, std::string_view what) {
    const auto after = [](std::string_view text, std::string_view front) {
        return text.starts_with(front) ? text.substr(front.size()) : std::string_view{};
    };
    const std::string_view set = after(what, "--set: ");
    const std::string_view option = set.empty() ? after(what, "--") : set;
    std::string key(option.substr(0, option.find(": ")));
    if (set.empty()) std::replace(key.begin(), key.end(), '-', '_');
    for (const std::string prefix : {"", "model.", "trainer.", "system."}) {
        if (key.empty()) break;
        const std::string full =
            prefix == "system." ? fmt::format("system.{}.{}", point.system, key) : prefix + key;
        const auto where = where_is(study, full);
        if (!where) continue;
        const std::size_t rest = option.find(": ") + 2;
        bad_input("{}: {}: {}", *where, full, option.substr(rest));
    }
    bad_input("{}: at {}: {}", study.origin, words_of(study, point), what);
}

/// Thrown where only what goes into an answer was wanted.
struct OnlyLoaded {
    std::string inputs;
};

Answer ask_at(const Study& study, const SweepPoint& point, const StudyQuestion& what, Asker asker) {
    const Asked asked = what.question.ask();
    asker.said = said_at(study, point, what);
    asker.options = asked.options;
    asker.form_words = what.question.form_words;
    fill(asked.options, asker.said);
    return asked.answer(asker);
}

/// What became of loading everything that a study names.
struct CheckedStudy {
    std::string inputs;                 ///< checksum of all that was loaded
    std::vector<std::string> refusals;  ///< by setting and system: why not; empty: it runs
    std::size_t refused = 0;            ///< points
};

/// Loads every combination of settings and systems. Throws InputError: a key or a value that is
/// wrong, with its place; no point that can run.
CheckedStudy check_points(const Study& study, const StudyQuestion& what,
                          const ParallelOptions& options) {
    check(study);
    check_keys(study, what);
    const std::size_t systems = study.systems.size();
    const std::size_t seeds = std::max<std::size_t>(1, study.seeds.size());
    CheckedStudy checked;
    checked.refusals.resize(settings_in(study) * systems);
    std::vector<std::uint32_t> sums(checked.refusals.size());
    Asker asker;
    asker.ready = [](const std::string& inputs) { throw OnlyLoaded{inputs}; };
    const auto check_one = [&](std::size_t i) {
        const SweepPoint point = point_of(study, i / systems * seeds * systems + i % systems);
        if (same_points(study, point.number).front() != point.number) return;
        try {
            ask_at(study, point, what, asker);
            throw std::logic_error(fmt::format("{} never says what it loaded", study.kind));
        } catch (const OnlyLoaded& loaded) {
            sums[i] = crc32(loaded.inputs);
        } catch (const CannotRun& error) {
            checked.refusals[i] = error.what();
            sums[i] = crc32(checked.refusals[i]);
        } catch (const InputError& error) {
            fail_at(study, point, error.what());
        }
    };
    run_parallel(checked.refusals.size(), check_one, options);
    const std::string_view bytes(reinterpret_cast<const char*>(sums.data()),
                                 sums.size() * sizeof sums[0]);
    checked.inputs = fmt::format("{:08x}", crc32(bytes));
    checked.refused = seeds * static_cast<std::size_t>(std::count_if(
                                  checked.refusals.begin(), checked.refusals.end(),
                                  [](const std::string& reason) { return !reason.empty(); }));
    if (checked.refused == points_in(study))
        bad_input("{}: no point can run: {}: {}", study.origin, words_of(study, point_of(study, 0)),
                  checked.refusals[0]);
    return checked;
}

/// Throws InputError for an answer of several rows: none of them is the point's.
void require_one_row(const Answer& answer, const SweepKind& kind) {
    const Table* const table = main_table(answer);
    if (table == nullptr || kind.first_row || table->rows.size() == 1) return;
    bad_input("found {} rows, allowed: one a point", table->rows.size());
}

SimulatePoint point_simulator(const Study& study, const StudyQuestion& what) {
    return [&study, &what](const SweepPoint& point) -> SweepOutcome {
        try {
            const Answer answer = ask_at(study, point, what, {});
            require_one_row(answer, what.kind);
            SweepOutcome outcome;
            for (const SweepMeasure& measure : study.measures)
                outcome.values.push_back(number_at(answer, measure.name));
            return outcome;
        } catch (const InputError& refusal) {
            return {refusal.what(), {}};
        }
    };
}

SweepIdentity identity_of(const Study& study, const CheckedStudy& checked, SweepShard shard) {
    return {fmt::format("moehub {}, sources {}", version(), source_checksum()),
            definition_of(study), checked.inputs, shard};
}

/// Ranks that say the same simulate the same.
std::string signature_of(const SweepIdentity& identity) {
    return fmt::format("{}\n{}\n{}", identity.program, identity.inputs, identity.definition);
}

/// A sweep from its study to its outcomes.
class Sweep {
  public:
    Sweep(const SweepRequest& request, const Asker& asker, Transport* ranks)
        : request_(request),
          asker_(asker),
          ranks_(ranks),
          study_(study_of(request, asker.said)),
          what_(study_question(study_.kind, study_.origin)) {
        load_names(study_, what_);
    }

    const Study& study() const { return study_; }
    bool lost() const { return lost_; }

    Answer answer() {
        const CheckedStudy checked = check();
        if (request_.dry_run) return points_answer(checked);
        const std::string database = database_of(request_, study_, asker_);
        const bool stays = !asker_.scratch || !request_.database.empty();
        simulate(database, identity_of(study_, checked, request_.shard.value_or(SweepShard{})));
        Answer answer = sweep_table(study_, outcomes_, stays ? database : "");
        if (!failures_.empty())
            answer.failed = fmt::format(
                "{} of {} points failed, all others are saved; first {}: {}", failures_.size(),
                points_in(study_), words_of(study_, point_of(study_, failures_.front().point)),
                failures_.front().what);
        return answer;
    }

    /// On a rank that simulates what it is told to.
    bool follow() {
        RankOptions options;
        options.run.threads = request_.threads;
        options.signature = signature_of(identity_of(study_, check(), {}));
        return follow_rank(*ranks_, study_, point_simulator(study_, what_), options);
    }

  private:
    /// Other ranks learn all the while that this one is there.
    CheckedStudy check() {
        ParallelOptions options{request_.threads, {}};
        if (asker_.progress)
            options.progress = [this](std::size_t done, std::size_t total) {
                asker_.progress("checking", pieces_done(done, total));
            };
        if (ranks_ == nullptr) return check_points(study_, what_, options);
        auto checked =
            std::async(std::launch::async, [&] { return check_points(study_, what_, options); });
        while (checked.wait_for(RankOptions{}.alive) != std::future_status::ready)
            show_life(*ranks_);
        return checked.get();
    }

    Answer points_answer(const CheckedStudy& checked) const {
        Table points{"points", "Points", {{"point", "words"}, {"refused", "refused"}}, {}};
        std::string text;
        for (std::size_t i = 0; i < points_in(study_); ++i) {
            const SweepPoint point = point_of(study_, i);
            const std::string words = words_of(study_, point);
            const std::string& reason =
                checked.refusals[point.setting * study_.systems.size() + i % study_.systems.size()];
            text += words;
            text += reason.empty() ? "\n" : fmt::format(": will be refused: {}\n", reason);
            points.rows.push_back({words, or_null(reason)});
        }
        Answer answer{.title = study_.name};
        answer.file =
            text + fmt::format("{}, {} of them will be refused; none was run\n",
                               several(static_cast<std::int64_t>(points_in(study_)), "point"),
                               checked.refused);
        answer.sections = {{"", {}, {std::move(points)}}};
        return answer;
    }

    std::string saved_words(const SweepStore& store) const {
        return fmt::format("{} of {} points are saved in {}; run the same command again to go on",
                           store.saved(), store.points(), store.path());
    }

    SweepRunOptions run_options(SweepStore& store) {
        SweepRunOptions options;
        options.threads = request_.threads;
        options.stop = asker_.stop;
        options.stopped = [this, &store] {
            if (!asker_.leave) return;
            const std::string words = saved_words(store);
            try {
                store.close();
            } catch (const InputError&) {
                // What was saved is in the database's log, which the next run reads.
            }
            asker_.leave(words);
        };
        options.progress = [this, &store, before = store.saved()](std::size_t done,
                                                                  std::size_t all) {
            // From the first point on a database is there to be named when the program is ended.
            if (done == before + 1 && asker_.wrote) asker_.wrote(store.path());
            if (asker_.progress) asker_.progress("simulating", pieces_done(done, all, before));
        };
        return options;
    }

    void simulate(const std::string& database, const SweepIdentity& identity) {
        if (ranks_ == nullptr)
            if (auto outcomes = finished_outcomes(database, study_, identity)) {
                outcomes_ = std::move(*outcomes);
                return;
            }
        SweepStore store(database, study_, identity);
        if (store.saved() > 0 && asker_.wrote) asker_.wrote(store.path());
        const SweepRunOptions options = run_options(store);
        const SimulatePoint simulate_point = point_simulator(study_, what_);
        try {
            if (ranks_ == nullptr) {
                failures_ = run_sweep(study_, simulate_point, store, options);
            } else {
                RankOptions several;
                several.run = options;
                several.signature = signature_of(identity);
                take(lead_ranks(*ranks_, study_, simulate_point, store, several));
            }
        } catch (const InputError& error) {
            bad_input("{}; {}", error.what(), saved_words(store));
        }
        outcomes_ = store.outcomes();
        store.close();
        if (asker_.stop.stop_requested()) throw Ended();
    }

    void take(RankReport report) {
        lost_ = !report.lost.empty();
        failures_ = std::move(report.failures);
        if (!asker_.tell) return;
        if (lost_)
            asker_.tell(fmt::format("lost on the way, others did their points: rank {}",
                                    fmt::join(report.lost, ", ")));
        if (!report.strangers.empty())
            asker_.tell(
                fmt::format("simulated nothing, its moehub, study or a file that it names "
                            "is another: rank {}",
                            fmt::join(report.strangers, ", ")));
    }

    const SweepRequest& request_;
    const Asker& asker_;
    Transport* ranks_;
    Study study_;
    StudyQuestion what_;
    std::vector<std::optional<SweepOutcome>> outcomes_;
    std::vector<SweepFailure> failures_;
    bool lost_ = false;
};

/// What is wrong with the study rank 0 says.
Answer follow(const SweepRequest& request, const Asker& asker, Transport& ranks) {
    bool all = false;
    try {
        all = Sweep(request, asker, &ranks).follow();
    } catch (const InputError&) {
        const Study none;
        all = follow_rank(ranks, none, {}, {});  // no points, no signature
    }
    ranks.finish(all);
    Answer answer;
    answer.file = "";
    return answer;
}

struct MergeRequest {
    std::string target;
    std::vector<std::string> sources;
};

Options merge_options(MergeRequest& request) {
    Target target = to_file(request.target);
    target.type = "OUT.sqlite";
    Target sources = to_texts(request.sources, ValueKind::file);
    sources.type = "IN.sqlite";
    return {{"target", std::move(target), "the new database", kRequired},
            {"sources",
             std::move(sources),
             "databases of one study's parts",
             {.required = true, .many = true}}};
}

Answer merge_answer(const MergeRequest& request, const Asker&) {
    const MergedSweep merged = merge_sweeps(request.target, request.sources);
    Answer answer = sweep_table(merged.study, merged.outcomes, request.target);
    // For scripts: what was merged is written, but it is not the whole study.
    if (merged.missing > 0)
        answer.missing = fmt::format(
            "{}: {} of {} points are missing; merge all parts, or run the study with "
            "-o {} to go on",
            request.target, merged.missing, merged.outcomes.size(), request.target);
    return answer;
}
}  // namespace

Options sweep_axes_options(SweepAxes& axes, const OptionRules& beside) {
    return {
        {"--sweep", to_axes(axes.axes),
         "simulate with each of these values: a list, or 1024..8192*2, 0..1+0.25; keys are options "
         "without dashes or what --set takes; repeatable, all combinations"},
        {"--zip", to_axes(axes.together),
         "as --sweep, but all --zip go together: first with first, …", beside},
        {"--seeds", to_seeds(axes.seeds),
         "of generated routings: how many, from 1 on, or a list with commas", beside},
    };
}

Answer sweep_answer(const SweepRequest& request, const Asker& asker) {
    const std::unique_ptr<Transport> ranks =
        asker.transport ? asker.transport() : std::unique_ptr<Transport>();
    if (ranks && ranks->rank() > 0) return follow(request, asker, *ranks);
    bool lost = false;
    try {
        Sweep sweep(request, asker, ranks.get());
        Answer answer = sweep.answer();
        lost = sweep.lost();
        if (ranks) end_ranks(*ranks, lost);
        return answer;
    } catch (...) {
        if (ranks) end_ranks(*ranks, lost);
        throw;
    }
}

Question sweep_question() {
    return {.first = "study", .forms = {.output = false}, .ends_softly = true, .ask = sweep_asked};
}

// moehub merge

Question merge_question() {
    return {.first = "target",
            .forms = {.output = false},
            .ask = asking(
                merge_options, merge_answer,
                [](const MergeRequest& request) { return request.sources; },
                [](const MergeRequest& request) {
                    return std::vector<OutputFile>{{"target", request.target}};
                })};
}

}  // namespace moehub
