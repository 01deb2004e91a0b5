/// A paper's evaluation run anew: every number it publishes beside the simulator's.
///
///     const Reproduction all = reproduce("moe-hub");
///     for (const PublishedNumber& one : all.numbers)
///         fmt::print("{}: {} published, {:.2f} here\n", one.what, one.paper, one.ours);
///
/// Same bytes on any number of threads.
#pragma once
#include <moehub/collective.hpp>
#include <moehub/units.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct ReproduceOptions {
    std::optional<std::string> figure;  ///< name of the only figure to run; nothing: all of them
    bool quick = false;  ///< a few cells of each figure: means are not the paper's means
    int threads = 0;     ///< cells simulated at a time; 0: as many as there are cores
    /// Called now and then with (cells done, cells in all), by one thread at a time; what it throws
    /// ends the run. May be empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// How a number is meant.
enum class NumberKind {
    ratio,  ///< ratio of two times or throughputs
    share,  ///< share of a whole, printed in percent
    time,   ///< time in µs
    size,   ///< size in GB, unless its name says otherwise
};

/// What a paper's means are.
enum class Means {
    none,        ///< it publishes numbers of single cells
    arithmetic,  ///< taken to be arithmetic; the geometric mean stands beside
    geometric,   ///< geometric, as the paper says
};

/// One way to read what a paper leaves open, as changes to its machine.
struct Reading {
    std::string name;                  ///< one or two words
    std::string what;                  ///< what is read so, in a sentence
    std::vector<std::string> changes;  ///< changes as --set takes them; none: the machine as it is
};

/// A range of ours / published.
struct RatioRange {
    double least = 0;
    double most = 0;
    bool has(double ratio) const { return least <= ratio && ratio <= most; }
};

struct PublishedNumber {
    std::string figure;
    std::string what;
    NumberKind kind = NumberKind::ratio;
    double paper = 0;
    double ours = 0;          ///< our number; over several cells of a figure the paper's mean
    double geometric = 0;     ///< geometric mean of the cells
    std::string reason = {};  ///< why it differs; empty where it is as published, or quick
    /// Ours by the other readings, in their order; empty where they did not run it.
    std::vector<double> otherwise = {};
    std::string where = {};                ///< place in the paper
    std::optional<RatioRange> holds = {};  ///< range of ours / published that a reason is known for
    bool explained = true;  ///< false: it differs, and no reason holds for by how much

    double ratio() const { return ours / paper; }
    bool as_published() const;  ///< whether ours is within 10 % of the paper's
    /// Our number by any reading that ran it, 0 being the first.
    bool is_read(std::size_t reading) const { return reading <= otherwise.size(); }
    double read(std::size_t reading) const {
        return reading == 0 ? ours : otherwise.at(reading - 1);
    }
    bool as_published(std::size_t reading) const;  ///< false where the reading did not run it
};

/// What the paper states without a number.
struct PublishedClaim {
    std::string figure;
    std::string what;
    bool holds = false;
    std::string found = {};   ///< measurement here that decided it
    std::string reason = {};  ///< why it does not hold; empty where it does, or quick
    /// Whether it holds by the other readings; empty where they did not run it.
    std::vector<bool> otherwise = {};
    std::string where = {};  ///< place in the paper
    bool explained = true;   ///< false: it does not hold, and no reason is known
};

/// A figure with the values of every cell.
struct FigureTable {
    struct Column {
        std::string title;
        NumberKind kind = NumberKind::ratio;
    };
    struct Row {
        std::vector<std::string> labels;
        std::vector<std::optional<double>> values = {};  ///< nothing: it could not run; see notes
        bool mean = false;                               ///< mean over the rows above
    };
    std::string figure;
    std::string title;
    std::vector<std::string> labels;  ///< titles of the leading columns
    std::vector<Column> columns = {};
    std::vector<Row> rows = {};
    std::vector<std::string> notes = {};
};

/// What of a cell is simulated.
enum class CellWork {
    layer,          ///< one MoE layer
    communication,  ///< rows of one MoE layer alone: routing and experts take no time
    model,          ///< one MoE layer and the model around it, forward
    training,       ///< one MoE layer and the model around it, forward and backward
    sub_layer,      ///< a tensor-parallel sub-layer of a dense model
    all_reduce,     ///< NCCL's all-reduce in the switch, of as many bytes as the cell has tokens
};

/// What the merge units of switches saw of a sub-layer.
struct MergeUse {
    double deepest = 0;     ///< most lines that a port's table held
    double spread_us = 0;   ///< from a line's first request to its last, mean
    double longest_us = 0;  ///< longest time from a line's first request to its last
};

/// What tells one simulation of a paper from another.
struct CellKey {
    std::string model;
    int gpus = 0;
    std::int64_t tokens = 0;
    std::string routing;
    std::string system;
    std::string reading = {};  ///< name of the reading; empty: the first
    CellWork work = CellWork::model;
    std::vector<std::string> changes = {};  ///< overrides beyond the paper's, as --set takes them
    Grain grain = Grain::row;
    std::string part = {};     ///< name of a sub-layer: "L1"
    std::string machine = {};  ///< a preset, without the paper's changes and without its readings';
                               ///< empty: the paper's

    auto operator<=>(const CellKey&) const = default;
};

/// One layer as it was simulated.
struct ReproducedCell : CellKey {
    Ps time = 0;               ///< time of the layer
    Ps first_gemm = 0;         ///< time from the start to the end of the last GEMM-1
    Ps model_time = 0;         ///< time of the whole model; 0 where only the layer ran
    std::string refusal = {};  ///< why it could not run; then there are no times
    Ps communication = 0;      ///< the layer's exposed time, on the GPU that computes longest
    Ps compute = 0;            ///< the layer's time in which the longest computing GPU ran kernels
    Ps busier_way = 0;     ///< time in which the busiest GPU's wires carried something, counting at
                           ///< any time the direction that carried more
    Bytes bytes_up = 0;    ///< bytes of the layer on the wire, from GPUs to switches
    Bytes bytes_down = 0;  ///< bytes of the layer on the wire, from switches to GPUs
    Ps forward_time = 0;   ///< forward time of a whole dense model, where it is trained, too
    double link_use = 0;   ///< share of the time in which a GPU's links carried flits: mean over
                           ///< GPUs and both directions
    MergeUse merge = {};   ///< all 0: nothing was merged
};

struct Reproduction {
    std::string paper;               ///< name of the paper as the user gives it
    std::string title;               ///< title of what the paper proposes
    std::string arxiv;               ///< number of the paper on arXiv
    std::string venue;               ///< where it was published; may be empty
    std::vector<std::string> setup;  ///< what all cells have in common, a sentence each
    /// Tables, claims and reasons are the first reading's. One or none: nothing is to choose.
    std::vector<Reading> readings;
    Means means = Means::arithmetic;
    std::string figure;  ///< name of the only figure that ran; empty: all
    bool quick = false;
    std::vector<PublishedNumber> numbers;
    std::vector<PublishedClaim> claims;
    std::vector<FigureTable> tables;
    /// Simulated cells, once however many figures use one. Empty where tables have all there is.
    std::vector<ReproducedCell> cells;
};

/// Stands for a reason where none is known, or none that holds.
inline constexpr const char* kNoExplanation = "no explanation yet";

struct NamedFigure {
    std::string name;
    std::string title;
};

/// A paper that can be reproduced.
struct PaperInfo {
    std::string name;   ///< "moe-hub"
    std::string title;  ///< "MoE-Hub, destination-agnostic communication (arXiv 2605.05888, …)"
    std::vector<NamedFigure> figures;
};
std::vector<PaperInfo> papers();

/// Runs a paper's evaluation. Throws InputError for an unknown paper or figure.
Reproduction reproduce(const std::string& paper, const ReproduceOptions& options = {});

}  // namespace moehub
