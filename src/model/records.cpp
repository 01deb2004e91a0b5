#include "model/records.hpp"

namespace moehub {

void fill(const Rows& rows, const std::vector<Document>& chain, const Overrides& overrides) {
    std::set<std::string> given;
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) apply(rows, entry, document.origin, given);
    for (const std::string& text : overrides) apply(rows, read_override(text), "--set", given);
    require_all(rows, given, chain.back().origin);
}

}  // namespace moehub
