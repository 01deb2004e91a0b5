/// Times of single kernels and collectives on one machine, each asked once.
#pragma once
#include "sim/kernels/kernels.hpp"

#include <moehub/collective.hpp>
#include <moehub/predict.hpp>

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace moehub {

class ServingCosts {
  public:
    explicit ServingCosts(Machine machine) : machine_(std::move(machine)) {}

    const Machine& machine() const { return machine_; }

    /// By the first of `libraries` ("a, b") that has such a kernel on the card. Throws InputError
    /// as predict_kernel does, where none has.
    const KernelCost& kernel(const std::string& libraries, const KernelCall& call);

    /// Routed experts when tokens choose at random, by the call's skew. As kernel otherwise.
    const KernelCost& random_moe(const std::string& libraries, const MoeCall& call);

    /// Seconds of a collective on the machine's first GPUs, of bytes as nccl-tests counts them:
    /// simulated at powers of two, straight lines between them. NCCL's choice, or of all-reduces
    /// TensorRT-LLM's one-shot kernel where that is faster and `one_shot` is set.
    double collective(Collective::Op op, int gpus, double bytes, bool one_shot = false);

  private:
    using MoeKey = std::array<std::int64_t, 10>;
    const std::string& library(const std::string& libraries, const KernelCall& call);
    double simulated(Collective::Op op, int gpus, int exponent, bool one_shot);

    Machine machine_;
    std::map<std::string, PredictionCache> kernels_;
    std::map<std::tuple<std::string, std::size_t, NumberFormat>, std::string> chosen_;
    std::map<std::pair<std::string, MoeKey>, KernelCost> random_moe_;
    std::map<std::tuple<Collective::Op, int, int, bool>, double> collectives_;
};

/// Expected of the rank with most. `draw` as of published measurements: experts' shares follow a
/// power law of its alpha. Its groups are not read.
ExpertRows random_rows(const RowDraw& draw);

}  // namespace moehub
