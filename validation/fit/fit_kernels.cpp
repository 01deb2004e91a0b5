/// Fits the kernel libraries of presets/generations to validation/kernels and writes the constants
/// back into those files, each to three digits; what is not fitted stays as it stands there.
///
///     validation/fit_kernels [KERNEL …]        from the root of the repository
///
/// Every fit starts from the values of problems.cpp, so a second run writes the same bytes.
#include "problems.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

int main(int argc, char** argv) {
    using namespace moehub::fit;
    try {
        const std::vector<std::string> wanted(argv + 1, argv + argc);
        for (const Problem& problem : problems()) {
            const auto asked = [&](const std::string& name) {
                return problem.kernel.starts_with(name);
            };
            if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), asked)) continue;
            const Solution solution = solve(problem, "validation/kernels");
            fmt::print("{} {} {}: loss {:.4f}\n{}", problem.generation, problem.library,
                       problem.kernel, solution.loss, solution.errors);
            std::fflush(stdout);
            write_constants(problem, solution, "presets/generations");
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "fit_kernels: {}\n", error.what());
        return 2;
    }
    return 0;
}
