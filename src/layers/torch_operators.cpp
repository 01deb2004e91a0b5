/// Forward: logits, softmax in fp32, top-k; stable argsort of the chosen experts, their counts
/// (scatter_add) and running sums; index_select; a grouped GEMM for gate and up; the activation of
/// the one half, its product with the other; a grouped GEMM; the product with the gate weights;
/// index_add into zeros.
///
/// Backward, autograd knows only these operators: the gradient of a half of a tensor is zeros with
/// that half copied in, and the two are added; that of index_select is index_add into zeros.
#include "layers/torch_operators.hpp"

#include "sim/gpu/gemm.hpp"

#include <initializer_list>
#include <numeric>
#include <utility>

namespace moehub::layers {
namespace {

using sim::KernelName;

/// The operators of a shape on a card.
class Operators {
  public:
    Operators(const Gpu& gpu, const TorchShape& shape)
        : gpu_(gpu),
          shape_(shape),
          rows_(std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0})) {}

    double tokens_wide() const { return count(shape_.tokens) * count(shape_.hidden); }
    double rows_wide() const { return count(rows_) * count(shape_.hidden); }
    double rows_inner() const { return count(rows_) * count(shape_.inner); }
    double row_bytes() const { return kBf16 * count(shape_.hidden); }
    std::int64_t rows() const { return rows_; }
    std::int64_t experts() const { return static_cast<std::int64_t>(shape_.rows.size()); }
    std::int64_t up() const { return (shape_.gated ? 2 : 1) * shape_.inner; }

    TorchOperator gemm(std::int64_t rows, std::int64_t k, std::int64_t n) const {
        return {1, plan_gemm(gpu_, {rows, k, n, kCold})};
    }
    TorchOperator grouped(std::int64_t k, std::int64_t n) const {
        return {1, plan_grouped_gemm(gpu_, grouped_shape(k, n))};
    }
    TorchOperator gradient(std::int64_t k, std::int64_t n) const {
        return {1, plan_grouped_gradient(gpu_, grouped_shape(k, n))};
    }
    TorchOperator gather() const {
        return {1, gather_traffic(gpu_, {rows_, shape_.tokens, row_bytes()})};
    }
    TorchOperator index_add() const { return {1, index_add_seconds(gpu_, rows_, row_bytes())}; }
    TorchOperator plain(double elements, int in) const {
        return {1, plain_traffic(gpu_, elements, in)};
    }
    /// Kernels too short to be more than their launches.
    TorchOperator small(int operators, int kernels) const {
        return {operators, kernels * to_seconds(gpu_.kernels.stream_start)};
    }

  private:
    static double count(std::int64_t value) { return static_cast<double>(value); }
    GroupedShape grouped_shape(std::int64_t k, std::int64_t n) const {
        GroupedShape made{shape_.rows, k, n};
        made.cold = kCold;
        return made;
    }

    const Gpu& gpu_;
    const TorchShape& shape_;
    std::int64_t rows_;
};

/// The gradient of one half of the rows: zeros of both, the half copied in.
void add_half_gradient(std::vector<TorchOperator>& list, const Operators& o) {
    list.push_back({1, fill_traffic(2 * o.rows_inner())});
    list.push_back(o.plain(o.rows_inner(), 1));
}

void add_activation_gradient(std::vector<TorchOperator>& list, const Operators& o, bool gated) {
    if (!gated) {
        list.push_back({1, vectorised_traffic(o.rows_inner(), 2)});
        return;
    }
    list.push_back(o.plain(o.rows_inner(), 2));                  // gradient of the activated half
    list.push_back({1, vectorised_traffic(o.rows_inner(), 2)});  // gradient of the other half
    add_half_gradient(list, o);
    list.push_back(o.plain(o.rows_inner(), 2));  // through the activation
    add_half_gradient(list, o);
    list.push_back({1, vectorised_traffic(2 * o.rows_inner(), 2)});  // their sum
}

/// Names operators from the first on: so many of each.
using NamedRun = std::pair<std::size_t, KernelName>;
void name(std::vector<TorchOperator>& list, std::initializer_list<NamedRun> names) {
    auto op = list.begin();
    for (const auto& [count, kernel] : names)
        for (std::size_t i = 0; i < count; ++i) (op++)->name = kernel;
}

}  // namespace

TorchPass torch_forward(const Gpu& gpu, const TorchShape& shape) {
    const Operators o(gpu, shape);
    TorchPass pass;
    pass.first = {
        o.gemm(shape.tokens, shape.hidden, o.experts()),
        {2, route_seconds(gpu, shape.tokens, o.experts())},  // softmax, top-k
        {1, sort_seconds(gpu, o.rows())},
        o.small(2, 4),  // counts: zeros and ones, scatter_add of a copy
        o.small(1, 2),  // running sums
        o.small(1, 1),  // each row's token
        o.gather(),
        o.grouped(shape.hidden, o.up()),
    };
    if (shape.gated)
        pass.rest = {o.plain(o.rows_inner(), 1), o.plain(o.rows_inner(), 2)};
    else
        pass.rest = {{1, vectorised_traffic(o.rows_inner(), 1)}};
    const std::vector<TorchOperator> last = {
        o.grouped(shape.inner, shape.hidden),
        o.small(1, 2),  // each row's gate weight, in bf16
        o.plain(o.rows_wide(), 1),
        {1, fill_traffic(o.tokens_wide())},
        {0, vectorised_traffic(o.tokens_wide(), 1)},  // index_add adds to a copy
        o.index_add(),
    };
    const std::size_t activation = pass.rest.size();
    pass.rest.insert(pass.rest.end(), last.begin(), last.end());
    name(pass.first, {{2, KernelName::router},
                      {4, KernelName::addresses},
                      {1, KernelName::reorder},
                      {1, KernelName::expert_up}});
    name(pass.rest, {{activation, KernelName::activation},
                     {1, KernelName::expert_down},
                     {5, KernelName::weighted_sum}});
    return pass;
}

TorchPass torch_backward(const Gpu& gpu, const TorchShape& shape) {
    const Operators o(gpu, shape);
    TorchPass pass;
    pass.first = {
        o.gather(),                                                               // index_add, back
        o.plain(o.rows_wide(), 1),                                                // row gradient
        {1, vectorised_traffic(o.rows_wide(), 2)},                                // weight gradient
        {1, Traffic{.read = kBf16 * o.rows_wide(), .access = Access::in_order}},  // summed
        o.small(3, 3),                                                            // to their tokens
        o.grouped(shape.hidden, shape.inner),
    };
    pass.rest = {o.gradient(shape.inner, shape.hidden)};
    add_activation_gradient(pass.rest, o, shape.gated);
    const std::vector<TorchOperator> last = {
        o.grouped(o.up(), shape.hidden),
        o.gradient(shape.hidden, o.up()),
        {1, fill_traffic(o.tokens_wide())},
        o.index_add(),
        o.small(4, 4),  // gradients of top-k (zeros, scatter) and softmax, in bf16
        o.gemm(shape.hidden, shape.tokens, o.experts()),
        o.gemm(shape.tokens, o.experts(), shape.hidden),
        {1, vectorised_traffic(o.tokens_wide(), 2)},
    };
    const std::size_t activation = pass.rest.size() - 1;
    pass.rest.insert(pass.rest.end(), last.begin(), last.end());
    name(pass.first, {{5, KernelName::weighted_sum}, {1, KernelName::expert_up}});
    name(pass.rest, {{1, KernelName::gradients},
                     {activation, KernelName::activation},
                     {1, KernelName::expert_down},
                     {1, KernelName::gradients},
                     {2, KernelName::reorder},
                     {4, KernelName::router}});
    return pass;
}

}  // namespace moehub::layers
