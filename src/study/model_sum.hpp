/// What all whole models have in common: parts that are added up.
#pragma once
#include "study/model_rest.hpp"

namespace moehub {

/// Attention's parts, windowed layers by themselves.
void add_attention(std::vector<LayerTypeTime>& parts, const Model& model, const Rest& rest);

void add(Breakdown& sum, const Breakdown& one);

/// What follows from a model's parts and operations.
void sum_up(ModelTime& time, const Machine& machine, std::int64_t tokens);

}  // namespace moehub
