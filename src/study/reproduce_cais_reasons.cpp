#include "study/reproduce_cais.hpp"

namespace moehub {
namespace {

constexpr std::string_view kTpLong =
    "TP-NVLS repeats the norm of all rows on every GPU, at the speed of its memory, which fast SMs "
    "do not change: with memory four times as fast about half of what is too much goes. The rest "
    "is CAIS, which takes little longer here than the all-reduce alone, where the published lead "
    "and share of communication together make it a sixth longer (docs/cais.md, experiments).";
constexpr std::string_view kRingShort =
    "Its ring takes two thirds longer than the in-switch all-reduce, as their bytes on the wire "
    "have it; on hardware, under NCCL, it is a third. With the first GEMM hidden, the published "
    "lead asks for twice as long (docs/cais.md, experiments).";
constexpr std::string_view kFuseShort =
    "It sends tiles straight to their owners and sums to all, as many bytes as a ring, which here "
    "take as long as CoCoNet's: half as many again as the in-switch all-reduce has, where the "
    "published lead asks for twice as long (docs/cais.md, experiments).";
constexpr std::string_view kT3Short =
    "Its two ring passes, the first under a GEMM, take what the wire allows here. As with the "
    "other rings, the published lead asks for slower ones.";
constexpr std::string_view kLadmShort =
    "LADM's time here follows which matrix is the larger and stays, so that leads differ by a "
    "factor of three between sub-layers, where the paper's largest lead is near its mean; here "
    "the largest of sub-layers is as published. How partial sums are combined under it is open. "
    "The L2's size does not matter here (docs/cais.md, experiments).";
constexpr std::string_view kRest =
    "What lies outside the sub-layers, the same for all, is near a fifth of CAIS's time forward "
    "and, with the weights' gradients, more than a third in training. The published leads of "
    "sub-layers and whole models are nearly the same: there it must be next to nothing.";
constexpr std::string_view kOrder =
    "TP-NVLS is slower than published and rings are faster, for the reasons given there, so that "
    "TP-NVLS falls behind T3, FuseLib and CoCoNet. The two that overlap in-switch all-reduces are "
    "nearly alike, and change places.";
constexpr std::string_view kEnds =
    "At the start of a sub-layer there is nothing to load and at its end nothing to add up, so "
    "that each direction idles for a while. With four times the tokens CAIS's busiest link is as "
    "busy as published (docs/cais.md, experiments).";

constexpr std::string_view kMeetings =
    "GPUs meet before every block of requests, a third of the tables in front of a home, so that "
    "these overflow neither by trains nor by packets, and links idle meanwhile; with larger blocks "
    "CAIS is as far ahead as published, and tables overflow packet by packet (docs/cais.md, "
    "experiments).";

/// No entry, no excuse: a number that leaves the paper's by another side must be looked into.
constexpr Reason kReasons[] = {
    {"sub-layer", "over tp-nvls", Side::above, kTpLong},
    {"sub-layer", "over tp-nvls, largest", Side::above, kTpLong},
    {"sub-layer", "over coconet", Side::below, kRingShort},
    {"sub-layer", "over coconet, largest", Side::below, kRingShort},
    {"sub-layer", "over fuselib", Side::below, kFuseShort},
    {"sub-layer", "over fuselib, largest", Side::below, kFuseShort},
    {"sub-layer", "over t3", Side::below, kT3Short},
    {"sub-layer", "over t3, largest", Side::below, kT3Short},
    {"sub-layer", "over coconet-nvls, largest", Side::below, kMeetings},
    {"sub-layer", "over ladm", Side::below, kLadmShort},
    {"sub-layer", "tp-nvls's exposed communication over ideal's compute, LLaMA-7B", Side::above,
     "Compute is the GEMMs and a norm that is shared out; with the norm that TP-NVLS repeats among "
     "it, the ratio is below the published one. What the paper counts is open."},
    {"sub-layer", "the baselines' order", Side::below, kOrder},
    {"inference", "over tp-nvls", Side::above, kTpLong},
    {"inference", "over tp-nvls, largest", Side::above, kTpLong},
    {"inference", "over coconet", Side::below, kRingShort},
    {"inference", "over coconet, largest", Side::below, kRingShort},
    {"inference", "over fuselib", Side::below, kFuseShort},
    {"inference", "over fuselib, largest", Side::below, kFuseShort},
    {"inference", "over t3", Side::below, kT3Short},
    {"inference", "over t3, largest", Side::below, kT3Short},
    {"inference", "over ladm", Side::below, kLadmShort},
    {"inference", "over ladm, largest", Side::below, kLadmShort},
    {"inference", "the baselines' order", Side::below, kOrder},
    {"training", "over tp-nvls", Side::above, kTpLong},
    {"training", "the baselines' order", Side::below, kOrder},
    {"training", "", Side::below, kRest},
    {"table", "KB a port needs, uncoordinated, largest", Side::above,
     "What a port needs is what GPUs that start as far apart as the paper's requests come send "
     "meanwhile. How far apart the paper's GPUs are when its tables are fullest is open."},
    {"table", "µs between requests, uncoordinated, mean", Side::below,
     "A mean over all lines, of GPUs that start evenly apart; of the published figure it is open "
     "what it is of."},
    {"table", "coordinated, a port needs less than 40 KB", Side::below,
     "Throttling lets GPUs use the paper's table to its last entry, and gives few of them up."},
    {"table", "without coordination 40 KB cost time, with it hardly", Side::below, kMeetings},
    {"utilisation", "rises from CAIS-Base to CAIS-Partial to CAIS", Side::below, kMeetings},
    {"utilisation", "", Side::below, kEnds},
    {"scaling", "throughput of a GPU falls by less than 5 % up to 32 GPUs", Side::below,
     "What a GPU may request of a home before all meet again shrinks with the number of homes, so "
     "that it does not run ahead of the others, and a meeting takes as long: links idle for a part "
     "of the time."},
    {"full", "", Side::above, kTpLong},
};

}  // namespace

std::string cais_reason(std::string_view figure, std::string_view what, Side side) {
    return reason_among(kReasons, figure, what, side);
}

}  // namespace moehub
