#include "model/records.hpp"

namespace moehub {

Given fill(const Rows& rows, const std::vector<Document>& chain, const Overrides& overrides) {
    Given given{chain.back().origin};
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) apply(rows, entry, document.origin, given);
    for (const std::string& text : overrides) apply(rows, read_override(text), "--set", given);
    require_all(rows, given);
    return given;
}

}  // namespace moehub
