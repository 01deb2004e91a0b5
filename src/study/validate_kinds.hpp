/// The kinds of measurement files that validate() knows: header, and the cases of a row.
/// Adding one is a function in validate_cases.hpp and a row in file_kinds().
#pragma once
#include "base/csv.hpp"

#include <moehub/error.hpp>
#include <moehub/gpu.hpp>
#include <moehub/machine.hpp>
#include <moehub/presets.hpp>
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
/// Columns of the row, then those that are not in it.
Shape shape_of(const CsvRow& row, std::initializer_list<std::string_view> columns, Shape more = {});
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
/// One in microseconds.
Measurement timed(const CsvRow& row, std::string name, Shape shape, std::string_view column = "us");

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

/// Thrown by a prediction whose row is skipped for a name in it.
class RowSkipped : public InputError {
  public:
    RowSkipped(const std::string& why, std::string whom) : InputError(why), who(std::move(whom)) {}
    std::string who;  ///< as of Prediction
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
    Overrides settings;  ///< of all machines that rows name
    /// As the settings change it; of so many GPUs. Throw InputError.
    Machine machine(const std::string& name) const { return load_machine(name, settings); }
    Machine machine(const std::string& name, int gpus) const {
        return with_gpus(machine(name), gpus);
    }
    /// The same; throws RowSkipped where there is none.
    Machine machine_or_skip(const std::string& name, int gpus) const;

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
    /// An InputError says why the row is skipped.
    std::function<Prediction(const PredictContext&)> predict;
};
using Cases = std::vector<MeasuredCase>;

/// What the rows of a file were measured on.
enum class MeasuredOn {
    card,        ///< PredictContext::gpu
    named_card,  ///< one of PredictContext::cards
    machine,     ///< of PredictContext::machine()
};

struct FileKind {
    std::string_view name;
    std::string_view header;  ///< column names, comma-separated
    Cases (*parse)(const CsvRow&);
    MeasuredOn on = MeasuredOn::machine;
};

/// All kinds.
std::vector<FileKind> file_kinds();

/// The kind whose columns are the table's, in any order. Throws InputError naming all kinds.
FileKind file_kind_of(const CsvTable& table);

/// Every row of the table. Throws InputError at the first that does not parse.
Cases parse_cases(const CsvTable& table, const FileKind& kind);

}  // namespace moehub
