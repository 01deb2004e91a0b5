#include <moehub/version.hpp>

namespace moehub {

std::string_view version() {
    return MOEHUB_VERSION;  // defined for this file alone: CMakeLists.txt
}

}  // namespace moehub
