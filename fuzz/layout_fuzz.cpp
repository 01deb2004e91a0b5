// Any bytes as a layout file of any format end in a layout or in an InputError of one line; a
// layout that was read is sound, and reads back from every format that can say it.
#include <moehub/error.hpp>
#include <moehub/expert_layout.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

const moehub::LayoutShape kShape{2, 4, {1, 3}, 4};

void feed(const std::string& text, int gpus) {
    try {
        const moehub::ExpertLayout layout = moehub::parse_layout(text, "fuzz", gpus, kShape);
        check(layout, "fuzz");
        for (const auto format : {moehub::LayoutFormat::json, moehub::LayoutFormat::csv})
            if (moehub::parse_layout(layout_text(layout, format), "again", layout.gpus, kShape) !=
                layout)
                std::abort();
        if (slots_per_gpu(layout) == 0) return;
        for (const auto format : {moehub::LayoutFormat::sglang, moehub::LayoutFormat::vllm,
                                  moehub::LayoutFormat::trtllm})
            if (moehub::parse_layout(layout_text(layout, format), "again", layout.gpus, kShape) !=
                layout)
                std::abort();
    } catch (const moehub::InputError& error) {
        const std::string_view line = error.what();
        if (!line.starts_with("fuzz:") || line.find('\n') != line.npos) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    feed(text, 2);
    feed(text, 0);
    return 0;
}
