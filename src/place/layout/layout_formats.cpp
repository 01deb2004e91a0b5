#include "place/layout/layout_formats.hpp"

#include "base/file_bytes.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The layout of 1,000 layers with 1,000 slots each takes 5 MB.
constexpr std::size_t kMostBytes = 64u << 20;

struct Format {
    LayoutFormat format;
    const char* name;
    std::string (*text)(const ExpertLayout&);
    const char* why_equal_slots;  ///< of its loader; null: it takes any
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
    throw InputError(
        fmt::format("{}: found GPUs with {} and with {} experts, allowed: as many on every GPU",
                    format, least, most));
}

/// JSON begins with a bracket; a CSV file's first line has commas and no colon; the rest is YAML.
ExpertLayout read_any(const LayoutFile& file) {
    const auto start = file.text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
        file.fail("",
                  fmt::format("the file is empty, allowed: {}", fmt::join(layout_formats(), ", ")));
    const std::string_view text = file.text.substr(start);
    if (text.starts_with('{') || text.starts_with('[')) return read_json_layout(file);
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool commas = line.find(',') != line.npos && line.find(':') == line.npos;
    return commas ? read_csv_layout(file) : read_trtllm_layout(file);
}

}  // namespace

LayoutFormat parse_layout_format(const std::string& name) {
    for (const Format& entry : kFormats)
        if (name == entry.name) return entry.format;
    const std::vector<std::string> known = layout_formats();
    throw InputError(fmt::format("format: found {}, allowed: {}{}", quoted(name),
                                 fmt::join(known, ", "), did_you_mean(name, known)));
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
    if (text.size() > kMostBytes)
        source.fail("", fmt::format("larger than {} MiB", kMostBytes >> 20));
    if (const auto bad = first_bad_utf8(text); bad != text.size() || text.find('\0') != text.npos)
        source.fail("", "found bytes that are not text, allowed: UTF-8");
    if (source.text.starts_with("\xEF\xBB\xBF")) source.text.remove_prefix(3);
    return read_any(source);
}

}  // namespace moehub
