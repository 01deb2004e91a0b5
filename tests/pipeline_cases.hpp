/// Pipelines that tests draw at random.
#pragma once
#include "base/rng.hpp"
#include "plan/pipeline/pipeline.hpp"

#include <string>

#include <fmt/format.h>

namespace moehub {

inline PipelineInput even_stages(int stages, int pieces, std::int64_t micro_batches,
                                 const PieceTime& time) {
    PipelineInput input;
    input.stages = stages;
    input.pieces = pieces;
    input.micro_batches = micro_batches;
    input.times.assign(static_cast<std::size_t>(stages * pieces), time);
    return input;
}

inline PipelineInput even_dualpipe(int stages, std::int64_t micro_batches, const PieceTime& time) {
    PipelineInput input = even_stages(stages, 1, micro_batches, time);
    input.schedule = PipelineInput::Schedule::dualpipe;
    return input;
}

enum class Unevenness { none, ends, slight, any };

/// Each seed its own: schedule, sizes (`rounds` of as many micro-batches as stages at most), times,
/// pairs that save or not, send or none.
inline PipelineInput random_pipeline(std::uint64_t seed, Unevenness unevenness,
                                     std::uint64_t rounds) {
    Rng rng(seed);
    PipelineInput input;
    const bool dualpipe = rng.below(3) == 0;
    input.stages = 1 + static_cast<int>(rng.below(10));
    if (dualpipe) {
        input.schedule = PipelineInput::Schedule::dualpipe;
        input.stages += input.stages % 2;
    } else {
        input.pieces = 1 + static_cast<int>(rng.below(3));
    }
    input.micro_batches = input.stages * static_cast<std::int64_t>(2 + rng.below(rounds));
    if (input.pieces == 1 && !dualpipe)
        input.micro_batches += static_cast<std::int64_t>(rng.below(3));
    input.send = rng.below(2) == 0 ? 0 : 0.3 * rng.uniform();
    const double saving = rng.below(2) == 0 ? 0 : 0.3 * rng.uniform();
    const double forward = 0.5 + rng.uniform();
    const double backward = 1 + rng.uniform();
    const int pieces = input.stages * input.pieces;
    for (int i = 0; i < pieces; ++i) {
        PieceTime time{forward, backward, 0, 0};
        const auto vary = [&rng](double by) { return 1 + by * (rng.uniform() - 0.5); };
        const bool end = i == 0 || i == pieces - 1;
        const double by = unevenness == Unevenness::any           ? 1.8
                          : unevenness == Unevenness::slight      ? 0.01
                          : unevenness == Unevenness::ends && end ? 1.0
                                                                  : 0.0;
        time.forward *= vary(by);
        time.backward *= vary(by);
        time.weights = 0.4 * time.backward;
        time.pair = (time.forward + time.backward) * (1 - saving);
        input.times.push_back(time);
    }
    return input;
}

inline std::string described(const PipelineInput& input, std::uint64_t seed) {
    return fmt::format("seed {}: {} of {} stages, {} pieces, {} micro-batches, send {}", seed,
                       input.schedule == PipelineInput::Schedule::dualpipe ? "dualpipe" : "1f1b",
                       input.stages, input.pieces, input.micro_batches, input.send);
}

}  // namespace moehub
