/// The files of layouts, one reader and writer per format. Readers throw InputError of one line
/// that begins with the file's name; what they return is checked.
#pragma once
#include "place/counts.hpp"

#include <moehub/expert_layout.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

namespace moehub {

/// Limits that no model or machine comes near; they keep small files from asking for much memory.
constexpr int kMostLayoutLayers = 100'000;
constexpr int kMostLayoutExperts = 65535;
constexpr int kMostLayoutGpus = 65535;
/// Most slots of all layers of a file.
constexpr std::int64_t kMostLayoutSlots = std::int64_t{1} << 25;

/// The shape with layer_numbers and model_layers filled in.
LayoutShape complete(const LayoutShape& shape);
/// Throws InputError, begun with `name`, unless a layout of the (complete) shape can be.
void check(const LayoutShape& shape, int gpus, const std::string& name);

/// A file, and what is expected of it.
struct LayoutFile {
    std::string_view text;
    std::string name;
    int gpus = 0;       ///< GPUs expected; 0: as the file says
    LayoutShape shape;  ///< complete shape expected

    /// Throws InputError "name: where: what"; without `where` "name: what".
    [[noreturn]] void fail(std::string_view where, std::string_view what) const;
    template <class Value, class... Values>
    [[noreturn]] void fail(std::string_view where, fmt::format_string<Value, Values...> what,
                           Value&& value, Values&&... values) const {
        fail(where, fmt::format(what, std::forward<Value>(value), std::forward<Values>(values)...));
    }
    /// The index of the model's layer among those expected; none where it is not expected.
    std::optional<std::size_t> index_of(std::int64_t layer_number) const;
    /// How many GPUs there are: as expected, and what the file says where it says it (else 0).
    int gpus_of(std::int64_t said, std::string_view where) const;
};

/// The layout of [layer][slot] → expert, as many slots on every GPU, in order. An empty layer is
/// one that the file lacks.
ExpertLayout layout_of_slots(const LayoutFile& file, const std::vector<std::vector<int>>& slots);
/// The layout of [layer][gpu] → experts; an empty layer is one that the file lacks.
ExpertLayout layout_of_gpus(const LayoutFile& file, std::vector<std::vector<std::vector<int>>> on);

ExpertLayout read_json_layout(const LayoutFile& file);  ///< sglang, vllm, vllm_ascend or json
ExpertLayout read_trtllm_layout(const LayoutFile& file);
ExpertLayout read_csv_layout(const LayoutFile& file);

/// Writers get a checked layout; those of slots one with as many on every GPU.
std::string sglang_text(const ExpertLayout& layout);
std::string vllm_text(const ExpertLayout& layout);
std::string vllm_ascend_text(const ExpertLayout& layout);
std::string trtllm_text(const ExpertLayout& layout);
std::string csv_text(const ExpertLayout& layout);
std::string json_text(const ExpertLayout& layout);

/// All experts of a layer in the order of slots: GPU after GPU.
std::vector<int> slots_of(const ExpertLayout& layout, std::size_t layer);

/// A value of a document, and where it stands ("layer_list[3].device_id"). Valid as long as the
/// document.
class JsonValue {
  public:
    JsonValue(const nlohmann::json& value, const std::string& file, std::string where)
        : value_(&value), file_(&file), where_(std::move(where)) {}

    const std::string& where() const { return where_; }
    bool is_list() const;
    bool is_list_of_lists() const;
    bool has(std::string_view key) const;
    std::vector<std::string> keys() const;

    /// A member of an object.
    JsonValue member(std::string_view key) const;
    /// How many elements a list has, and one element of it.
    std::size_t size() const;
    JsonValue operator[](std::size_t at) const;
    /// The value as a whole number within [least, most], or as a list of such numbers.
    std::int64_t integer(std::int64_t least, std::int64_t most) const;
    std::vector<int> integers(int least, int most) const;

    /// Throws InputError "file: where: found …, allowed: …".
    [[noreturn]] void reject(std::string_view allowed) const;

  private:
    const nlohmann::json* value_;
    const std::string* file_;
    std::string where_;
};

/// A document; refuses deep nesting and keys that stand twice. `file` is its name in errors.
nlohmann::json parse_json(std::string_view text, const std::string& file);

ExpertLayout read_sglang(const JsonValue& document, const LayoutFile& file);
/// Reads [[…], …], or one list that holds for all layers.
ExpertLayout read_vllm(const JsonValue& document, const LayoutFile& file);
/// Reads {"expert_to_ep_rank": …}: expert → GPU, of each layer or of all.
ExpertLayout read_ranks(const JsonValue& document, const LayoutFile& file);
ExpertLayout read_vllm_ascend(const JsonValue& document, const LayoutFile& file);

}  // namespace moehub
