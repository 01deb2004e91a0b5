#include "model/records.hpp"

namespace moehub {

Given fill(const Fields& fields, const std::vector<Document>& chain, const Overrides& overrides) {
    Given given{chain.back().origin};
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) apply(fields, entry, document.origin, given);
    for (const std::string& text : overrides) apply(fields, read_override(text), "--set", given);
    require_all(fields, given);
    return given;
}

}  // namespace moehub
