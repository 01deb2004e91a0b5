#include "study/reproduce_dysharp.hpp"

namespace moehub {
namespace {

constexpr std::string_view kDeepEpLong =
    "DeepEP's few sending SMs copy less than a link carries, as its authors measured, and "
    "rows are copied to experts and added up by passes of their own. With its links filled "
    "it is faster by about a tenth (docs/dysharp.md, experiments).";
constexpr std::string_view kTutelLong =
    "Tutel pads every pair of a GPU and an expert to the largest count anywhere, sends all "
    "of it and computes it. With routing that gives every expert the same its lead is the "
    "published one (docs/dysharp.md, experiments). The paper does not say what Tutel's "
    "capacity was.";
constexpr std::string_view kCometShort =
    "Comet sends one copy of a token to a GPU and hides it under GEMMs. In the largest "
    "configurations its layer is little longer than the experts' GEMMs alone, which no "
    "system can be faster than; where the wire binds, on M with many experts a token, the "
    "lead is as published.";
constexpr std::string_view kFasterLong =
    "It sends a row for each expert where others send one for each GPU: with many experts a "
    "token that is half as many again, and its lead grows with them here.";
constexpr std::string_view kRestLong =
    "What lies outside the MoE layers, the same for all, takes as long as DySHARP's MoE "
    "layers here; the published pair of leads, in the layer and in training, asks for a "
    "third of that (docs/dysharp.md, experiments). Backward, the experts' weight gradients "
    "hide part of what a baseline exposes, too.";
constexpr std::string_view kDualPipeShort =
    "DualPipe hides rows under the other micro-batch's attention and experts; the longer "
    "those take, the more, and here attention takes as long as DySHARP's MoE layers. Its "
    "larger memory and smaller bubble are left out.";

/// No entry, no excuse: a number that leaves the paper's by another side must be looked into.
constexpr Reason kReasons[] = {
    {"layer", "over deepep", Side::above, kDeepEpLong},
    {"layer", "over deepep, largest", Side::above, kDeepEpLong},
    {"layer", "over fastermoe", Side::below, kCometShort},
    {"layer", "over fastermoe, largest", Side::above, kFasterLong},
    {"layer", "over ccfuser, largest", Side::above, kFasterLong},
    {"layer", "over tutel", Side::above, kTutelLong},
    {"layer", "over tutel, largest", Side::above, kTutelLong},
    {"layer", "over comet", Side::below, kCometShort},
    {"training", "over deepep", Side::below, kRestLong},
    {"training", "over deepep, largest", Side::below, kRestLong},
    {"training", "over nvls", Side::below, kRestLong},
    {"training", "over nvls, largest", Side::below, kRestLong},
    {"training", "over fastermoe", Side::below, kRestLong},
    {"training", "over ccfuser", Side::below, kRestLong},
    {"training", "over comet", Side::below, kRestLong},
    {"training", "over comet, largest", Side::below, kRestLong},
    {"training", "over tutel, largest", Side::above, kTutelLong},
    {"training", "over dualpipe", Side::below, kDualPipeShort},
    {"training", "over dualpipe, largest", Side::below, kDualPipeShort},
    {"traffic", "nvls, useless over useful, L top-8", Side::above,
     "Counted here in bytes on the links, with the address flit of every multicast packet "
     "and without the copy for the own GPU. By copies it is as published (docs/dysharp.md, "
     "experiments)."},
    {"traffic", "nearly halves deepep's traffic", Side::below,
     "Of rows alone it is (d + 1) of 2 d for d copies, which is near. Every packet has a "
     "flit more for its list, and loads have requests."},
    {"wire", "communication in deepep's layer", Side::below,
     "Rows on the wire and experts at their FP8 rate take about as long as each other here, and "
     "passes over rows come on top. The published share would need experts beyond the tensor "
     "cores' peak, or a dispatch that fills less than half of a link."},
    {"ablation", "primitives without fusion gain no time", Side::below,
     "Bytes down in dispatch and up in combine stay one for each GPU, so that the wire "
     "hardly gains. The rest is what steps-only pays beside: counts, loads one by one of "
     "which an SM has few in flight, and a pass that adds up a GPU's results, which here "
     "the hub does on the way (docs/dysharp.md, experiments)."},
    {"buffer", "less than 64 KB costs time", Side::below,
     "SMs keep no more loads in flight than the buffers take in. In smaller ones sums "
     "overflow and cost traffic, which the layer has time for (docs/dysharp.md, "
     "experiments)."},
    {"ablation", "fusion without primitives does not beat comet", Side::below,
     "Comet's two kernels hide dispatch under the first GEMM and combine under the second "
     "alone; fused by token, both use the links all the time. Trackers in hardware are part "
     "of it here: nothing waits for a whole source or chunk (docs/dysharp.md, experiments)."},
    {"sequence", "the lead grows with the sequence", Side::below,
     "Few tokens cost baselines more here: barriers and passes that start and end. The longer the "
     "sequence, the nearer all come to their rates on wire and tensor cores, and so does the lead "
     "to their ratio."},
};

}  // namespace

std::string dysharp_reason(std::string_view figure, std::string_view what, Side side) {
    return reason_among(kReasons, figure, what, side);
}

}  // namespace moehub
