// Any bytes as a table of counts.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    feed("fuzz.csv", [&] { return parse_counts_csv(text_of(data, size), "fuzz.csv"); });
    return 0;
}
