#include "place/layout/json_document.hpp"

#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace moehub {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 16;

[[noreturn]] void fail(const std::string& file, std::string_view what) {
    throw InputError(fmt::format("{}: {}", printable(file), what));
}

/// Whole and within the limits. The parser keeps numbers from 2^63 on apart.
bool fits(const Json& value, std::int64_t least, std::int64_t most) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        return false;
    const auto number = value.get<std::int64_t>();
    return number >= least && number <= most;
}

std::string found(const Json& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return fmt::format("a list of {}", value.size());
    if (value.is_string()) return moehub::quoted(value.get_ref<const std::string&>());
    return value.dump();
}

/// Sees the document while it is parsed.
class Watch {
  public:
    explicit Watch(const std::string& file) : file_(file) {}

    bool operator()(int depth, Json::parse_event_t event, const Json& value) {
        if (depth > kDeepest)
            fail(file_, fmt::format("nested more than {} deep, no layout is", kDeepest));
        // The members of an object that begins at some depth are one deeper.
        const auto inside = static_cast<std::size_t>(depth) + 1;
        if (event == Json::parse_event_t::object_start) {
            if (seen_.size() <= inside) seen_.resize(inside + 1);
            seen_[inside].clear();
        }
        if (event == Json::parse_event_t::key) {
            const auto& key = value.get_ref<const std::string&>();
            if (!seen_[static_cast<std::size_t>(depth)].insert(key).second)
                fail(file_, fmt::format("key {} stands twice, allowed: once", moehub::quoted(key)));
        }
        return true;
    }

  private:
    const std::string& file_;
    std::vector<std::set<std::string>> seen_;  ///< [depth] keys of the object that is open there
};

}  // namespace

bool JsonValue::is_list_of_lists() const {
    return is_list() && !value_->empty() && value_->front().is_array();
}

std::vector<std::string> JsonValue::keys() const {
    if (!value_->is_object()) reject("an object");
    std::vector<std::string> names;
    for (const auto& item : value_->items()) names.push_back(item.key());
    return names;
}

JsonValue JsonValue::member(std::string_view key) const {
    if (!value_->is_object()) reject(fmt::format("an object with {}", moehub::quoted(key)));
    const auto at = value_->find(key);
    const std::string path = where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
    if (at == value_->end()) fail(*file_, fmt::format("{}: not found, it is needed", path));
    return {*at, *file_, path};
}

std::size_t JsonValue::size() const {
    if (!is_list()) reject("a list");
    return value_->size();
}

JsonValue JsonValue::operator[](std::size_t at) const {
    return {value_->at(at), *file_, fmt::format("{}[{}]", where_, at)};
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
    if (!fits(*value_, least, most))
        reject(fmt::format("a whole number from {} to {}", least, most));
    return value_->get<std::int64_t>();
}

std::vector<int> JsonValue::integers(int least, int most) const {
    std::vector<int> numbers;
    numbers.reserve(size());
    for (std::size_t at = 0; at < value_->size(); ++at) {
        const Json& number = (*value_)[at];
        // Where it stands is only written out where there is something to say about it.
        if (!fits(number, least, most)) (*this)[at].integer(least, most);
        numbers.push_back(number.get<int>());
    }
    return numbers;
}

void JsonValue::reject(std::string_view allowed) const {
    fail(*file_, fmt::format("{}{}found {}, allowed: {}", where_, where_.empty() ? "" : ": ",
                             found(*value_), allowed));
}

nlohmann::json parse_json(std::string_view text, const std::string& file) {
    Watch watch(file);
    try {
        return Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& value) {
            return watch(depth, event, value);
        });
    } catch (const Json::parse_error& error) {
        const auto until = text.begin() + static_cast<std::ptrdiff_t>(
                                              std::min<std::size_t>(error.byte, text.size()));
        fail(file,
             fmt::format("line {}: not valid JSON", 1 + std::count(text.begin(), until, '\n')));
    } catch (const Json::exception&) {
        fail(file, "holds a number too large for JSON readers");
    }
}

}  // namespace moehub
