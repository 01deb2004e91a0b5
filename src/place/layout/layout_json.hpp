/// The JSON files of layouts, by their content. Someone else wrote them: every error is an
/// InputError of one line, "file: where: …".
#pragma once
#include "place/layout/layout_formats.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace moehub {

/// A value of a document, and where it stands ("layer_list[3].device_id"). Valid as long as the
/// document.
class JsonValue {
  public:
    JsonValue(const nlohmann::json& value, const std::string& file, std::string where)
        : value_(&value), file_(&file), where_(std::move(where)) {}

    const std::string& where() const { return where_; }
    bool is_list() const { return value_->is_array(); }
    bool is_list_of_lists() const;
    bool has(std::string_view key) const { return value_->is_object() && value_->contains(key); }
    std::vector<std::string> keys() const;

    /// A member of an object.
    JsonValue member(std::string_view key) const;
    /// How many elements a list has, and one of them.
    std::size_t size() const;
    JsonValue operator[](std::size_t at) const;
    /// A whole number within [least, most]; a list of such.
    std::int64_t integer(std::int64_t least, std::int64_t most) const;
    std::vector<int> integers(int least, int most) const;

    /// Throws "file: where: found …, allowed: …".
    [[noreturn]] void reject(std::string_view allowed) const;

  private:
    const nlohmann::json* value_;
    const std::string* file_;
    std::string where_;
};

/// Refuses what is nested deeply and keys that stand twice. `file` is its name in errors.
nlohmann::json parse_json(std::string_view text, const std::string& file);

ExpertLayout read_sglang(const JsonValue& document, const LayoutFile& file);
/// [[…], …], or one list that holds for all layers.
ExpertLayout read_vllm(const JsonValue& document, const LayoutFile& file);
/// {"expert_to_ep_rank": …}: expert → GPU, of each layer or of all.
ExpertLayout read_ranks(const JsonValue& document, const LayoutFile& file);
ExpertLayout read_vllm_ascend(const JsonValue& document, const LayoutFile& file);

}  // namespace moehub
