// Any bytes as a study's file: accepted, or refused with one line. What is accepted prints and
// reads back as the same points.
#include "study/sweep/study.hpp"

#include <moehub/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace moehub;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const Study study = parse_study(text, "fuzz.toml");
        check(study);
        const std::size_t points = points_in(study);
        const std::string definition = definition_of(study);
        const Study again = parse_study(definition, "again.toml");
        if (definition_of(again) != definition || points_in(again) != points) std::abort();
        for (const std::size_t number : {std::size_t{0}, points / 2, points - 1})
            if (words_of(again, point_of(again, number)) !=
                words_of(study, point_of(study, number)))
                std::abort();
    } catch (const InputError& error) {
        const std::string_view line = error.what();
        if (line.empty() || line.find('\n') != std::string_view::npos) std::abort();
    }
    return 0;
}
