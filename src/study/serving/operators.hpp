/// The operators of a step, written down part by part.
#pragma once
#include "sim/kernels/kernels.hpp"

#include <moehub/collective.hpp>
#include <moehub/predict.hpp>
#include <moehub/serving.hpp>

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace moehub {

inline constexpr double kBf16Bytes = 2;

/// A load as one attention rank sees it: the fullest one.
struct RankLoad {
    std::int64_t requests = 0;
    std::int64_t context = 0;
    std::int64_t tokens_per_request = 1;
    std::int64_t prompts = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t prompt_context = 0;
    std::int64_t tokens = 0;        ///< new tokens in all
    std::int64_t outputs = 0;       ///< new tokens whose next token is wanted
    std::int64_t group_tokens = 0;  ///< new tokens of all ranks together
};
/// The fullest rank's load. Throws InputError for a load of nothing, or one without context.
RankLoad rank_load(const ServingLayout& layout, const StepLoad& load);

/// Appends operators with their times.
class OperatorWriter {
  public:
    OperatorWriter(const ServingCase& what, ServingCosts& costs) : what_(what), costs_(costs) {}

    struct Matrix {
        NumberFormat format = NumberFormat::bf16;
        std::int64_t m = 0;
        std::int64_t n = 0;
        std::int64_t k = 0;
    };
    void linear(std::string name, OperatorKind kind, double count, const Matrix& matrix);
    void kernel(std::string name, OperatorKind kind, double count, const std::string& libraries,
                const KernelCall& call);
    /// Adds kernels that pass over `bytes` each.
    void small(std::string name, OperatorKind kind, double count, double bytes);
    void all_reduce(std::string name, OperatorKind kind, double count, double bytes);
    void add(StepOperator one) { operators_.push_back(std::move(one)); }

    /// Seconds of a kernel among others: without what of its start they cover.
    double exposed(const KernelCost& cost) const;
    double kernel_seconds(const std::string& libraries, const KernelCall& call);

    const ServingCase& what() const { return what_; }
    const EngineOverheads& overheads() const {
        return what_.engine.overheads(what_.machine.gpu.generation);
    }
    ServingCosts& costs() { return costs_; }
    std::vector<StepOperator> take() { return std::move(operators_); }

  private:
    const ServingCase& what_;
    ServingCosts& costs_;
    std::vector<StepOperator> operators_;
};

/// Shared experts that run beside what takes so many seconds cost only what they take longer.
void hide_shared_experts(std::vector<StepOperator>& operators, double behind);

void write_attention(OperatorWriter& writer, const RankLoad& load);
void write_dense_ffn(OperatorWriter& writer, const RankLoad& load);
void write_router_and_shared(OperatorWriter& writer, const RankLoad& load);
void write_moe(OperatorWriter& writer, const RankLoad& load);
void write_ends(OperatorWriter& writer, const RankLoad& load);

// Times of single kernels and collectives on one machine, each asked once.

class ServingCosts {
  public:
    explicit ServingCosts(Machine machine) : machine_(std::move(machine)) {}

    const Machine& machine() const { return machine_; }

    /// The cost by the first of `libraries` ("a, b") that has such a kernel on the card. Throws
    /// InputError as predict_kernel does, where none has.
    const KernelCost& kernel(const std::string& libraries, const KernelCall& call);

    /// Routed experts when tokens choose at random, by the call's skew; else like kernel().
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

/// Expected rows of the rank with most. `draw` as of published measurements: experts' shares follow
/// a power law of its alpha. Its groups are not read.
ExpertRows random_rows(const RowDraw& draw);

}  // namespace moehub
