#include "base/quantity.hpp"
#include "report/sweep_report.hpp"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos && !text.starts_with(' ') &&
        !text.ends_with(' '))
        return text;
    std::string field = "\"";
    for (const char c : text) {
        if (c == '"') field += '"';
        field += c;
    }
    return field + '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
    std::vector<std::string> quoted_fields;
    for (const std::string& field : fields) quoted_fields.push_back(csv_field(field));
    return fmt::format("{}\n", fmt::join(quoted_fields, ","));
}

std::string printed(const std::optional<double>& number) {
    return number ? print_number(*number) : "";
}

Json or_null(const std::optional<double>& number) {
    return number ? Json(*number) : Json(nullptr);
}

Json number_json(const SweepMeasure& measure, double number) {
    return measure.whole ? Json(std::llround(number)) : Json(number);
}

Json row_json(const Study& study, const SweepRow& row) {
    const std::vector<std::string> keys = keys_of(study);
    const std::vector<SweepMeasure>& measures = measures_of(study.kind);
    Json json;
    json["set"] = Json::array();
    for (std::size_t i = 0; i < keys.size(); ++i)
        json["set"].push_back(fmt::format("{}={}", keys[i], row.point.values[i]));
    json["system"] = row.point.system;
    json["seed"] = row.point.seed.empty() ? Json(nullptr) : Json(std::stoll(row.point.seed));
    json["refused"] = row.outcome->ran() ? Json(nullptr) : Json(row.outcome->refused);
    json["speedup"] = or_null(row.speedup);
    json["share_of_ideal"] = or_null(row.share_of_ideal);
    for (std::size_t i = 0; i < measures.size(); ++i)
        json[measures[i].name] =
            row.outcome->ran() ? number_json(measures[i], row.outcome->values[i]) : Json(nullptr);
    return json;
}

}  // namespace

std::string sweep_csv(const Study& study, const SweepOutcomes& outcomes) {
    const std::vector<SweepMeasure>& measures = measures_of(study.kind);
    std::vector<std::string> titles = keys_of(study);
    for (const char* one : {"system", "seed", "refused", "speedup", "share_of_ideal"})
        titles.emplace_back(one);
    for (const SweepMeasure& measure : measures) titles.push_back(measure.name);
    std::string text = csv_line(titles);
    for (const SweepRow& row : sweep_rows(study, outcomes)) {
        if (row.outcome == nullptr) continue;
        std::vector<std::string> fields = row.point.values;
        fields.push_back(row.point.system);
        fields.push_back(row.point.seed);
        fields.push_back(row.outcome->refused);
        fields.push_back(printed(row.speedup));
        fields.push_back(printed(row.share_of_ideal));
        for (std::size_t i = 0; i < measures.size(); ++i)
            fields.push_back(row.outcome->ran() ? print_number(row.outcome->values[i]) : "");
        text += csv_line(fields);
    }
    return text;
}

Json sweep_json(const Study& study, const SweepOutcomes& outcomes, const std::string& file) {
    Json json;
    json["study"] = study.name;
    json["title"] = study.title;
    json["kind"] = name_of(study.kind);
    json["systems"] = study.systems;
    json["baseline"] = baseline_of(study);
    json["set"] = Json::array();
    for (const StudySetting& setting : study.fixed)
        json["set"].push_back(fmt::format("{}={}", setting.key, setting.value));
    json["axes"] = Json::array();
    for (const SweepAxis& axis : study.axes) {
        Json& one = json["axes"].emplace_back();
        one["keys"] = axis.keys;
        one["values"] = Json::array();
        for (const auto& row : axis.rows) one["values"].push_back(Json(row));
    }
    json["points"] = points_in(study);
    json["database"] = file;
    json["results"] = Json::array();
    for (const SweepRow& row : sweep_rows(study, outcomes))
        if (row.outcome != nullptr) json["results"].push_back(row_json(study, row));
    return json;
}

}  // namespace moehub
