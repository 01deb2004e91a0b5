/// Fits the kernel libraries of presets/generations to validation/kernels and writes the constants
/// back into those files, each to three digits; what is not fitted stays as it stands there.
///
///     validation/fit_kernels [KERNEL …]              from the root of the repository
///     validation/fit_kernels --one-card [KERNEL …]   writes nothing: fits to each card alone and
///                                                    prints the errors of the others
///
/// Every fit starts from the values of problems.cpp, so a second run writes the same bytes.
#include "problems.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moehub::fit {
namespace {

const std::string kMeasurements = "validation/kernels";
const std::string kPresets = "presets/generations";

bool asked_for(const Problem& problem, const std::vector<std::string>& kernels) {
    return kernels.empty() || std::any_of(kernels.begin(), kernels.end(), [&](const auto& name) {
               return problem.kernel.starts_with(name);
           });
}

void print(const Problem& problem, const Solution& solution, const std::string& only) {
    fmt::print("{} {} {}{}: loss {:.4f}\n{}", problem.generation, problem.library, problem.kernel,
               only.empty() ? "" : fmt::format(", fitted to {} alone, the others", only),
               solution.loss, solution.errors);
    std::fflush(stdout);
}

void run(std::vector<std::string> kernels) {
    const bool one_card = !kernels.empty() && kernels.front() == "--one-card";
    if (one_card) kernels.erase(kernels.begin());
    for (const Problem& problem : problems()) {
        if (!asked_for(problem, kernels)) continue;
        const bool hopper = problem.generation == "hopper";
        const std::vector<std::string> cards =
            hopper ? std::vector<std::string>{"h100-sxm", "h200-sxm"}
                   : std::vector<std::string>{"b200", "gb200"};
        if (one_card) {
            for (const std::string& only : cards)
                print(problem, solve(problem, kMeasurements, only), only);
            continue;
        }
        const Solution solution = solve(problem, kMeasurements);
        print(problem, solution, "");
        write_constants(problem, solution, kPresets);
    }
}

}  // namespace
}  // namespace moehub::fit

int main(int argc, char** argv) {
    try {
        moehub::fit::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "fit_kernels: {}\n", error.what());
        return 2;
    }
    return 0;
}
