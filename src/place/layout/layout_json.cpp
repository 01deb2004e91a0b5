// moehub's own JSON, and which of the JSON formats a file is in.
//     {"gpus": 2, "experts": 4, "model_layers": 5, "layers": [{"layer": 3, "gpus": [[0, 2], [1,
//     3]]}]}
#include "base/files.hpp"
#include "base/quantity.hpp"
#include "place/layout/layout_formats.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

namespace moehub {
namespace {

void expect(const JsonValue& document, std::string_view key, int expected) {
    const JsonValue value = document.member(key);
    if (value.integer(1, kMostLayoutLayers) != expected)
        value.reject(fmt::format("{}, as the model or the profile has", expected));
}

std::vector<std::vector<int>> read_gpus(const JsonValue& lists, const LayoutFile& file, int gpus) {
    if (lists.size() != at(gpus)) lists.reject(fmt::format("a list for each of the {} GPUs", gpus));
    std::vector<std::vector<int>> on;
    for (std::size_t gpu = 0; gpu < lists.size(); ++gpu)
        on.push_back(lists[gpu].integers(0, file.shape.experts - 1));
    return on;
}

ExpertLayout read_own(const JsonValue& document, const LayoutFile& file) {
    expect(document, "experts", file.shape.experts);
    expect(document, "model_layers", file.shape.model_layers);
    const int gpus = file.gpus_of(document.member("gpus").integer(1, kMostLayoutGpus), "gpus");
    const JsonValue layers = document.member("layers");
    std::vector<std::vector<std::vector<int>>> on(file.shape.layer_numbers.size());
    std::vector<char> seen(static_cast<std::size_t>(file.shape.model_layers), 0);
    for (std::size_t at = 0; at < layers.size(); ++at) {
        const JsonValue layer = layers[at];
        const auto number = layer.member("layer").integer(0, file.shape.model_layers - 1);
        if (seen[static_cast<std::size_t>(number)]++ != 0)
            layer.member("layer").reject("each layer once");
        auto lists = read_gpus(layer.member("gpus"), file, gpus);
        if (const auto index = file.index_of(number)) on[*index] = std::move(lists);
    }
    return layout_of_gpus(file, std::move(on));
}

using Json = nlohmann::json;

constexpr int kDeepest = 16;

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
        if (depth > kDeepest) fail_in(file_, "nested more than {} deep, no layout is", kDeepest);
        // The members of an object that begins at some depth are one deeper.
        const auto inside = at(depth) + 1;
        if (event == Json::parse_event_t::object_start) {
            if (seen_.size() <= inside) seen_.resize(inside + 1);
            seen_[inside].clear();
        }
        if (event == Json::parse_event_t::key) {
            const auto& key = value.get_ref<const std::string&>();
            if (!seen_[at(depth)].insert(key).second)
                fail_in(file_, "key {} stands twice, allowed: once", moehub::quoted(key));
        }
        return true;
    }

  private:
    const std::string& file_;
    std::vector<std::set<std::string>> seen_;  ///< [depth] keys of the object that is open there
};

}  // namespace

ExpertLayout read_json_layout(const LayoutFile& file) {
    const nlohmann::json json = parse_json(file.text, file.name);
    const JsonValue document(json, file.name, "");
    if (document.is_list()) return read_vllm(document, file);
    if (document.has("physical_to_logical_map")) return read_sglang(document, file);
    if (document.has("expert_to_ep_rank")) return read_ranks(document, file);
    if (document.has("layer_list")) return read_vllm_ascend(document, file);
    if (document.has("layers")) return read_own(document, file);
    document.reject(
        "physical_to_logical_map (sglang), layer_list (vllm-ascend), expert_to_ep_rank (vllm), "
        "layers (json) or a list (vllm)");
}

std::string json_text(const ExpertLayout& layout) {
    std::string text = fmt::format("{{\"gpus\": {}, \"experts\": {}, \"model_layers\": {}, ",
                                   layout.gpus, layout.experts, layout.model_layers);
    text += "\"layers\": [\n";
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        std::vector<std::string> lists;
        for (const auto& experts : layout.on[layer])
            lists.push_back(fmt::format("[{}]", fmt::join(experts, ", ")));
        text += fmt::format("  {{\"layer\": {}, \"gpus\": [{}]}}{}\n", layout.layer_numbers[layer],
                            fmt::join(lists, ", "), layer + 1 < layout.on.size() ? "," : "");
    }
    return text + "]}\n";
}

bool JsonValue::is_list() const {
    return value_->is_array();
}

bool JsonValue::has(std::string_view key) const {
    return value_->is_object() && value_->contains(key);
}

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
    if (at == value_->end()) fail_in(*file_, "{}: not found, it is needed", path);
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
    fail_in(*file_, "{}{}found {}, allowed: {}", where_, where_.empty() ? "" : ": ", found(*value_),
            allowed);
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
        fail_in(file, "line {}: not valid JSON", 1 + std::count(text.begin(), until, '\n'));
    } catch (const Json::exception&) {
        fail_in(file, "holds a number too large for JSON readers");
    }
}

}  // namespace moehub
