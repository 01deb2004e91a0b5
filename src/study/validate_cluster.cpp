// NCCL's own choice is what such rows have, unless their manifest forces CollnetChain over SHARP.
// More GPUs than a rack or a node has are several of it.
#include "study/validate_cluster.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <array>
#include <utility>

namespace moehub {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

/// As a source says it, and as moehub does.
constexpr std::array<Names, 3> kAlgorithms{
    {{"nccl default", "auto"}, {"nvls", "auto"}, {"SHARP manifest", "collnet"}}};
constexpr std::array<Names, 5> kClusters{{{"dgx-h100", "h100-cluster"},
                                          {"dgx-h200", "h200-cluster"},
                                          {"dgx-h800", "h800-cluster"},
                                          {"dgx-b200", "b200-cluster"},
                                          {"gb200-nvl72", "gb200-cluster"}}};

template <std::size_t N>
std::string translated(const std::array<Names, N>& names, const std::string& said) {
    for (const auto& [from, to] : names)
        if (from == said) return std::string(to);
    return said;
}

std::string machine_of(const CollectiveCase& what, const PredictContext& context) {
    try {
        const Machine machine = context.machine(what.machine);
        const bool fits = what.gpus <= machine.gpus() || machine.nic.bandwidth > 0;
        return fits ? what.machine : translated(kClusters, what.machine);
    } catch (const InputError&) {
        return what.machine;  // predicting says what is wrong
    }
}

}  // namespace

std::vector<CollectiveCase> parse_cluster_collective(const CsvRow& row) {
    return parse_collective(row);
}

Prediction predict_cluster_collective(const CollectiveCase& what, const PredictContext& context) {
    CollectiveCase known = what;
    known.machine = machine_of(what, context);
    known.algorithm = translated(kAlgorithms, what.algorithm);
    return predict_collective(known, context);
}

}  // namespace moehub
