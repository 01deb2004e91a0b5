/// The kinds of measurement files that validate() knows: header, parse, predict.
/// Adding one is a parse function, a predict function and a row in file_kinds().
#pragma once
#include "base/csv.hpp"

#include <moehub/gpu.hpp>

#include <functional>
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

/// What every kind of row has: a shape and one measurement of it.
struct Measurement {
    std::string name;  ///< of its line in the summary
    std::vector<std::pair<std::string, std::string>> shape;
    double value = 0;
    std::string unit;       ///< "us" or "GB/s"
    std::string card = {};  ///< GPU preset that the row names; empty: it names none
};

/// A value in the unit of the measurement, or the reason why there is none.
struct Prediction {
    std::optional<double> value;
    std::string why;
    std::string who = {};  ///< whom the reason is about; empty: the measurement's name
    /// Further columns of the row, known by then; the same ones of every row of a file.
    std::vector<std::pair<std::string, std::string>> shape = {};
};

/// A card that rows name, or why there is none.
struct NamedCard {
    std::optional<Gpu> gpu;
    std::string why;
};

/// Of rows underway, in microseconds.
struct RowTimes {
    double dispatch = 0;
    double combine = 0;
};

/// What predictions may need besides their row.
struct PredictContext {
    Gpu gpu;                                 ///< of rows that name none
    std::map<std::string, NamedCard> cards;  ///< all that rows name
    /// By what was simulated: rows of a file share simulations.
    std::shared_ptr<std::map<std::string, RowTimes>> simulated =
        std::make_shared<std::map<std::string, RowTimes>>();
    std::shared_ptr<ServingBench> serving;  ///< what rows of serving share
    /// Steps by what was served: rows of a breakdown are of the same.
    std::shared_ptr<std::map<std::string, ServedStep>> served;
    std::shared_ptr<RunAnswers> training;  ///< what rows of training runs share
};

/// One measurement that is ready to be predicted.
struct MeasuredCase {
    int line = 0;
    Measurement measurement;
    std::function<Prediction(const PredictContext&)> predict;
};

struct FileKind {
    std::string_view name;
    std::string_view header;  ///< column names, comma-separated
    std::function<std::vector<MeasuredCase>(const CsvRow&)> parse;
    bool needs_gpu = false;  ///< its predictions read PredictContext::gpu
};

/// All kinds.
std::vector<FileKind> file_kinds();

/// The kind whose columns are the table's, in any order. Throws InputError naming all kinds.
FileKind file_kind_of(const CsvTable& table);

/// Every row of the table. Throws InputError at the first that does not parse.
std::vector<MeasuredCase> parse_cases(const CsvTable& table, const FileKind& kind);

}  // namespace moehub
