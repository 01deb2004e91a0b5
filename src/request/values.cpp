#include "request/values.hpp"

#include <algorithm>

namespace moehub {

std::int64_t count_of(std::string_view option, const std::string& text, Range allowed) {
    try {
        const std::int64_t count = parse_count(text);
        if (count >= allowed.least && count <= allowed.most) return count;
    } catch (const InputError&) {
        // Said better below.
    }
    throw InputError(fmt::format("{}: found {}, allowed: a whole number from {} to {}", option,
                                 moehub::quoted(text), allowed.least, allowed.most));
}

double number_of(std::string_view option, const std::string& text, double most,
                 std::string_view allowed) {
    try {
        if (const double number = parse_number(text); number >= 0 && number <= most) return number;
    } catch (const InputError&) {
        // Said better below.
    }
    throw InputError(
        fmt::format("{}: found {}, allowed: {}", option, moehub::quoted(text), allowed));
}

Bytes size_of(std::string_view option, const std::string& text) {
    constexpr Bytes kMost = Bytes{1} << 40;
    std::string with_unit = text;
    const auto last = text.find_last_not_of(' ');
    const char end = last == std::string::npos ? '\0' : text[last];
    if (end >= '0' && end <= '9') with_unit += " B";
    if (end != '\0' && std::string_view("kKmMgGtT").find(end) != std::string_view::npos) {
        with_unit = text.substr(0, last);
        with_unit += static_cast<char>(end & ~0x20);  // upper case
        with_unit += "iB";
    }
    try {
        const Bytes bytes = parse_bytes(with_unit);
        if (bytes >= 1 && bytes <= kMost) return bytes;
    } catch (const InputError&) {
        // Said better below.
    }
    throw InputError(
        fmt::format("{}: found {}, allowed: a size from 1 B to 1 TiB such as 8589934592, 8G, "
                    "64MiB or \"64 MB\"",
                    option, moehub::quoted(text)));
}

Ps time_of(std::string_view option, const std::string& text) {
    try {
        const Ps time = parse_time(text);
        if (time < 0) throw InputError(fmt::format("found {}, allowed: 0 or more", quoted(text)));
        return time;
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", option, error.what()));
    }
}

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> parts;
    if (text.find_first_not_of(' ') == std::string::npos) return parts;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        std::string part = text.substr(start, end - start);
        part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
        part.erase(part.find_last_not_of(' ') + 1);
        parts.push_back(std::move(part));
        start = end + 1;
    }
    return parts;
}

}  // namespace moehub
