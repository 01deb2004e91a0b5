/// Published end-to-end serving measurements.
///
/// How their columns are read (docs/serving.md says from what that was found):
///   - requests_per_worker counts the requests of one attention group: a worker has attention_dp
///     times as many.
///   - Where tp · attention_dp = moe_tp · moe_ep = n² and either moe_tp = moe_ep = n or
///     tp = attention_dp = n, the engine's two options of n were multiplied: the worker has n GPUs
///     and its experts are dealt out among them.
///   - Where heads do not divide, workers of a deployment that reads prompts elsewhere were counted
///     together: attention is data parallel, experts are dealt out, and nothing is prefilled.
///     Experts that would be cut below the 128 columns of a scale's block are dealt out, too.
///   - A row that is faster than HBM at its peak gives the weights and the cache is skipped.
///   - A model with a layer for multi-token prediction that is faster than kSpeculative of its
///     predicted time runs with it.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/serving.hpp>

namespace moehub {

struct ServingRow {
    Measurement measurement;
    std::string engine;
    std::string model;
    std::string gpu;
    std::string weights;  ///< as the file calls it; empty: bf16
    ServingLayout layout;
    RequestLoad load;
};
ServingRow parse_serving(const CsvRow& row);

/// Presets, predictions and simulations that rows share, each once.
class ServingBench {
  public:
    ServingBench() = default;
    explicit ServingBench(Overrides settings) : settings_(std::move(settings)) {}  ///< of machines

    /// Throws InputError where a name is not known or the layout is impossible.
    ServingCase serving_case(const ServingRow& row);
    ServingClock clock(ServingCase what);

    EngineSpec& engine(const std::string& name);  ///< which a fit may change

  private:
    const Machine& machine(const std::string& gpu, int gpus);

    Overrides settings_;
    std::map<std::string, Machine> machines_;
    std::map<std::string, Model> models_;
    std::map<std::string, EngineSpec> engines_;
    std::map<std::string, std::shared_ptr<ServingCosts>> costs_;
};

inline constexpr double kSpeculative = 0.72;
/// Of multi-token prediction: guesses a step checks, and those that are right.
inline constexpr int kDrafts = 3;
inline constexpr double kAccepted = 1.5;

/// Seconds per output token; 0: no time above 0 can be right, the row is faster than memory.
struct ServingTpot {
    double seconds = 0;
    bool speculative = false;
};
ServingTpot predicted_tpot(const ServingClock& clock, const ServingRow& row);

}  // namespace moehub
