/// A JSON value to fill in and write out. Not nlohmann's own: each file that writes with that takes
/// seconds to compile; json.cpp does it for all.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace moehub {

/// Null until something is put in. Members keep the order in which they were put in.
class Json {
  public:
    using Member = std::pair<std::string, Json>;

    Json() = default;
    Json(std::nullptr_t) {}
    Json(bool value) : value_(value) {}
    Json(double value) : value_(value) {}
    template <std::signed_integral Whole>
    Json(Whole value) : value_(static_cast<std::int64_t>(value)) {}
    template <std::unsigned_integral Whole>
    requires(!std::same_as<Whole, bool>) Json(Whole value)
        : value_(static_cast<std::uint64_t>(value)) {}
    Json(const char* text) : value_(std::string(text)) {}
    Json(std::string_view text) : value_(std::string(text)) {}
    Json(std::string text) : value_(std::move(text)) {}
    template <class Value>
    Json(const std::vector<Value>& values) : value_(List(values.begin(), values.end())) {}
    /// Pairs {"name", value} make an object, other values a list.
    Json(std::initializer_list<Json> values);

    static Json array() { return List{}; }
    static Json object() { return Members{}; }
    /// Throws std::exception: for text that moehub wrote itself.
    static Json parse(const std::string& text);

    /// The member of that name, null when it is new. A null value becomes an object first.
    Json& operator[](std::string_view name);
    /// Puts a member before all others, none of that name among them.
    void put_first(std::string_view name, Json value);
    /// Adds to a list; a null value becomes a list first.
    void push_back(Json value) { emplace_back() = std::move(value); }
    Json& emplace_back();
    Json& back();  ///< last value of a list that is not empty

    /// Calls the visitor with what it holds: a std::nullptr_t, bool, double, std::int64_t,
    /// std::uint64_t, std::string, std::vector<Json> or std::vector<Member>.
    template <class Visitor>
    decltype(auto) visit(Visitor&& visitor) const {
        return std::visit(std::forward<Visitor>(visitor), value_);
    }

    /// What is no UTF-8 is replaced by U+FFFD.
    std::string dump(int indent) const;

  private:
    friend struct JsonWriter;
    using List = std::vector<Json>;
    using Members = std::vector<Member>;
    Json(List list) : value_(std::move(list)) {}
    Json(Members members) : value_(std::move(members)) {}

    std::variant<std::nullptr_t, bool, double, std::int64_t, std::uint64_t, std::string, List,
                 Members>
        value_;
};

}  // namespace moehub
