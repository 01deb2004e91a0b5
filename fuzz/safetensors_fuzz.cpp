// Any bytes as TensorRT-LLM's expert statistics.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    const std::vector<StatisticsFile> ranks = {
        {"fuzz.safetensors", std::string(text_of(data, size))}};
    feed("fuzz.safetensors", [&] { return parse_trtllm_statistics(ranks); });
    return 0;
}
