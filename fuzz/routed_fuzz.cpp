// Any bytes as answers of a server that returns routed experts.
#include "profile_feed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    const ProfileOptions options{.layers = 2, .top_k = 2};
    feed("fuzz.jsonl",
         [&] { return parse_routed_answers(text_of(data, size), options, "fuzz.jsonl"); });
    return 0;
}
