/// The kinds of measurement files that validate() knows: header, parse, predict.
/// Adding one is a parse function, a predict function and a row in file_kinds().
#pragma once
#include "base/csv.hpp"

#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/presets.hpp>

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
Shape shape_of(const CsvRow& row, std::initializer_list<std::string_view> columns);
/// What was measured, above 0; 0: the field is empty. Throws InputError.
double value_in(const CsvRow& row, std::string_view column);

/// What every kind of row has: a shape and one measurement of it.
struct Measurement {
    std::string name;  ///< of its line in the summary
    Shape shape;
    double value = 0;       ///< 0: the row has none
    std::string unit;       ///< "us" or "GB/s"
    std::string card = {};  ///< GPU preset that the row names; empty: it names none
};

/// A value in the unit of the measurement, or the reason why there is none.
struct Prediction {
    std::optional<double> value;
    std::string why;
    std::string who = {};  ///< whom the reason is about; empty: the measurement's name
    /// Further columns of the row, known by then; the same ones of every row of a file.
    Shape shape = {};
};
inline Prediction skip(std::string why, std::string who = {}) {
    return {std::nullopt, std::move(why), std::move(who)};
}

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
    Overrides settings;  ///< of all machines that rows name
    /// As the settings change it; of so many GPUs. Throw InputError.
    Machine machine(const std::string& name) const { return load_machine(name, settings); }
    Machine machine(const std::string& name, int gpus) const {
        return with_gpus(machine(name), gpus);
    }

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

/// What the rows of a file were measured on.
enum class MeasuredOn {
    card,        ///< PredictContext::gpu
    named_card,  ///< one of PredictContext::cards
    machine,     ///< of PredictContext::machine()
};

struct FileKind {
    std::string_view name;
    std::string_view header;  ///< column names, comma-separated
    std::function<std::vector<MeasuredCase>(const CsvRow&)> parse;
    MeasuredOn on = MeasuredOn::machine;
};

/// All kinds.
std::vector<FileKind> file_kinds();

/// The kind whose columns are the table's, in any order. Throws InputError naming all kinds.
FileKind file_kind_of(const CsvTable& table);

/// Every row of the table. Throws InputError at the first that does not parse.
std::vector<MeasuredCase> parse_cases(const CsvTable& table, const FileKind& kind);

}  // namespace moehub
