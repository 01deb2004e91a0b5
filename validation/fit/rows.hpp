/// The measured calls that kernels are fitted to, and the error of a card's constants on them.
#pragma once
#include "sim/kernels/kernels.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/gpu.hpp>

#include <map>
#include <string>
#include <vector>

namespace moehub::fit {

inline constexpr double kShortest = 10;  ///< us; shorter calls carry launch noise

struct MeasuredCall {
    std::string card;
    std::string library;
    std::string group;  ///< card, kernel, formats: each weighs the same
    KernelCall call;
    ExpertRows rows;  ///< of a MoE: they do not depend on constants
    double us = 0;
    bool held_out = false;  ///< one in four, by a hash of its shape: never fitted
    bool untuned = false;   ///< ran a tactic tuned for another case (tuner_files.hpp): not fitted
};

/// The calls of a file under validation/kernels, from kShortest up.
std::vector<MeasuredCall> read_calls(const std::string& path);

/// By name, those of the calls.
using Cards = std::map<std::string, Gpu>;

/// Mean over groups of the mean |log(predicted / measured)|, each cut at 0.5, of rows that are
/// neither held out nor untuned.
double loss(const Cards& cards, const std::vector<MeasuredCall>& calls);

/// Median and 90th percentile of |predicted / measured - 1|, by group: fitted rows, held out,
/// untuned.
std::string errors(const Cards& cards, const std::vector<MeasuredCall>& calls);

}  // namespace moehub::fit
