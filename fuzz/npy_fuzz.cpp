// Any bytes given to the .npy reader, and its array to the reader of routing traces, end in a
// routing or in an InputError of one line.
#include "base/npy.hpp"
#include "model/routing_trace.hpp"

#include <moehub/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr int kExperts = 200;
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    try {
        const auto array = moehub::NpyArray::parse(bytes, "fuzz.npy");
        const auto routing = moehub::routing_of(array, kExperts, "fuzz.npy");
        if (routing.chosen.size() != array.size()) std::abort();
        for (const auto expert : routing.chosen)
            if (expert >= kExperts) std::abort();
    } catch (const moehub::InputError& error) {
        const std::string_view what = error.what();
        if (!what.starts_with("fuzz.npy: ") || what.find('\n') != what.npos) std::abort();
    }
    return 0;
}
