#include "report/escape.hpp"

#include "base/utf8.hpp"

#include <array>

namespace moehub {

std::string escaped(std::string_view text) {
    const std::string safe = printable(text);
    std::string out;
    for (std::size_t at = 0; at < safe.size(); ++at) {
        constexpr std::string_view kMarkup = "&<>\"'";
        constexpr std::array<std::string_view, 5> kEntities{"&amp;", "&lt;", "&gt;", "&quot;",
                                                            "&#39;"};
        const std::size_t found = kMarkup.find(safe[at]);
        // U+FFFE and U+FFFF are UTF-8, but not XML.
        const bool no_xml = safe.compare(at, 2, "\xEF\xBF") == 0 && at + 2 < safe.size() &&
                            static_cast<unsigned char>(safe[at + 2]) >= 0xBE;
        if (found != std::string_view::npos)
            out += kEntities[found];
        else if (no_xml)
            out += "\xEF\xBF\xBD", at += 2;
        else
            out += safe[at];
    }
    return out;
}

}  // namespace moehub
