/// TensorRT-LLM's expert statistics of one rank: counts, or every token's experts.
#pragma once
#include "base/safetensors.hpp"
#include "place/profile/profile_recording.hpp"

#include <compare>
#include <string>
#include <vector>

namespace moehub {

/// What a tensor is of: "<iteration>_<layer>".
struct StatisticsKey {
    int iteration = 0;
    int layer = 0;
    auto operator<=>(const StatisticsKey&) const = default;
};
StatisticsKey statistics_key(const std::string& name, const std::string& file);

/// Throws InputError unless every iteration has all layers; keys ascending.
void check_no_holes(const std::vector<StatisticsKey>& keys, const std::string& file);

RecordedCounts trtllm_counts(const std::vector<SafeTensor>& tensors, const std::string& file);
RecordedTokens trtllm_tokens(const std::vector<SafeTensor>& tensors, const std::string& file);

}  // namespace moehub
