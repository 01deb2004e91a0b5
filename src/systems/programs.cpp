#include "systems/programs.hpp"

namespace moehub::systems {

int lines_of_code(std::string_view text) {
    int count = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.empty() && !line.starts_with("//") && !line.starts_with("#")) ++count;
    }
    return count;
}

}  // namespace moehub::systems
