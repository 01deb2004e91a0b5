// Any bytes as TensorRT-LLM's expert statistics.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    feed("fuzz.safetensors",
         [&] { return parse_trtllm_statistics(text_of(data, size), "fuzz.safetensors"); });
    return 0;
}
