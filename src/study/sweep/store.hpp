/// Results of a sweep in an SQLite file, each as soon as it is there: one row a point in the table
/// `results`, what was asked in `study`. docs/sweeps.md has the schema.
#pragma once
#include "base/sqlite.hpp"
#include "study/sweep/study.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Holds FILE-lock, which a process that dies leaves behind unlocked, from construction on.
class WriterLock {
  public:
    /// Throws InputError when another process holds it, or it cannot be made.
    explicit WriterLock(const std::string& file);
    ~WriterLock();
    WriterLock(const WriterLock&) = delete;
    WriterLock& operator=(const WriterLock&) = delete;

  private:
    std::string path_;
    int descriptor_ = -1;
};

/// A share of a study's points: those whose number modulo `of` is `index`.
struct SweepShard {
    std::size_t index = 0;  ///< number of the share, from 0
    std::size_t of = 1;

    bool has(std::size_t point) const { return point % of == index; }
    bool operator==(const SweepShard&) const = default;
};

/// What a file's results are of; results of others do not go together with them.
struct SweepIdentity {
    std::string program;     ///< name, version, checksum of its sources
    std::string definition;  ///< text of definition_of(study)
    std::string inputs;      ///< a checksum of all that was loaded: machines, models, routings
    SweepShard shard;
};

inline constexpr int kSweepSchema = 2;

/// The results of a sweep in a file. One writer at a time, this object; others may read meanwhile.
class SweepStore {
  public:
    /// Makes the file where there is none. Throws InputError, with the file as it was, when it is
    /// no database, another's, of another schema, program or study, or being written.
    SweepStore(const std::string& path, const Study& study, const SweepIdentity& identity);
    ~SweepStore();

    /// Outcomes by number of point; none where a point has not run.
    const SweepOutcomes& outcomes() const { return outcomes_; }
    std::size_t saved() const { return saved_; }
    /// How many points the shard has.
    std::size_t points() const;
    /// Numbers of the shard's points without outcome; the first of those that are the same.
    std::vector<std::size_t> missing() const;
    const std::string& path() const { return path_; }

    /// Saves the outcome of the point and of the shard's points that are the same: on disk when it
    /// returns, whatever then happens to this process. Throws InputError, with all that was saved
    /// before still there. One thread at a time.
    void save(const SweepPoint& point, const SweepOutcome& outcome);

    /// Saves all given outcomes in one step. Throws InputError.
    void save_all(const SweepOutcomes& outcomes);

    /// Closes the store and leaves one plain file. Throws InputError.
    void close();

  private:
    void open(const SweepIdentity& identity);
    void create(const SweepIdentity& identity);
    void insert(const SweepPoint& point, const SweepOutcome& outcome);

    const Study study_;
    std::string path_;
    SweepShard shard_;
    std::optional<WriterLock> lock_;
    std::optional<Database> database_;
    std::optional<Statement> insert_;
    SweepOutcomes outcomes_;
    std::size_t saved_ = 0;
};

/// The outcomes of a file that has all points of the shard, which is only read: it may lie on a
/// disk that cannot be written. Nothing where points are missing or there is no such file. Throws
/// InputError as a SweepStore does.
std::optional<SweepOutcomes> finished_outcomes(const std::string& path, const Study& study,
                                               const SweepIdentity& identity);

/// What a file says of itself.
struct SweepFile {
    Study study;
    SweepIdentity identity;
};

/// What the database says of itself. Throws InputError when it is no sweep's, or of another schema.
SweepFile read_sweep_file(Database& database);
/// Outcomes by number of point; none where a point has not run. Throws InputError for what no sweep
/// has written.
SweepOutcomes read_outcomes(Database& database, const Study& study);

struct MergedSweep {
    Study study;
    SweepOutcomes outcomes;
    std::size_t missing = 0;  ///< points that no file has
};

/// Writes the rows of all files to `target`, as one that was never cut: into a neighbour first,
/// then renamed. Throws InputError, with `target` as it was, when it exists, when a file is of
/// another schema, program or study than the first or being written, or when two have different
/// results for a point.
MergedSweep merge_sweeps(const std::string& target, const std::vector<std::string>& sources);

}  // namespace moehub
