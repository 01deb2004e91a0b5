#include "study/sweep/store.hpp"

#include "base/input_error.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moehub {
namespace {

constexpr std::int64_t kApplication = 0x6d6f6568;  // "moeh"

std::vector<std::string> columns_of(const Study& study) {
    std::vector<std::string> columns{"point"};
    for (const std::string& key : keys_of(study)) columns.push_back(key);
    for (const char* one : {"system", "seed", "refused"}) columns.emplace_back(one);
    for (const SweepMeasure& measure : study.measures) columns.push_back(measure.name);
    return columns;
}

std::string create_results(const Study& study) {
    const std::size_t keys = keys_of(study).size();
    const std::vector<std::string> columns = columns_of(study);
    std::string sql = "CREATE TABLE results (point INTEGER PRIMARY KEY";
    const std::size_t texts = keys + 3;
    for (std::size_t i = 1; i < columns.size(); ++i)
        sql += fmt::format(", {} {}", sql_name(columns[i]),
                           i <= texts                            ? "TEXT"
                           : study.measures[i - texts - 1].whole ? "INTEGER"
                                                                 : "REAL");
    return sql + ")";
}

std::string insert_result(const Study& study) {
    std::string marks;
    for (std::size_t i = 0; i < columns_of(study).size(); ++i) marks += i == 0 ? "?" : ", ?";
    return fmt::format("INSERT INTO results VALUES ({})", marks);
}

[[noreturn]] void refuse(const std::string& path, std::string_view what) {
    throw input_error("{}: {}; it is left as it is, -o names another file", printable(path), what);
}

void require_same(const std::string& path, const SweepFile& file, const SweepIdentity& wanted) {
    const SweepIdentity& found = file.identity;
    if (found.program != wanted.program)
        refuse(path,
               fmt::format("holds results of {}, this is {}, whose may differ: go on with the "
                           "program that began, or run all anew",
                           printable(found.program), wanted.program));
    if (found.definition != wanted.definition)
        refuse(path, fmt::format("holds another study's results ({})", printable(file.study.name)));
    if (found.inputs != wanted.inputs)
        refuse(path,
               "holds results from before a file that the study names (machine, model, system, "
               "routing or layout) was changed");
    if (!(found.shard == wanted.shard))
        refuse(path, fmt::format("holds shard {}/{}, asked for is {}/{}", found.shard.index + 1,
                                 found.shard.of, wanted.shard.index + 1, wanted.shard.of));
}

void put(Statement& statement, std::string_view key, std::string_view value) {
    statement.bind(0, key);
    statement.bind(1, value);
    statement.step();
}

std::string value_of(Database& database, std::string_view key) {
    Statement statement = database.prepare("SELECT value FROM study WHERE key = ?");
    statement.bind(0, key);
    return statement.step() ? statement.text(0) : "";
}

/// Columns of numbers, behind those of texts.
std::vector<SweepMeasure> measures_in(Database& database) {
    std::vector<SweepMeasure> measures;
    Statement columns =
        database.prepare("SELECT name, type FROM pragma_table_info('results') WHERE cid > 0");
    while (columns.step())
        if (columns.text(1) != "TEXT")
            measures.push_back({columns.text(0), columns.text(1) == "INTEGER"});
    return measures;
}

std::size_t count_of(Database& database, std::string_view key) {
    return static_cast<std::size_t>(std::strtoull(value_of(database, key).c_str(), nullptr, 10));
}

/// Whoever held the file before may have removed it between our opening and our locking.
bool still_there(int descriptor, const std::string& path) {
    struct stat held {};
    struct stat named {};
    return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

namespace fs = std::filesystem;

struct Source {
    std::string path;
    SweepFile file;
    SweepOutcomes outcomes;
};

bool is_in_writable_folder(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    return fs::exists(path) && access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

Source opened(const std::string& path) {
    std::optional<WriterLock> held;  // where nobody may write, nobody is writing
    if (is_in_writable_folder(path)) held.emplace(path);
    // A writer that was killed has left a log, which only those who may write can fold in.
    Database database(path, DatabaseMode::write);
    Source source{path, read_sweep_file(database), {}};
    source.outcomes = read_outcomes(database, source.file.study);
    return source;
}

void require_same(const Source& first, const Source& other) {
    const SweepIdentity& a = first.file.identity;
    const SweepIdentity& b = other.file.identity;
    const auto refuse = [&](std::string_view what) {
        throw input_error("{}: {} than {}, allowed: parts of one study", printable(other.path),
                          what, printable(first.path));
    };
    if (a.program != b.program)
        refuse(fmt::format("holds results of {}, another moehub", printable(b.program)));
    if (a.definition != b.definition) refuse("holds results of another study");
    if (a.inputs != b.inputs)
        refuse("holds results of other machines, models, systems or routings");
}

void add(MergedSweep& merged, const Source& source) {
    for (std::size_t i = 0; i < merged.outcomes.size(); ++i) {
        if (!source.outcomes[i]) continue;
        if (merged.outcomes[i] && merged.outcomes[i] != source.outcomes[i])
            throw input_error("{}: {}: differs from an earlier file's result, allowed: the same",
                              printable(source.path),
                              words_of(merged.study, point_of(merged.study, i)));
        merged.outcomes[i] = source.outcomes[i];
    }
}

void write(const std::string& path, const MergedSweep& merged, SweepIdentity identity) {
    identity.shard = {};
    SweepStore store(path, merged.study, identity);
    store.save_all(merged.outcomes);
    store.close();
}

}  // namespace

SweepFile read_sweep_file(Database& database) {
    if (database.whole("PRAGMA application_id") != kApplication)
        refuse(database.path(), "is a database, but not of a sweep");
    const std::int64_t schema = database.whole("PRAGMA user_version");
    if (schema != kSweepSchema)
        refuse(database.path(),
               fmt::format("is of schema version {}, this program's is {}", schema, kSweepSchema));
    SweepFile file;
    file.identity = {value_of(database, "program"),
                     value_of(database, "definition"),
                     value_of(database, "inputs"),
                     {count_of(database, "shard_index"), count_of(database, "shard_of")}};
    file.study = parse_study(file.identity.definition, database.path());
    check(file.study);
    file.study.name = value_of(database, "name");
    file.study.title = value_of(database, "title");
    file.study.baseline = value_of(database, "baseline");
    file.study.measures = measures_in(database);
    return file;
}

SweepOutcomes read_outcomes(Database& database, const Study& study) {
    const auto keys = static_cast<int>(keys_of(study).size());
    const auto measures = static_cast<int>(study.measures.size());
    SweepOutcomes outcomes(points_in(study));
    Statement rows = database.prepare("SELECT * FROM results ORDER BY point");
    while (rows.step()) {
        const auto number = static_cast<std::size_t>(rows.whole(0));
        if (number >= outcomes.size()) refuse(database.path(), "is a damaged database");
        SweepOutcome outcome{rows.text(keys + 3), {}};
        for (int i = 0; i < measures && outcome.ran(); ++i)
            outcome.values.push_back(rows.number(keys + 4 + i));
        outcomes[number] = std::move(outcome);
    }
    return outcomes;
}

std::optional<SweepOutcomes> finished_outcomes(const std::string& path, const Study& study,
                                               const SweepIdentity& identity) {
    // What a writer that was killed has left beside its file only a writer puts in order.
    if (!std::filesystem::exists(path) || std::filesystem::exists(path + "-wal")) return {};
    Database database(path, DatabaseMode::read);
    if (database.whole("SELECT count(*) FROM sqlite_master") == 0) return {};
    require_same(path, read_sweep_file(database), identity);
    auto outcomes = read_outcomes(database, study);
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (identity.shard.has(i) && !outcomes[i]) return {};
    return outcomes;
}

SweepStore::SweepStore(const std::string& path, const Study& study, const SweepIdentity& identity)
    : study_(study), path_(path), shard_(identity.shard) {
    lock_.emplace(path);
    const bool is_new = !std::filesystem::exists(path);
    try {
        open(identity);
    } catch (const InputError&) {
        database_.reset();
        if (is_new) std::filesystem::remove(path);
        throw;
    }
}

void SweepStore::open(const SweepIdentity& identity) {
    database_.emplace(path_, DatabaseMode::create);
    Transaction all(*database_);
    if (database_->whole("SELECT count(*) FROM sqlite_master") == 0)
        create(identity);
    else
        require_same(path_, read_sweep_file(*database_), identity);
    outcomes_ = read_outcomes(*database_, study_);
    saved_ = static_cast<std::size_t>(
        std::count_if(outcomes_.begin(), outcomes_.end(),
                      [](const auto& outcome) { return outcome.has_value(); }));
    all.commit();
    // Commits append to one file: fast, readers are not in the way, and what the system has taken
    // stays when this process is killed.
    database_->run("PRAGMA journal_mode = WAL");
    database_->run("PRAGMA synchronous = NORMAL");
    insert_.emplace(database_->prepare(insert_result(study_)));
}

SweepStore::~SweepStore() = default;

void SweepStore::create(const SweepIdentity& identity) {
    database_->run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication,
                               kSweepSchema));
    database_->run("CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT)");
    database_->run(create_results(study_));
    Statement statement = database_->prepare("INSERT INTO study VALUES (?, ?)");
    put(statement, "name", study_.name);
    put(statement, "title", study_.title);
    put(statement, "program", identity.program);
    put(statement, "definition", identity.definition);
    put(statement, "inputs", identity.inputs);
    put(statement, "baseline", study_.baseline);
    put(statement, "shard_index", std::to_string(identity.shard.index));
    put(statement, "shard_of", std::to_string(identity.shard.of));
}

std::size_t SweepStore::points() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < outcomes_.size(); ++i) count += shard_.has(i) ? 1 : 0;
    return count;
}

std::vector<std::size_t> SweepStore::missing() const {
    const auto is_missing = [this](std::size_t i) { return shard_.has(i) && !outcomes_[i]; };
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
        if (!is_missing(i)) continue;
        const std::vector<std::size_t> same = same_points(study_, i);
        if (*std::find_if(same.begin(), same.end(), is_missing) == i) missing.push_back(i);
    }
    return missing;
}

void SweepStore::insert(const SweepPoint& point, const SweepOutcome& outcome) {
    int column = 0;
    insert_->bind(column++, static_cast<std::int64_t>(point.number));
    for (const std::string& value : point.values) insert_->bind(column++, value);
    insert_->bind(column++, point.system);
    point.seed.empty() ? insert_->bind_null(column) : insert_->bind(column, point.seed);
    ++column;
    outcome.ran() ? insert_->bind_null(column) : insert_->bind(column, outcome.refused);
    ++column;
    for (std::size_t i = 0; i < study_.measures.size(); ++i, ++column)
        outcome.ran() ? insert_->bind(column, outcome.values[i]) : insert_->bind_null(column);
    insert_->step();
    outcomes_[point.number] = outcome;
    ++saved_;
}

void SweepStore::save(const SweepPoint& point, const SweepOutcome& outcome) {
    Transaction all(*database_);
    for (const std::size_t number : same_points(study_, point.number))
        if (shard_.has(number) && !outcomes_[number]) insert(point_of(study_, number), outcome);
    all.commit();
}

void SweepStore::save_all(const SweepOutcomes& outcomes) {
    Transaction all(*database_);
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (outcomes[i]) insert(point_of(study_, i), *outcomes[i]);
    all.commit();
}

void SweepStore::close() {
    insert_.reset();
    if (database_) database_->run("PRAGMA journal_mode = DELETE");
    database_.reset();
    lock_.reset();
}

// Not the database itself: over NFS flock() and SQLite's own locks are in each other's way.
WriterLock::WriterLock(const std::string& file) : path_(file + "-lock") {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
        descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor_ < 0)
            throw input_error("{}: cannot be written: {}", printable(file), std::strerror(errno));
        const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
        if (locked && still_there(descriptor_, path_)) return;
        close(descriptor_);
        if (!locked && errno == EWOULDBLOCK) break;
    }
    throw input_error("{}: another moehub is writing to it", printable(file));
}

WriterLock::~WriterLock() {
    unlink(path_.c_str());
    close(descriptor_);
}

MergedSweep merge_sweeps(const std::string& target, const std::vector<std::string>& sources) {
    if (fs::exists(fs::symlink_status(target)))
        throw InputError(printable(target) + ": exists, allowed: a new file");
    MergedSweep merged;
    SweepIdentity identity;
    std::optional<Source> first;
    for (const std::string& path : sources) {
        Source source = opened(path);
        if (!first) {
            merged.study = source.file.study;
            identity = source.file.identity;
            merged.outcomes.resize(source.outcomes.size());
        } else {
            require_same(*first, source);
        }
        add(merged, source);
        if (!first) first = std::move(source);
    }
    merged.missing = static_cast<std::size_t>(
        std::count(merged.outcomes.begin(), merged.outcomes.end(), std::nullopt));
    const std::string neighbour = fmt::format("{}.{}", target, getpid());
    try {
        write(neighbour, merged, identity);
        if (std::rename(neighbour.c_str(), target.c_str()) != 0)
            throw input_error("{}: cannot be written: {}", printable(target), std::strerror(errno));
    } catch (const InputError&) {
        for (const char* end : {"", "-wal", "-shm", "-journal", "-lock"})
            unlink((neighbour + end).c_str());
        throw;
    }
    return merged;
}

}  // namespace moehub
