// The table of papers that can be reproduced.
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "study/reproduce_cais.hpp"
#include "study/reproduce_dysharp.hpp"
#include "study/reproduce_moe_hub.hpp"
#include "study/reproduce_moetuner.hpp"
#include "study/reproduce_pangu.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Paper {
    const char* name;  ///< of its file in presets/papers
    Reproduction (*run)(const ReproduceOptions&);
};
constexpr Paper kPapers[] = {{"moe-hub", reproduce_moe_hub},
                             {"dysharp", reproduce_dysharp},
                             {"cais", reproduce_cais},
                             {"moetuner", reproduce_moetuner},
                             {"pangu", reproduce_pangu}};

}  // namespace

std::vector<PaperInfo> papers() {
    std::vector<PaperInfo> list;
    for (const Paper& one : kPapers) {
        const Publication& paper = publication(one.name);
        list.push_back({paper.name,
                        fmt::format("{}, {} (arXiv {}{}{})", paper.title, paper.subject,
                                    paper.arxiv, paper.venue.empty() ? "" : ", ", paper.venue),
                        paper.figures});
    }
    return list;
}

Reproduction reproduce(const std::string& paper, const ReproduceOptions& options) {
    std::vector<std::string> known;
    for (const Paper& one : kPapers) {
        if (paper == one.name) return one.run(options);
        known.emplace_back(one.name);
    }
    throw InputError(fmt::format("paper: found {}, allowed: {}{}", moehub::quoted(paper),
                                 fmt::join(known, ", "), did_you_mean(paper, known)));
}

}  // namespace moehub
