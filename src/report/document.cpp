#include "report/document.hpp"

#include <utility>

namespace moehub {

Json document(std::string_view command, Json results) {
    results.put_first("schema", {{"command", command}, {"version", kSchemaVersion}});
    return results;
}

std::string document_text(std::string_view command, Json results) {
    return document(command, std::move(results)).dump(2) + "\n";
}

}  // namespace moehub
