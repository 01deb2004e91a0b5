/// The files of layouts, one reader and writer per format. Readers throw InputError of one line
/// that begins with the file's name; what they return is checked.
#pragma once
#include <moehub/expert_layout.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace moehub {

/// Limits that no model or machine comes near; they keep small files from asking for much memory.
constexpr int kMostLayoutLayers = 100'000;
constexpr int kMostLayoutExperts = 65535;
constexpr int kMostLayoutGpus = 65535;
/// Slots of all layers of a file.
constexpr std::int64_t kMostLayoutSlots = std::int64_t{1} << 25;

/// The shape with layer_numbers and model_layers filled in.
LayoutShape complete(const LayoutShape& shape);
/// Throws InputError, with `name` in front, unless a layout of the (complete) shape can be.
void check(const LayoutShape& shape, int gpus, const std::string& name);

/// A file, and what is expected of it.
struct LayoutFile {
    std::string_view text;
    std::string name;
    int gpus = 0;       ///< 0: as the file says
    LayoutShape shape;  ///< complete

    /// Throws "name: where: what"; without `where` "name: what".
    [[noreturn]] void fail(std::string_view where, std::string_view what) const;
    template <class Value, class... Values>
    [[noreturn]] void fail(std::string_view where, fmt::format_string<Value, Values...> what,
                           Value&& value, Values&&... values) const {
        fail(where, fmt::format(what, std::forward<Value>(value), std::forward<Values>(values)...));
    }
    /// The index of the model's layer among those expected; none where it is not one of them.
    std::optional<std::size_t> index_of(std::int64_t layer_number) const;
    /// How many GPUs: as expected, and what the file says where it says it (else 0).
    int gpus_of(std::int64_t said, std::string_view where) const;
};

/// [layer][slot] → expert, as many slots on every GPU, in order. An empty layer is one that the
/// file lacks.
ExpertLayout layout_of_slots(const LayoutFile& file, const std::vector<std::vector<int>>& slots);
/// [layer][gpu] → experts; an empty layer is one that the file lacks.
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

}  // namespace moehub
