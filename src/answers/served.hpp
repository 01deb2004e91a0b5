/// A model as a serving engine runs it: one step under several systems, or many sizes of one.
#pragma once
#include "answers/layer_request.hpp"
#include "report/answer.hpp"

#include <moehub/served_model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Forms of `moehub model` beside kExperts and kDense.
inline constexpr unsigned kDecode = 4;
inline constexpr unsigned kPrefill = 8;
static_assert(kServed == (kDecode | kPrefill));

struct ServedRequest {
    bool decode = false;
    bool prefill = false;
    std::optional<std::int64_t> context;
    std::optional<std::int64_t> prompt;
    std::vector<std::int64_t> batches;  ///< batch sizes per GPU
    std::vector<std::int64_t> gpus;     ///< counts of GPUs; none: all
    std::string engine = "sglang";
    std::optional<NumberFormat> weights;
    std::optional<NumberFormat> cache;
    BatchOverlap overlap = BatchOverlap::none;
    std::optional<double> tokens_per_step;
    bool find = false;  ///< the largest batch within `tpot`
    std::optional<Ps> tpot;

    bool asked() const { return decode || prefill; }
};

Options served_options(ServedRequest& request);

/// What is served, by whom.
struct ServedQuestion {
    const LayerRequest& layer;
    const ServedRequest& served;
    const std::optional<std::vector<Wanted<SystemSpec>>>& systems;
    std::optional<int> attention_gpus;
    int threads = 0;
};

/// Throws InputError: what cannot be served, or a batch that nothing satisfies.
Answer served_answer(const ServedQuestion& question, const Asker& asker);

}  // namespace moehub
