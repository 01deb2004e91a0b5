/// Trainer: the software that trains a model, one version of it, as plain values:
/// presets/trainers/*.toml, or a file of the user's own. docs/planning.md says where each number
/// comes from.
#pragma once
#include <moehub/kernel_calls.hpp>
#include <moehub/units.hpp>

#include <string>
#include <string_view>

namespace moehub {

/// What a version does and costs on a generation of cards.
struct TrainerCosts {
    std::string dispatcher = "all-to-all";  ///< system that moves rows where a layout names none
    std::string overlaps = "none";          ///< pass overlaps that it runs where a layout names
                                            ///< none, separated by ';': none, 1f1b, dualpipe
    Ps launch = 0;  ///< host time for each operator that is counted, with the smaller ones around
                    ///< it: views, checks, hooks of autograd
    NumberFormat fp8 = NumberFormat::fp8;  ///< recipe of FP8: fp8 (a scale a tensor), fp8-block
    double graphs = 0;                     ///< share of a layer's operators that CUDA graphs replay
    double tensor = 1;      ///< share of the rate that kernels reach alone that products keep in a
                            ///< long run: clocks under the power limit, kernels beside them
    double fp8_tensor = 0;  ///< `tensor` of products in FP8; 0: as tensor
    double memory = 1;      ///< share of the lone rate that kernels that move bytes keep
};

struct TrainerSpec {
    std::string name;
    std::string title;  ///< one line for `moehub list`

    std::string sources;  ///< parts of the `source` of published runs that are this version's,
                          ///< separated by ';'. docs/planning.md names them
    std::string notes;    ///< which runs: parts of "MODEL MACHINE PRECISION NOTE", separated by
                          ///< ';'; empty: those that no other trainer of the source names

    std::string library = "trtllm";  ///< library of linear layers; a card without it: PyTorch's
    bool causal_flops = true;  ///< the model's FLOPs count half of attention's scores; false: all
    bool gradients_overlap = true;   ///< sums of gradients travel while the last backward pass runs
    bool parameters_overlap = true;  ///< weights are gathered while the first forward pass runs
    double fsdp_overlap = 1;         ///< share of a layer's time that hides weights' gathering
    bool fp8_rows = false;           ///< rows travel to experts in FP8 where these compute in it
    double gradient_bytes = 4;       ///< bytes of a gradient on its way: fp32 or bf16
    double kept_gradient_bytes = 4;  ///< bytes of a gradient that micro-batches add to
    double state_bytes = 12;         ///< optimizer's bytes a weight: master copy and two moments
    std::string recompute = {};      ///< recomputation where a run names none; empty: any
    int micro_batch = 0;    ///< sequences where a published run names none; 0: the planner's choice
    double passes = 0;      ///< further passes over a layer's rows (hidden wide), each way:
                            ///< copies and casts that no kernel fuses
    double row_passes = 0;  ///< further passes over rows of experts, each way
    double imbalance = 0;   ///< spread of experts' shares where routing is not forced to be
                            ///< balanced: log-normal, with this standard deviation of the logarithm
    Ps step_host = 0;       ///< host time of a step: data, logging, norms of gradients
    TrainerCosts hopper;    ///< costs on Hopper, and on cards of other generations
    TrainerCosts blackwell;

    const TrainerCosts& costs(std::string_view generation) const {
        return generation == "blackwell" ? blackwell : hopper;
    }
};

/// Throws InputError when a value lies outside its limits, as reading a file would.
void check(const TrainerSpec& trainer);

}  // namespace moehub
