#include "base/json.hpp"

#include <moehub/validate.hpp>

#include <charconv>
#include <cmath>

namespace moehub {
namespace {

/// A number when the whole field is one, null when it is empty, otherwise text.
Json field_json(const std::string& field) {
    if (field.empty()) return nullptr;
    const char* const end = field.data() + field.size();
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(field.data(), end, whole);
        read.ec == std::errc() && read.ptr == end)
        return whole;
    double real = 0;
    if (const auto read = std::from_chars(field.data(), end, real);
        read.ec == std::errc() && read.ptr == end && std::isfinite(real))
        return real;
    return field;
}

Json row_json(const ValidationRow& row) {
    Json json;
    json["line"] = row.line;
    json["unit"] = row.unit;
    json["measured"] = row.measured;
    json["predicted"] = row.predicted;
    json["error"] = row.error;
    json["columns"] = Json::object();
    for (const auto& [column, field] : row.shape) json["columns"][column] = field_json(field);
    return json;
}

}  // namespace

std::string to_json(const Validation& validation) {
    Json json;
    json["kind"] = validation.kind;
    json["summary"] = Json::array();
    for (const auto& one : validation.summary)
        json["summary"].push_back({{"name", one.name},
                                   {"rows", one.rows},
                                   {"median", one.median},
                                   {"mean", one.mean},
                                   {"p90", one.p90},
                                   {"max", one.max}});
    json["skipped"] = Json::array();
    for (const auto& one : validation.skipped)
        json["skipped"].push_back({{"name", one.name}, {"rows", one.rows}, {"reason", one.why}});
    json["rows"] = Json::array();
    for (const auto& row : validation.rows) json["rows"].push_back(row_json(row));
    return json.dump(2) + "\n";
}

}  // namespace moehub
