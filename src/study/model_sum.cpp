#include "study/model_sum.hpp"

#include <fmt/format.h>

namespace moehub {

void add_attention(std::vector<LayerTypeTime>& parts, const Model& model, const Rest& rest) {
    if (rest.attention.count > 0)
        parts.push_back(rest.attention.part("attention", Part::attention));
    if (rest.windowed.count > 0)
        parts.push_back(rest.windowed.part(
            fmt::format("attention, window {}", model.attention.window), Part::attention));
}

void add(Breakdown& sum, const Breakdown& one) {
    sum.compute += one.compute;
    sum.communication += one.communication;
    sum.host += one.host;
}

void sum_up(ModelTime& time, const Machine& machine, std::int64_t tokens) {
    for (const LayerTypeTime& part : time.parts) time.total += part.total();
    const double seconds = to_seconds(time.total);
    time.tokens_per_second = static_cast<double>(tokens) / seconds;
    time.mfu = time.flops / (seconds * machine.gpus() * machine.gpu.bf16_flops);
}

}  // namespace moehub
