/// What is fitted: of every library and kernel the constants that are free, and where they start.
#pragma once
#include <moehub/kernel_calls.hpp>

#include <string>
#include <vector>

namespace moehub::fit {

/// A free constant; times in ps, others as they stand in the file.
struct Knob {
    std::string key;  ///< of the kernel's table; with a table of its own: "gemm_bf16.start"
    double start = 0;
    double most = 0;                     ///< 0: whatever the field allows
    std::vector<std::string> tied = {};  ///< constants that always have the same value
};

struct Problem {
    std::string generation;
    std::string library;
    std::string kernel;              ///< table: "mla_decode"
    std::vector<std::string> files;  ///< of validation/kernels
    std::vector<Knob> knobs;
    std::vector<NumberFormat> formats = {};  ///< of a MoE: those that share constants
    int rounds = 4;  ///< of the simplex, each from where the one before ended
};

/// All of them, in the order in which they stand in the presets.
std::vector<Problem> problems();

struct Solution {
    std::vector<double> values;  ///< of the knobs, rounded to three digits
    double loss = 0;
    std::string errors;  ///< a table
};

/// Structure that is not fitted comes from the presets of the binary; `measurements` is the folder
/// of the files. With `only`, that card alone is fitted to, and the errors are those of the others,
/// of which the fit knows the datasheet.
Solution solve(const Problem& problem, const std::string& measurements,
               const std::string& only = "");

/// Puts the values into the generation's file, comments and all else as they are.
void write_constants(const Problem& problem, const Solution& solution, const std::string& presets);

}  // namespace moehub::fit
