// What recorded routing means for placing, a sentence each.
#include "answers/profile_answer.hpp"
#include "report/number.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kBound = 1.005;    ///< a bound above this is worth a word
constexpr double kStructure = 1.1;  ///< times chance: where pairs begin to be of use
constexpr double kStrong = 1.3;
constexpr double kTooFew = 0.9;     ///< by chance: most pairs were seen once or never
constexpr double kDrift = 1.5;      ///< times chance: where halves differ
constexpr double kOtherDomain = 2;  ///< times chance: where profiles differ

template <class Value>
const LayerSummary& highest(const ProfileSummary& summary, Value value) {
    return *std::max_element(
        summary.layers.begin(), summary.layers.end(),
        [value](const LayerSummary& a, const LayerSummary& b) { return value(a) < value(b); });
}

/// Mean over the layers that have the part; 0 where none has.
template <class Part, class Value>
double mean_of(const ProfileSummary& summary, std::optional<Part> LayerSummary::*part,
               Value value) {
    double sum = 0;
    int count = 0;
    for (const LayerSummary& layer : summary.layers)
        if (layer.*part) {
            sum += value(*(layer.*part));
            ++count;
        }
    return count > 0 ? sum / count : 0;
}

std::string balance_sentence(const ProfileSummary& summary) {
    const LayerSummary& worst =
        highest(summary, [](const LayerSummary& layer) { return layer.load.gpu_bound; });
    const LayerSummary& heaviest =
        highest(summary, [](const LayerSummary& layer) { return layer.load.largest_over_mean; });
    if (worst.load.gpu_bound > kBound)
        return fmt::format(
            "The busiest expert of layer {} has {:.2f} times the mean: on {} GPUs no placement "
            "without copies can be below {:.2f} there (busiest GPU over the mean, as many experts "
            "on each). Layers so bound: {} of {}.",
            worst.number, worst.load.largest_over_mean, summary.gpus, worst.load.gpu_bound,
            std::count_if(summary.layers.begin(), summary.layers.end(),
                          [](const LayerSummary& layer) { return layer.load.gpu_bound > kBound; }),
            summary.layers.size());
    return fmt::format(
        "No expert is too heavy for {} GPUs: the busiest, in layer {}, has {:.2f} times the mean, "
        "{:.0f} % of a GPU's share. Nothing found here stands against balance without copies.",
        summary.gpus, heaviest.number, heaviest.load.largest_over_mean,
        100 * heaviest.load.largest_over_gpu);
}

std::string contiguous_sentence(const ProfileSummary& summary) {
    const LayerSummary& worst =
        highest(summary, [](const LayerSummary& layer) { return layer.load.gpu_contiguous; });
    double mean = 0, bound = 0;
    for (const LayerSummary& layer : summary.layers) {
        mean += layer.load.gpu_contiguous;
        bound += layer.load.gpu_bound;
    }
    const double layers = static_cast<double>(summary.layers.size());
    return fmt::format(
        "Experts in order give the busiest GPU {:.2f} times the mean over the layers, {:.2f} in "
        "layer {}; without copies it is {:.2f} and {:.2f} at best. Placing by load can win at most "
        "what is between.",
        mean / layers, worst.load.gpu_contiguous, worst.number, bound / layers,
        worst.load.gpu_bound);
}

std::string structure_sentence(std::string_view what, double share, double chance) {
    const double over = chance > 0 ? share / chance : 0;
    const std::string_view verdict = chance > kTooFew  ? "too few tokens to tell"
                                     : over >= kStrong ? "a strong structure to place by"
                                     : over >= kStructure
                                         ? "some structure to place by"
                                         : "hardly more than chance, so placing by it gains little";
    return fmt::format("{}: the heaviest tenth of the pairs has {}, by chance {}: {}.", what,
                       percent(share), percent(chance), verdict);
}

std::string drift_sentence(const ProfileSummary& summary) {
    const double moved = mean_of(summary, &LayerSummary::halves,
                                 [](const LoadDifference& half) { return half.total_variation; });
    const double chance = mean_of(summary, &LayerSummary::halves,
                                  [](const LoadDifference& half) { return half.by_chance; });
    return fmt::format(
        "From the first half of the profile to the second {} of the load moves to other experts, "
        "by chance {}: {}",
        percent(moved), percent(chance),
        moved > kDrift * chance ? "load drifts, and a balance found on a part will not hold on the "
                                  "rest; balance several runs of the tokens at once."
                                : "load holds nearly still.");
}

void add_sentences(const ProfileSummary& summary, std::vector<std::string>& out) {
    out.push_back(balance_sentence(summary));
    if (summary.gpus > 1) out.push_back(contiguous_sentence(summary));
    const auto tell = [&](std::string_view what, auto part) {
        const double share = mean_of(
            summary, part, [](const auto& one) { return one.concentration.heaviest_tenth; });
        const double chance =
            mean_of(summary, part, [](const auto& one) { return one.concentration.by_chance; });
        if (share > 0) out.push_back(structure_sentence(what, share, chance));
    };
    tell("Experts chosen together in a layer", &LayerSummary::coactivation);
    tell("Experts of a layer and of the next", &LayerSummary::next);
    if (std::any_of(summary.layers.begin(), summary.layers.end(),
                    [](const LayerSummary& layer) { return layer.halves.has_value(); }))
        out.push_back(drift_sentence(summary));
}

std::string differences_sentence(const ProfileReport& report) {
    const auto& most = *std::max_element(
        report.differences.begin(), report.differences.end(),
        [](const auto& a, const auto& b) { return a.total_variation < b.total_variation; });
    const bool differ = most.total_variation > kOtherDomain * most.by_chance;
    return fmt::format(
        "Profiles {} and {} differ in {} of the load, by chance {}: {}.", most.first + 1,
        most.second + 1, percent(most.total_variation), percent(most.by_chance),
        differ ? "a placement that balances one will not balance the other; place for both at once"
               : "one placement serves both");
}

}  // namespace

std::vector<std::string> profile_sentences(const ProfileReport& report) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < report.profiles.size(); ++i) {
        std::vector<std::string> own;
        add_sentences(report.profiles[i], own);
        for (const std::string& note : report.profiles[i].notes) own.push_back(note);
        for (const std::string& sentence : own)
            out.push_back(report.profiles.size() > 1
                              ? fmt::format("Profile {}: {}", i + 1, sentence)
                              : sentence);
    }
    if (!report.differences.empty()) out.push_back(differences_sentence(report));
    return out;
}

int telling_layer(const ProfileSummary& summary) {
    const auto excess = [](const LayerSummary& layer) {
        double above = 0;
        for (const auto& one :
             {layer.coactivation ? layer.coactivation->concentration : Concentration{},
              layer.next ? layer.next->concentration : Concentration{}})
            above += one.heaviest_tenth - one.by_chance;
        return above;
    };
    return static_cast<int>(&highest(summary, excess) - summary.layers.data());
}

int ProfileReport::detailed_layer() const {
    return layer ? *layer : telling_layer(profiles.front());
}

}  // namespace moehub
