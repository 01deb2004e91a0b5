// Any bytes as an array of ids or counts.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    feed("fuzz.npy", [&] {
        return recording_of(NpyArray::parse(std::string(text_of(data, size)), "fuzz.npy"), {},
                            "fuzz.npy");
    });
    return 0;
}
