// Any bytes as the pickle of a dump of SGLang's recorder, in a zip archive that is well.
#include "../tests/stored_zip.hpp"
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    std::string storage;  // ones as int64, ones and zeros as int32
    while (storage.size() < 480) storage += std::string("\1\0\0\0\0\0\0\0", 8);
    const std::string file = stored_zip({{"a/data.pkl", std::string(text_of(data, size))},
                                         {"a/data/0", storage},
                                         {"a/data/1", storage},
                                         {"a/data/2", storage},
                                         {"a/data/3", storage},
                                         {"a/data/4", storage}});
    feed("fuzz.pt", [&] { return parse_sglang_dump(file, {}, "fuzz.pt"); });
    return 0;
}
