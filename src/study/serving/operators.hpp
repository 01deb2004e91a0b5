/// The operators of a step, written down part by part.
#pragma once
#include "study/serving/costs.hpp"

#include <moehub/serving.hpp>

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
    std::int64_t tokens = 0;        ///< new ones in all
    std::int64_t outputs = 0;       ///< of them, those whose next token is wanted
    std::int64_t group_tokens = 0;  ///< of all ranks together
};
/// Throws InputError for a load of nothing, or one without context.
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
    /// Kernels that pass over `bytes` each.
    void small(std::string name, OperatorKind kind, double count, double bytes);
    void all_reduce(std::string name, OperatorKind kind, double count, double bytes);
    void add(StepOperator one) { operators_.push_back(std::move(one)); }

    /// Of a kernel among others: without what of its start they cover.
    double exposed(const KernelCost& cost) const;
    double linear_seconds(const Matrix& matrix);
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

}  // namespace moehub
