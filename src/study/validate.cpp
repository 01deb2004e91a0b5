#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/presets.hpp>
#include <moehub/served_model.hpp>
#include <moehub/training_runs.hpp>
#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

/// Quantile of sorted values, linear between neighbours: q = 0.5 of {1, 2} is 1.5.
double quantile(const std::vector<double>& sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

ValidationSummary summarise(const std::string& name, std::vector<double> errors) {
    std::sort(errors.begin(), errors.end());
    double sum = 0;
    for (const double error : errors) sum += error;
    return {name,
            errors.size(),
            quantile(errors, 0.5),
            sum / static_cast<double>(errors.size()),
            quantile(errors, 0.9),
            errors.back()};
}

std::vector<ValidationSummary> summarise(const std::vector<ValidationRow>& rows) {
    std::vector<std::pair<std::string, std::vector<double>>> groups;
    for (const auto& row : rows) {
        auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& one) { return one.first == row.name; });
        if (group == groups.end()) group = groups.insert(groups.end(), {row.name, {}});
        group->second.push_back(std::abs(row.error));
    }
    std::vector<ValidationSummary> summary;
    for (auto& [name, errors] : groups) summary.push_back(summarise(name, std::move(errors)));
    return summary;
}

void count_skipped(std::vector<ValidationSkipped>& skipped, const std::string& name,
                   const std::string& why) {
    const auto known = std::find_if(skipped.begin(), skipped.end(), [&](const auto& one) {
        return one.name == name && one.why == why;
    });
    if (known == skipped.end())
        skipped.push_back({name, 1, why});
    else
        ++known->rows;
}

Prediction prediction_of(const MeasuredCase& one, const PredictContext& context) {
    try {
        return one.predict(context);
    } catch (const RowSkipped& skipped) {
        return skip(skipped.what(), skipped.who);
    } catch (const InputError& error) {
        return skip(error.what());
    }
}

void add_prediction(Validation& validation, const MeasuredCase& one, Prediction prediction) {
    const auto& [name, shape, measured, unit, card] = one.measurement;
    const bool usable =
        prediction.value && std::isfinite(*prediction.value) && *prediction.value > 0;
    if (!usable) {
        if (prediction.value) prediction.why = "the model predicts no time at all";
        count_skipped(validation.skipped, prediction.who.empty() ? name : prediction.who,
                      prediction.why);
        return;
    }
    const double error = *prediction.value / measured - 1;
    validation.rows.push_back({one.line, name, shape, unit, measured, *prediction.value, error});
    auto& columns = validation.rows.back().shape;
    columns.insert(columns.end(), prediction.shape.begin(), prediction.shape.end());
}

/// Settings of a card: those of a machine that begin with "gpu.", without that.
Overrides card_settings(const Overrides& settings) {
    constexpr std::string_view kPrefix = "gpu.";
    Overrides of_card;
    for (const std::string& one : settings) {
        if (!one.starts_with(kPrefix))
            throw input_error("--set: found {}, allowed: gpu.KEY=VALUE, as the rows are of cards",
                              quoted(one));
        of_card.push_back(one.substr(kPrefix.size()));
    }
    return of_card;
}

/// Every card that a row names.
std::map<std::string, NamedCard> cards_of(const Cases& cases, const Overrides& settings) {
    std::map<std::string, NamedCard> cards;
    for (const auto& one : cases) {
        const std::string& name = one.measurement.card;
        if (name.empty() || cards.contains(name)) continue;
        try {
            cards[name].gpu = load_gpu(name, settings);
        } catch (const InputError& error) {
            cards[name].why = error.what();
        }
    }
    return cards;
}

PredictContext context_of(const Cases& cases, MeasuredOn on, const ValidateOptions& options) {
    const bool machines = on == MeasuredOn::machine;
    const Overrides of_card = machines ? Overrides{} : card_settings(options.settings);
    load_machine("dgx-h100",
                 options.settings);  // refuses unknown keys before rows are skipped for them
    PredictContext context;
    context.settings = options.settings;
    if (!machines) context.cards = cards_of(cases, of_card);
    context.serving = std::make_shared<ServingBench>(options.settings);
    context.served = std::make_shared<std::map<std::string, ServedStep>>();
    context.training = std::make_shared<RunAnswers>(options.settings);
    if (on == MeasuredOn::card) context.gpu = load_gpu(options.gpu, of_card);
    return context;
}

/// The cases but those that are shorter than asked for.
Cases long_enough(Cases cases, Ps above) {
    std::erase_if(cases, [above](const MeasuredCase& one) {
        const auto& [name, shape, value, unit, card] = one.measurement;
        return unit == "us" && value > 0 && value < to_us(above);
    });
    return cases;
}

}  // namespace

Validation validate(const std::string& path, const ValidateOptions& options) {
    const auto table = CsvTable::read(path);
    const auto kind = file_kind_of(table);
    auto cases = parse_cases(table, kind);
    if (cases.empty()) throw InputError(path + ": a header without rows, allowed: one or more");
    cases = long_enough(std::move(cases), options.above);
    if (cases.empty())
        throw input_error("{}: no row takes {} µs or more", path, to_us(options.above));
    const PredictContext context = context_of(cases, kind.on, options);

    Validation validation;
    validation.kind = kind.name;
    std::size_t done = 0;
    for (const auto& one : cases) {
        if (one.measurement.value > 0)
            add_prediction(validation, one, prediction_of(one, context));
        else
            count_skipped(validation.skipped, one.measurement.name,
                          "the row has no measured value");
        if (options.progress) options.progress(++done, cases.size());
    }
    validation.summary = summarise(validation.rows);
    return validation;
}

}  // namespace moehub
