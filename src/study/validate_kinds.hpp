/// The kinds of measurement files that validate() knows: header, and the cases of a row.
/// Adding one is a function declared at the end of this file and a row in file_kinds().
#pragma once
#include "base/csv.hpp"

#include <moehub/error.hpp>
#include <moehub/gpu.hpp>
#include <moehub/kernel_calls.hpp>
#include <moehub/machine.hpp>
#include <moehub/predict.hpp>
#include <moehub/presets.hpp>
#include <moehub/routing.hpp>
#include <moehub/serving.hpp>
#include <moehub/units.hpp>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moehub {

class RunAnswers;
struct ServedStep;
class ServingBench;

using Shape = std::vector<std::pair<std::string, std::string>>;  ///< columns and their fields
/// A measured value, above 0; 0: the field is empty. Throws InputError.
double value_in(const CsvRow& row, std::string_view column);

/// What every kind of row has: a shape and one measurement of it.
struct Measurement {
    std::string name;       ///< name of its line in the summary
    Shape shape;            ///< unmarked columns; parse_cases() puts the marked ones before
    double value = 0;       ///< 0: the row has none
    std::string unit;       ///< "us" or "GB/s"
    std::string card = {};  ///< GPU preset that the row names; empty: it names none
};
/// A measurement in microseconds.
Measurement timed(const CsvRow& row, std::string name, std::string_view column = "us",
                  Shape more = {});

/// A whole number that fits an int.
inline int whole(const CsvRow& row, std::string_view column, std::int64_t least,
                 std::int64_t most) {
    return static_cast<int>(row.integer(column, least, most));
}
/// Columns that are whole numbers, at least 1, and where they go; those that a row may leave empty
/// stay as they are.
using Extents = std::initializer_list<std::pair<std::string_view, std::int64_t*>>;
void read_extents(const CsvRow& row, std::int64_t least, std::int64_t most, const Extents& extents);
/// Throws InputError unless the row has as many heads for each of its key-value heads.
void check_heads(const CsvRow& row, std::int64_t heads, std::int64_t kv_heads);

/// The value of a key, made where it is missing: rows of a file share simulations.
template <class Map, class Make>
typename Map::mapped_type& remembered(Map& map, const typename Map::key_type& key,
                                      const Make& make) {
    auto known = map.find(key);
    if (known == map.end()) known = map.emplace(key, make()).first;
    return known->second;
}

/// A value in the unit of the measurement, or the reason why there is none.
struct Prediction {
    std::optional<double> value;
    std::string why = {};
    std::string who = {};  ///< whom the reason is about; empty: the measurement's name
    /// Further columns of the row, known by then; the same ones of every row of a file.
    Shape shape = {};
};
inline Prediction skip(std::string why, std::string who = {}) {
    return {std::nullopt, std::move(why), std::move(who)};
}
/// A time of the card's model, in microseconds.
inline Prediction modelled(std::optional<Ps> time, std::string_view what = "operator") {
    if (!time) return skip("no model of this " + std::string(what) + ", or not of this size");
    return {to_us(*time)};
}

/// Thrown by a prediction whose row is skipped for a name in the row.
class RowSkipped : public InputError {
  public:
    RowSkipped(const std::string& why, std::string whom) : InputError(why), who(std::move(whom)) {}
    std::string who;  ///< whom the reason is about
};

/// A card that rows name, or why there is none.
struct NamedCard {
    std::optional<Gpu> gpu;
    std::string why;
};

/// Times of rows underway, in microseconds.
struct RowTimes {
    double dispatch = 0;
    double combine = 0;
};

/// What predictions may need besides their row.
struct PredictContext {
    Overrides settings;  ///< settings of all machines that rows name
    /// The machine as the settings change it, of `gpus` GPUs where given. Throws InputError.
    Machine machine(const std::string& name) const { return load_machine(name, settings); }
    Machine machine(const std::string& name, int gpus) const {
        return with_gpus(machine(name), gpus);
    }
    /// The machine of `gpus` GPUs; throws RowSkipped where there is none.
    Machine machine_or_skip(const std::string& name, int gpus) const;

    Gpu gpu;                                 ///< card of rows that name none
    std::map<std::string, NamedCard> cards;  ///< cards that rows name
    /// Times by what was simulated: rows of a file share simulations.
    std::shared_ptr<std::map<std::string, RowTimes>> simulated =
        std::make_shared<std::map<std::string, RowTimes>>();
    std::shared_ptr<ServingBench> serving;  ///< what rows of serving share
    /// Steps by what was served: rows of a breakdown are of the same.
    std::shared_ptr<std::map<std::string, ServedStep>> served;
    std::shared_ptr<RunAnswers> training;  ///< what rows of training runs share
};

/// One measurement that is ready to be predicted.
struct MeasuredCase {
    Measurement measurement;
    /// An InputError says why the row is skipped.
    std::function<Prediction(const PredictContext&)> predict;
    int line = 0;  ///< line of the file; parse_cases() knows it
};
using Cases = std::vector<MeasuredCase>;

/// What the rows of a file were measured on.
enum class MeasuredOn {
    card,        ///< PredictContext::gpu
    named_card,  ///< one of PredictContext::cards
    machine,     ///< a machine of PredictContext::machine()
};

struct FileKind {
    std::string_view name;
    std::string_view header;  ///< column names, comma-separated; * behind those of the shape
    Cases (*parse)(const CsvRow&);
    MeasuredOn on = MeasuredOn::machine;
};

/// All kinds of files.
std::vector<FileKind> file_kinds();

/// The kind whose columns are the table's, in any order. Throws InputError naming all kinds.
FileKind file_kind_of(const CsvTable& table);

/// The columns that the kind marks.
Shape shape_of(const CsvRow& row, const FileKind& kind);

/// Every row of the table. Throws InputError at the first that does not parse.
Cases parse_cases(const CsvTable& table, const FileKind& kind);

// What the rows of each kind of measurement file are, ready to be predicted. Names in rows stay
// text: a row with one that moehub does not know is skipped, not an error.

// Cases of one card: operators and layers of PyTorch, what training adds, copies.
Cases operator_cases(const CsvRow& row);
Cases layer_cases(const CsvRow& row);
Cases eager_cases(const CsvRow& row);           ///< a case for every phase
Cases training_op_cases(const CsvRow& row);     ///< what training adds
Cases long_attention_cases(const CsvRow& row);  ///< forward, and forward with backward
Cases whole_layer_cases(const CsvRow& row);     ///< eager, as a CUDA graph, with its backward pass
Cases copy_cases(const CsvRow& row);            ///< rows gathered by index; fills, which only store
Cases beside_copy_cases(const CsvRow& row);

struct LayerRowCase {
    Measurement measurement;
    LayerOperator op;
    std::string dtype;
};
LayerRowCase parse_layer(const CsvRow& row);

// Collectives: by algorithm, as sources name them between nodes and in racks, by element and size.
Cases collective_cases(const CsvRow& row);
Cases cluster_collective_cases(const CsvRow& row);
Cases nccl_cases(const CsvRow& row);

// Dispatch and combine: inside a node, of DeepEP's kernels, on clusters.
Cases moe_comm_cases(const CsvRow& row);
Cases deepep_ll_cases(const CsvRow& row);
Cases deepep_normal_cases(const CsvRow& row);
Cases cluster_comm_cases(const CsvRow& row);

/// A layer of which only rows move.
struct MovedRows {
    std::string system;  ///< system that is simulated: the version that was measured
    std::string machine;
    std::string routing;  ///< as parse_routing reads it; empty: by scores
    bool combine = false;
    int gpus = 0;
    int sms = 0;  ///< 0: the system's own
    std::int64_t tokens_per_gpu = 0;
    int hidden = 0;
    int experts = 0;
    int top_k = 0;
    int groups = 1;               ///< groups of experts: nodes
    int top_groups = 1;           ///< groups that a token may reach
    double dispatch_element = 0;  ///< bytes of an element; 0: the system's own
    double combine_element = 0;   ///< bytes of an element; 0: the system's own
};
/// A routing whose tokens choose as in DeepEP's tests: experts have random scores; the groups with
/// the best expert are kept, and of their experts the best.
Routing routing_by_scores(const MovedRows& what, std::int64_t tokens);

// Kernels of serving engines, as published (validation/kernels): a row names its card.
struct KernelCase {
    Measurement measurement;
    std::string library;
    KernelCall call;
};
KernelCase parse_gemm(const CsvRow& row);
KernelCase parse_attention(const CsvRow& row);  ///< prefill, and decode: one token
KernelCase parse_mla(const CsvRow& row);
KernelCase parse_moe(const CsvRow& row);
Prediction predict_kernel_case(const KernelCase& what, const PredictContext& context);

template <KernelCase (*parse)(const CsvRow&)>
Cases kernel_cases(const CsvRow& row) {
    const KernelCase what = parse(row);
    return {{what.measurement,
             [what](const PredictContext& context) { return predict_kernel_case(what, context); }}};
}

// Published serving: validate_serving.cpp says how columns of end-to-end measurements are read,
// validate_served.cpp those of large-scale deployments and of times of a layer's operators.
Cases serving_cases(const CsvRow& row);
Cases served_cases(const CsvRow& row);
Cases served_part_cases(const CsvRow& row);

/// Published training runs: tokens/s, TFLOP/s, MFU or seconds, the first that is given.
Cases training_run_cases(const CsvRow& row);

// Published end-to-end serving measurements.
//
// How their columns are read (docs/serving.md says from what that was found):
//   - requests_per_worker counts the requests of one attention group: a worker has attention_dp
//     times as many.
//   - Where tp · attention_dp = moe_tp · moe_ep = n² and either moe_tp = moe_ep = n or
//     tp = attention_dp = n, the engine's two options of n were multiplied: the worker has n GPUs
//     and its experts are dealt out among them.
//   - Where heads do not divide, workers of a deployment that reads prompts elsewhere were counted
//     together: attention is data parallel, experts are dealt out, and nothing is prefilled.
//     Experts that would be cut below the 128 columns of a scale's block are dealt out, too.
//   - A row that is faster than HBM at its peak gives the weights and the cache is skipped.
//   - A model with a layer for multi-token prediction that is faster than kSpeculative of its
//     predicted time runs with it.

struct ServingRow {
    Measurement measurement;
    std::string engine;
    std::string model;
    std::string gpu;
    std::string weights;  ///< format of the weights as the file calls it; empty: bf16
    ServingLayout layout;
    RequestLoad load;
};
ServingRow parse_serving(const CsvRow& row);

/// Presets, predictions and simulations that rows share, each once.
class ServingBench {
  public:
    ServingBench() = default;
    explicit ServingBench(Overrides settings) : settings_(std::move(settings)) {}

    /// The case of a row. Throws InputError where a name is not known or the layout is impossible.
    ServingCase serving_case(const ServingRow& row);
    ServingClock clock(ServingCase what);

    EngineSpec& engine(const std::string& name);  ///< an engine, which a fit may change

  private:
    const Machine& machine(const std::string& gpu, int gpus);

    Overrides settings_;
    std::map<std::string, Machine> machines_;
    std::map<std::string, Model> models_;
    std::map<std::string, EngineSpec> engines_;
    std::map<std::string, std::shared_ptr<ServingCosts>> costs_;
};

inline constexpr double kSpeculative = 0.72;
// Multi-token prediction: guesses a step checks, and those that are right.
inline constexpr int kDrafts = 3;
inline constexpr double kAccepted = 1.5;

/// Seconds per output token; 0: no time above 0 can be right, the row is faster than memory.
struct ServingTpot {
    double seconds = 0;
    bool speculative = false;
};
ServingTpot predicted_tpot(const ServingClock& clock, const ServingRow& row);

}  // namespace moehub
