// Any bytes as a dump of SGLang's recorder: the zip archive around it.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    feed("fuzz.pt", [&] { return parse_sglang_dump(text_of(data, size), {}, "fuzz.pt"); });
    return 0;
}
