/// Rows of published training runs as they are read: for validate and for rank_runs.
#pragma once
#include "base/csv.hpp"

#include <moehub/training_runs.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moehub {

/// Columns of the file.
constexpr std::string_view kTrainingRunColumns =
    "model,machine,gpus,precision,global_batch,micro_batch,sequence,tp,pp,vpp,cp,ep,etp,sharding,"
    "dispatcher,routing,overlap,recompute,tokens_per_s_per_gpu,tflops_per_gpu,mfu,step_s,source,"
    "note";

/// A row of the file as a run. Throws InputError "file:line: …".
PublishedRun parse_training_run(const CsvRow& row);

/// The list "a;b" as {"a", "b"}; empty parts are left out.
std::vector<std::string> parts_of_list(std::string_view list);

// How well the planner's order of published training runs agrees with the published one, within
// each model and source, and within each model.
//
// Runs are compared by MFU: of different batches, sequences and numbers of GPUs that is the one
// scale. Agreement is Spearman's rank correlation (rank_correlation in <moehub/plan.hpp>).

struct RankedRun {
    PublishedRun run;
    std::string layout;    ///< to_text of the layout that was timed
    double published = 0;  ///< published MFU, a fraction
    double predicted = 0;  ///< predicted MFU, a fraction
    bool fits = false;
};

/// At least kFewestRanked runs of one model, of one source or of all.
struct RankGroup {
    std::string model;
    std::string source;           ///< source of the runs; empty: all
    std::vector<RankedRun> runs;  ///< runs, best published first
    double correlation = 0;
    std::size_t pairs = 0;  ///< pairs of runs whose published figures differ
    /// Pairs that are predicted the other way round: numbers of runs, the better published first;
    /// largest published difference first.
    std::vector<std::pair<std::size_t, std::size_t>> swapped;
};
constexpr std::size_t kFewestRanked = 3;

struct RunNotRanked {
    int line = 0;
    std::string why;
};

struct RunRanking {
    std::vector<RankGroup> groups;  ///< groups by model, in order of appearance: sources, then all
    std::vector<RunNotRanked> left_out;
};

/// Throws InputError as read_published_runs. `progress` is called after each row with (rows done,
/// rows in all); may be empty.
RunRanking rank_runs(const std::string& path,
                     const std::function<void(std::size_t, std::size_t)>& progress = {});

/// The group of runs that are timed already.
RankGroup ranked_group(std::vector<RankedRun> runs);

}  // namespace moehub
