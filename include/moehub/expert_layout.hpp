/// ExpertLayout: which GPU holds which experts, for every MoE layer of a model; and the files in
/// which serving engines load it.
///
///     const ExpertLayout layout = contiguous_layout({26, 64}, 8);
///     write(layout_text(layout, LayoutFormat::sglang));
#pragma once
#include <moehub/placement.hpp>

#include <string>
#include <vector>

namespace moehub {

struct ExpertLayout {
    int gpus = 0;
    int experts = 0;
    std::vector<std::vector<std::vector<int>>> on;  ///< [layer][gpu] → experts, one per slot

    /// The model's numbers of these layers, ascending, and how many layers the model has, dense
    /// ones included (Profile has the same).
    std::vector<int> layer_numbers;
    int model_layers = 0;

    int layers() const { return static_cast<int>(on.size()); }
    bool operator==(const ExpertLayout&) const = default;
};

/// How many layers and experts a layout has; layer_numbers empty: 0 … layers − 1.
struct LayoutShape {
    int layers = 0;
    int experts = 0;
    std::vector<int> layer_numbers = {};
    int model_layers = 0;
};
LayoutShape shape_of(const ExpertLayout& layout);
/// A layout of that shape with no expert on any GPU.
ExpertLayout empty_layout(const LayoutShape& shape, int gpus);

/// Experts in order, as evenly as it goes (contiguous_placement, in every layer).
ExpertLayout contiguous_layout(const LayoutShape& shape, int gpus);
/// Expert e on GPU e mod gpus.
ExpertLayout round_robin_layout(const LayoutShape& shape, int gpus);

/// Slots that every GPU has in every layer; 0 where they differ.
int slots_per_gpu(const ExpertLayout& layout);

/// Throws InputError, with `name` in front, when an expert is missing from a layer, or one does not
/// exist, or sizes do not fit.
void check(const ExpertLayout& layout, const std::string& name);

/// One layer of the layout, for the simulator. Two copies on one GPU count as one.
Placement placement_of(const ExpertLayout& layout, int layer);

/// Slots of `to` whose expert the same GPU does not hold in `from`: what must be copied. Over all
/// layers.
std::int64_t moved_experts(const ExpertLayout& from, const ExpertLayout& to);

/// Serving engines' files. vllm is the file of an option that was proposed and not released.
enum class LayoutFormat { sglang, vllm, vllm_ascend, trtllm, csv, json };
LayoutFormat parse_layout_format(const std::string& name);
std::string to_string(LayoutFormat format);
/// Names of all layout formats, in order.
std::vector<std::string> layout_formats();

/// Why the format's loader wants as many slots on every GPU, "whose …"; empty: it does not.
std::string why_equal_slots(LayoutFormat format);

/// Lines for a shell that start a server of so many nodes with the layout in `file`; MODEL and
/// other names in capitals are the user's to fill in. Empty where no server loads the format.
std::vector<std::string> server_command(const ExpertLayout& layout, LayoutFormat format,
                                        const std::string& file, int nodes = 1);

/// Throws InputError where the format cannot say it.
std::string layout_text(const ExpertLayout& layout, LayoutFormat format);
/// Reads any of the formats, told apart by their content. `gpus`: where the file does not say how
/// many (sglang, vllm, trtllm), slots are shared out evenly. `shape`: what is expected; layers that
/// the model has and the shape has not (dense ones, in sglang's file) are skipped.
ExpertLayout read_layout(const std::string& path, int gpus, const LayoutShape& shape);
/// Reads a layout from text as read_layout does; `file` is its name in errors.
ExpertLayout parse_layout(const std::string& text, const std::string& file, int gpus,
                          const LayoutShape& shape);

}  // namespace moehub
