// Any bytes as a machine, model, GPU and system file: accepted, or refused with one line. What is
// accepted prints and reads back.
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <class Parse>
void feed(Parse parse, std::string_view text) {
    try {
        const auto noun = parse(text, "fuzz.toml");
        if (to_toml(parse(to_toml(noun), "again.toml")) != to_toml(noun)) std::abort();
        moehub::to_json(noun);
    } catch (const moehub::InputError& error) {
        const std::string_view line = error.what();
        if (line.empty() || line.find('\n') != std::string_view::npos) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    feed(moehub::parse<moehub::Machine>, text);
    feed(moehub::parse<moehub::Model>, text);
    feed(moehub::parse<moehub::Gpu>, text);
    feed(moehub::parse<moehub::SystemSpec>, text);
    return 0;
}
