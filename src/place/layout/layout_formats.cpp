#include "place/layout/layout_formats.hpp"

#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// The layout of 1,000 layers with 1,000 slots each takes 5 MB.
constexpr std::size_t kMostBytes = 64u << 20;

struct Format {
    LayoutFormat format;
    const char* name;
    std::string (*text)(const ExpertLayout&);
    const char* why_equal_slots;  ///< what the format's loader does; null: it takes any
};

constexpr const char* kEqualRuns =
    "whose loader cuts a layer's slots into runs of one length, one for each rank";

constexpr Format kFormats[] = {
    {LayoutFormat::sglang, "sglang", &sglang_text, kEqualRuns},
    {LayoutFormat::vllm, "vllm", &vllm_text, kEqualRuns},
    {LayoutFormat::vllm_ascend, "vllm-ascend", &vllm_ascend_text,
     "whose loader makes one tensor of all ranks' lists"},
    {LayoutFormat::trtllm, "trtllm", &trtllm_text, kEqualRuns},
    {LayoutFormat::csv, "csv", &csv_text, nullptr},
    {LayoutFormat::json, "json", &json_text, nullptr},
};

const Format& entry_of(LayoutFormat format) {
    return *std::find_if(std::begin(kFormats), std::end(kFormats),
                         [format](const Format& entry) { return entry.format == format; });
}

void check_equal_slots(const ExpertLayout& layout, const std::string& format) {
    if (slots_per_gpu(layout) > 0) return;
    std::size_t least = layout.on[0][0].size(), most = least;
    for (const auto& on : layout.on)
        for (const auto& experts : on) {
            least = std::min(least, experts.size());
            most = std::max(most, experts.size());
        }
    throw input_error("{}: found GPUs with {} and with {} experts, allowed: as many on every GPU",
                      format, least, most);
}

/// JSON begins with a bracket; a CSV file's first line has commas and no colon; the rest is YAML.
ExpertLayout read_any(const LayoutFile& file) {
    const auto start = file.text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
        file.fail("", "the file is empty, allowed: {}", fmt::join(layout_formats(), ", "));
    const std::string_view text = file.text.substr(start);
    if (text.starts_with('{') || text.starts_with('[')) return read_json_layout(file);
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool commas = line.find(',') != line.npos && line.find(':') == line.npos;
    return commas ? read_csv_layout(file) : read_trtllm_layout(file);
}

template <class Layers>
void check_all_there(const LayoutFile& file, const Layers& layers) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
        if (layers[layer].empty())
            file.fail(fmt::format("layer {}", file.shape.layer_numbers[layer]),
                      "not found, allowed: all {} layers", file.shape.layers);
}

}  // namespace

LayoutFormat parse_layout_format(const std::string& name) {
    for (const Format& entry : kFormats)
        if (name == entry.name) return entry.format;
    const std::vector<std::string> known = layout_formats();
    throw input_error("format: found {}, allowed: {}{}", moehub::quoted(name),
                      fmt::join(known, ", "), did_you_mean(name, known));
}

std::string to_string(LayoutFormat format) {
    return entry_of(format).name;
}

std::vector<std::string> layout_formats() {
    std::vector<std::string> names;
    for (const Format& entry : kFormats) names.emplace_back(entry.name);
    return names;
}

std::string why_equal_slots(LayoutFormat format) {
    const char* const why = entry_of(format).why_equal_slots;
    return why == nullptr ? "" : why;
}

std::string layout_text(const ExpertLayout& layout, LayoutFormat format) {
    const Format& entry = entry_of(format);
    check(layout, entry.name);
    if (entry.why_equal_slots != nullptr) check_equal_slots(layout, entry.name);
    return entry.text(layout);
}

ExpertLayout read_layout(const std::string& path, int gpus, const LayoutShape& shape) {
    return parse_layout(read_bytes(path, kMostBytes), path, gpus, shape);
}

ExpertLayout parse_layout(const std::string& text, const std::string& file, int gpus,
                          const LayoutShape& shape) {
    LayoutFile source{text, file, gpus, complete(shape)};
    // What is expected must itself be possible; otherwise every file would be at fault.
    check(source.shape, gpus == 0 ? 1 : gpus, "layout");
    if (text.size() > kMostBytes) source.fail("", "larger than {} MiB", kMostBytes >> 20);
    if (const auto bad = first_bad_utf8(text); bad != text.size() || text.find('\0') != text.npos)
        source.fail("", "found bytes that are not text, allowed: UTF-8");
    if (source.text.starts_with("\xEF\xBB\xBF")) source.text.remove_prefix(3);
    return read_any(source);
}

void LayoutFile::fail(std::string_view where, std::string_view what) const {
    throw InputError(where.empty() ? fmt::format("{}: {}", printable(name), what)
                                   : fmt::format("{}: {}: {}", printable(name), where, what));
}

std::optional<std::size_t> LayoutFile::index_of(std::int64_t layer_number) const {
    const auto& numbers = shape.layer_numbers;
    const auto found = std::lower_bound(numbers.begin(), numbers.end(), layer_number);
    if (found == numbers.end() || *found != layer_number) return std::nullopt;
    return at(found - numbers.begin());
}

int LayoutFile::gpus_of(std::int64_t said, std::string_view where) const {
    if (said == 0 && gpus == 0)
        fail(where, "does not say on how many GPUs; the number of GPUs is needed");
    if (said < 0 || said > kMostLayoutGpus)
        fail(where, "found {} GPUs, allowed: 1 to {}", said, kMostLayoutGpus);
    if (said > 0 && gpus > 0 && said != gpus) fail(where, "found {} GPUs, allowed: {}", said, gpus);
    return said > 0 ? static_cast<int>(said) : gpus;
}

ExpertLayout layout_of_gpus(const LayoutFile& file, std::vector<std::vector<std::vector<int>>> on) {
    check_all_there(file, on);
    ExpertLayout layout;
    layout.gpus = file.gpus_of(static_cast<std::int64_t>(on.front().size()), "");
    layout.experts = file.shape.experts;
    layout.on = std::move(on);
    layout.layer_numbers = file.shape.layer_numbers;
    layout.model_layers = file.shape.model_layers;
    check(layout, file.name);
    return layout;
}

ExpertLayout layout_of_slots(const LayoutFile& file, const std::vector<std::vector<int>>& slots) {
    check_all_there(file, slots);
    const auto gpus = static_cast<std::size_t>(file.gpus_of(0, ""));
    std::vector<std::vector<std::vector<int>>> on(slots.size());
    for (std::size_t layer = 0; layer < slots.size(); ++layer) {
        const auto& row = slots[layer];
        const std::string where = fmt::format("layer {}", file.shape.layer_numbers[layer]);
        if (row.size() % gpus != 0)
            file.fail(where, "found {} slots, allowed: a multiple of the {} GPUs", row.size(),
                      gpus);
        if (row.size() != slots.front().size())
            file.fail(where, "found {} slots, allowed: {}, as in the first layer", row.size(),
                      slots.front().size());
        const auto each = static_cast<std::ptrdiff_t>(row.size() / gpus);
        for (auto at = row.begin(); at != row.end(); at += each)
            on[layer].emplace_back(at, at + each);
    }
    return layout_of_gpus(file, std::move(on));
}

std::vector<int> slots_of(const ExpertLayout& layout, std::size_t layer) {
    std::vector<int> slots;
    for (const auto& experts : layout.on[layer])
        slots.insert(slots.end(), experts.begin(), experts.end());
    return slots;
}

// How a server is started with a layout. Names of options are those of
//   SGLang: python/sglang/srt/server_args.py, which takes a file only where its name ends in .json
//   TensorRT-LLM: examples/wide_ep/ep_load_balancer/README.md
//   vllm-ascend: its user guide, "Expert Parallelism Load Balancer", static EPLB
//   vLLM: nothing that was released; pull request 49572 proposes eplb_config's
//   initial_expert_map_path, 34811 --expert-placement-file.

namespace {

/// A text as a shell takes it for one word.
std::string word(const std::string& text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char one : text) quoted += one == '\'' ? "'\\''" : std::string(1, one);
    return quoted + "'";
}

struct Server {
    const ExpertLayout& layout;
    const std::string& file;
    int nodes;
    int copies;  ///< slots of a layer beyond one per expert
};

std::vector<std::string> sglang(const Server& server) {
    std::vector<std::string> lines{
        fmt::format("python -m sglang.launch_server --model-path MODEL --tp-size {0} --ep-size {0} "
                    "\\",
                    server.layout.gpus)};
    if (server.nodes > 1)
        lines.push_back(fmt::format(
            "    --nnodes {} --node-rank RANK --dist-init-addr HOST:PORT \\", server.nodes));
    lines.push_back(fmt::format("    --moe-a2a-backend deepep --ep-num-redundant-experts {} \\",
                                server.copies));
    lines.push_back(fmt::format("    --init-expert-location {}", word(server.file)));
    if (!server.file.ends_with(".json"))
        lines.emplace_back("# SGLang takes a file only where its name ends in .json: rename it");
    return lines;
}

std::vector<std::string> trtllm(const Server& server) {
    return {
        "echo 'enable_attention_dp: true' > extra.yaml",
        fmt::format("echo {} >> extra.yaml",
                    word(fmt::format("moe_config: {{backend: WideEP, load_balancer: \"{}\"}}",
                                     server.file))),
        fmt::format("trtllm-serve MODEL --tp_size {0} --ep_size {0} --extra_llm_api_options "
                    "extra.yaml",
                    server.layout.gpus),
        "# a release that no longer knows WideEP: without the backend",
    };
}

std::vector<std::string> vllm_ascend(const Server& server) {
    return {
        fmt::format("vllm serve MODEL --tensor-parallel-size {} --enable-expert-parallel \\",
                    server.layout.gpus),
        fmt::format("    --additional-config {}",
                    word(fmt::format(R"({{"eplb_config": {{"expert_map_path": "{}", )"
                                     R"("num_redundant_experts": {}}}}})",
                                     server.file, server.copies))),
    };
}

}  // namespace

std::vector<std::string> server_command(const ExpertLayout& layout, LayoutFormat format,
                                        const std::string& file, int nodes) {
    int slots = 0;
    for (const auto& experts : layout.on.front()) slots += static_cast<int>(experts.size());
    const Server server{layout, file, nodes, slots - layout.experts};
    switch (format) {
        case LayoutFormat::sglang:
            return sglang(server);
        case LayoutFormat::trtllm:
            return trtllm(server);
        case LayoutFormat::vllm_ascend:
            return vllm_ascend(server);
        case LayoutFormat::vllm:
            return {"# No release of vLLM loads this file: it is for an option that was proposed,",
                    "# eplb_config's initial_expert_map_path (vllm-project/vllm pull request "
                    "49572)."};
        case LayoutFormat::csv:
        case LayoutFormat::json:
            return {};
    }
    return {};
}

}  // namespace moehub
