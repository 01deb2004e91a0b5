#include "study/model_share.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <charconv>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Share {
    std::string preset;
    int ranks = 1;  ///< that divide the experts; 0: not a number
};

Share share_of(const std::string& name) {
    const auto at = name.rfind("-ep");
    if (at == std::string::npos) return {name};
    int ranks = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + at + 3, end, ranks);
    if (read.ec != std::errc() || read.ptr != end) return {name};
    return {name.substr(0, at), ranks};
}

}  // namespace

Model load_model_share(const std::string& name) {
    const Share share = share_of(name);
    Model model = load_model(share.preset);
    if (share.ranks < 1 || model.experts < share.ranks || model.experts % share.ranks != 0)
        throw InputError(fmt::format("{} experts cannot be shared by these ranks", model.experts));
    model.experts /= share.ranks;
    return model;
}

}  // namespace moehub
