#include "base/json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace moehub {

using Ordered = nlohmann::ordered_json;

/// Conversions to and from nlohmann's values, which know how numbers and text are written.
struct JsonWriter {
    static Ordered written(const Json& json) {
        return std::visit([](const auto& value) { return written_value(value); }, json.value_);
    }

    template <class Value>
    static Ordered written_value(const Value& value) {
        if constexpr (std::is_same_v<Value, Json::List>) {
            Ordered list = Ordered::array();
            for (const Json& one : value) list.push_back(written(one));
            return list;
        } else if constexpr (std::is_same_v<Value, Json::Members>) {
            Ordered object = Ordered::object();
            for (const auto& [name, one] : value) object[name] = written(one);
            return object;
        } else {
            return value;
        }
    }

    static Json read(const Ordered& from) {
        if (from.is_boolean()) return from.get<bool>();
        if (from.is_number_unsigned()) return from.get<std::uint64_t>();
        if (from.is_number_integer()) return from.get<std::int64_t>();
        if (from.is_number()) return from.get<double>();
        if (from.is_string()) return from.get<std::string>();
        if (from.is_array()) {
            Json list = Json::array();
            for (const Ordered& one : from) list.push_back(read(one));
            return list;
        }
        if (!from.is_object()) return nullptr;
        Json object = Json::object();
        for (const auto& [name, one] : from.items()) object[name] = read(one);
        return object;
    }

    static bool is_pair(const Json& json) {
        const auto* const list = std::get_if<Json::List>(&json.value_);
        return list != nullptr && list->size() == 2 &&
               std::holds_alternative<std::string>(list->front().value_);
    }

    static Json::Member pair(const Json& json) {
        const auto& list = std::get<Json::List>(json.value_);
        return {std::get<std::string>(list[0].value_), list[1]};
    }
};

Json::Json(std::initializer_list<Json> values) {
    if (!std::all_of(values.begin(), values.end(), JsonWriter::is_pair)) {
        value_ = List(values);
        return;
    }
    Members members;
    for (const Json& one : values) members.push_back(JsonWriter::pair(one));
    value_ = std::move(members);
}

Json Json::parse(const std::string& text) {
    return JsonWriter::read(Ordered::parse(text));
}

Json& Json::operator[](std::string_view name) {
    if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Members{};
    auto& members = std::get<Members>(value_);
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const Member& one) { return one.first == name; });
    if (found != members.end()) return found->second;
    return members.emplace_back(name, Json()).second;
}

void Json::put_first(std::string_view name, Json value) {
    if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Members{};
    auto& members = std::get<Members>(value_);
    members.emplace(members.begin(), name, std::move(value));
}

Json& Json::emplace_back() {
    if (std::holds_alternative<std::nullptr_t>(value_)) value_ = List{};
    return std::get<List>(value_).emplace_back();
}

Json& Json::back() {
    return std::get<List>(value_).back();
}

std::string Json::dump(int indent) const {
    return JsonWriter::written(*this).dump(indent, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace moehub
