// With b[d][i] the busy time of a GPU's direction d in the i-th stretch of time,
//
//     busier way = Σ_i max(b[up][i], b[down][i]).
//
// Links that ran longer have wider bins; all are seen in the widest.
#include "study/busier_way.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace moehub {
namespace {

bool is_gpu(const std::string& name) {
    return name.starts_with("gpu");
}

std::vector<Ps> in_bins_of(Ps width, const LinkUse& link) {
    std::vector<Ps> bins;
    for (std::size_t i = 0; i < link.bins.size(); ++i) {
        const auto bin = static_cast<std::size_t>(static_cast<Ps>(i) * link.bin / width);
        bins.resize(std::max(bins.size(), bin + 1));
        bins[bin] += link.bins[i];
    }
    return bins;
}

}  // namespace

Ps busier_way(const std::vector<LinkUse>& links) {
    Ps width = 1;
    for (const LinkUse& link : links) width = std::max(width, link.bin);
    std::map<std::string, std::vector<Ps>> by_gpu;
    for (const LinkUse& link : links) {
        if (!is_gpu(link.from) && !is_gpu(link.to)) continue;
        const std::vector<Ps> bins = in_bins_of(width, link);
        std::vector<Ps>& busier = by_gpu[is_gpu(link.from) ? link.from : link.to];
        busier.resize(std::max(busier.size(), bins.size()));
        for (std::size_t i = 0; i < bins.size(); ++i) busier[i] = std::max(busier[i], bins[i]);
    }
    Ps most = 0;
    for (const auto& [gpu, bins] : by_gpu)
        most = std::max(most, std::accumulate(bins.begin(), bins.end(), Ps{0}));
    return most;
}

}  // namespace moehub
