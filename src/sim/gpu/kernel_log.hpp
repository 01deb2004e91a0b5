/// What a kernel, or a share of a GPU's SMs, is for: the words that timelines use.
#pragma once
#include "sim/time_bins.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub::sim {

enum class KernelName : std::uint8_t {
    other,
    // A MoE layer's kernels, in the order in which rows meet them.
    router,
    quantise,
    counts,     ///< rows for each expert: counted, told to others
    addresses,  ///< order of the rows, running sums
    reorder,
    dispatch,
    relay,  ///< rows and results of other nodes, passed on
    convert,
    expert_up,
    activation,
    expert_down,
    combine,
    weighted_sum,
    shared_experts,
    gradients,
    // A tensor-parallel sub-layer's kernels.
    first_gemm,
    exchange,  ///< partial sums and rows, moved and normalised by SMs of their own
    reduce,
    norm,
    gather,
    second_gemm,
};
inline constexpr std::size_t kKernelNames = 22;

const char* name_of(KernelName kernel);

/// Which kernels had how many of a GPU's SMs, and when each ran. Kept only where a timeline is
/// asked for.
class KernelLog {
  public:
    static constexpr std::size_t kBins = 128;

    /// A kernel is launched; the number returned is for `ran_until`, which may be called again and
    /// again.
    std::size_t launched(KernelName kernel, Ps now);
    void ran_until(std::size_t launch, Ps now) { spans_[launch].end = now; }

    /// SMs run blocks, from now on so many more (take); they go to who waits for them (give).
    void take(KernelName kernel, int sms, Ps now) { change(kernel, sms, now); }
    void give(KernelName kernel, int sms, Ps now);
    /// A kernel holds SMs: those that are free at once, the others as blocks leave them.
    void hold(KernelName kernel, int sms, int free, Ps now);
    void release(KernelName kernel, int sms, Ps now);

    struct Span {
        KernelName kernel = KernelName::other;
        Ps begin = 0;
        Ps end = 0;
    };
    /// Spans in the order of their beginning; those of one kernel are joined where they overlap or
    /// where no more than `gap` lies between them.
    std::vector<Span> spans(Ps gap) const;
    /// Use of SMs in each bin, in SMs · ps.
    const TimeBins<kBins>& sms(KernelName kernel) const { return of(kernel).time; }

  private:
    struct Use {
        int sms = 0;
        Ps since = 0;
        TimeBins<kBins> time;
        int held = 0;
        std::size_t launch = 0;  ///< launch of the kernel that holds SMs
    };
    struct Owed {  // SMs that still run blocks, due to a kernel that holds them
        KernelName kernel;
        int sms;
    };
    Use& of(KernelName kernel) { return uses_[static_cast<std::size_t>(kernel)]; }
    const Use& of(KernelName kernel) const { return uses_[static_cast<std::size_t>(kernel)]; }
    void change(KernelName kernel, int sms, Ps now);
    void freed(int sms, Ps now);

    std::array<Use, kKernelNames> uses_;
    std::vector<Owed> owed_;  ///< SMs owed to kernels; who asked first comes first
    std::vector<Span> spans_;
};

}  // namespace moehub::sim
