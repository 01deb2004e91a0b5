/// What every fuzzer of recorded routing does: any bytes end in a profile whose parts fit together,
/// or in an InputError of one line that begins with the file's name.
#pragma once
#include "place/profile/profile_readers.hpp"

#include <moehub/error.hpp>

#include <cstdint>
#include <cstdlib>

namespace moehub {

inline void check_profile(const Profile& profile) {
    const auto layers = static_cast<std::size_t>(profile.layers);
    const auto experts = static_cast<std::size_t>(profile.experts);
    bool fits = layers > 0 && experts > 0 && profile.counts.size() == layers * experts &&
                profile.layer_numbers.size() == layers &&
                profile.model_layers > profile.layer_numbers.back();
    fits = fits && profile.chosen.size() == layers * static_cast<std::size_t>(profile.tokens) *
                                                static_cast<std::size_t>(profile.top_k);
    for (const auto expert : profile.chosen)
        fits = fits && (expert < experts || expert == Profile::kNobody);
    for (const double count : profile.counts) fits = fits && count >= 0;
    if (!fits) std::abort();
}

/// `read` makes a Recording of a file called `file`.
template <class Read>
void feed(const std::string& file, const Read& read) {
    const ProfileSource source{file, 0, 1, 1, file};
    try {
        const Recording recording = read();
        std::visit([&](const auto& one) { check_profile(profile_of(one, source, {})); }, recording);
    } catch (const InputError& error) {
        const std::string_view what = error.what();
        if (!what.starts_with(file) || what.find('\n') != what.npos) std::abort();
    }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace moehub
