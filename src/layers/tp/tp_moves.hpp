/// How rows of a tensor-parallel sub-layer move: by SMs beside a GEMM, by loads part by part, with
/// flags, and around a ring.
#pragma once
#include "layers/tp/tp_layer.hpp"
#include "sim/gpu/card.hpp"
#include "sim/gpu/tile.hpp"

#include <algorithm>
#include <deque>
#include <functional>

namespace moehub::layers {

/// SMs of a kernel that moves rows beside a GEMM: held while it runs. What they do comes one after
/// the other, each as fast as all of them together do it.
class MovingSms {
  public:
    MovingSms(sim::Card& card, int sms) : card_(card), sms_(sms) {}

    int sms() const { return sms_; }
    void hold() { card_.blocks.hold(sms_, sim::KernelName::exchange); }
    void release() { card_.blocks.release(sms_, sim::KernelName::exchange); }

    /// Goes on when the SMs begin to move so many bytes, `rate` each of them: packets leave while
    /// the next are read.
    sim::Endpoint::Delay begin(double bytes, double rate) {
        return wait(take(bytes / (rate * sms_)));
    }
    /// Goes on when they are through with rows that they read, add up, write.
    sim::Endpoint::Delay pass(const Traffic& traffic) {
        const Gpu part = with_sms(card_.gpu, sms_);
        card_.hbm.take(traffic.read + traffic.written);
        take(stream_seconds(part, traffic) - plan_stream(part, traffic).start);
        return all();
    }
    /// Goes on when the SMs are through with all that they have begun.
    sim::Endpoint::Delay all() { return wait(free_); }

  private:
    /// When their turn comes for something of so many seconds.
    Ps take(double seconds) {
        const Ps turn = std::max(free_, card_.endpoint.now());
        free_ = turn + to_ps(seconds);
        return turn;
    }
    sim::Endpoint::Delay wait(Ps time) const {
        return card_.endpoint.delay(std::max<Ps>(0, time - card_.endpoint.now()));
    }

    sim::Card& card_;
    int sms_;
    Ps free_ = 0;  ///< when they are through with all that was asked of them
};

/// Loads of a tensor-parallel sub-layer's rows by SMs that keep so many bytes in flight and no
/// more.
class PieceLoads {
  public:
    PieceLoads(TpLayer& layer, GpuId gpu, Bytes window);

    /// Posts a load part by part, as there is room; ends when the last is posted. Its `arrived`
    /// goes up with every part.
    Process load(sim::Transfer whole);
    /// Parts of a load of so many bytes.
    std::int64_t parts(Bytes bytes) const { return (bytes - 1) / part_ + 1; }

  private:
    sim::Endpoint& endpoint_;
    Bytes part_;
    std::int64_t most_;        ///< parts in flight
    sim::CounterId answered_;  ///< parts
    std::int64_t posted_ = 0;  ///< parts
};

/// The part of a transfer from `offset` on.
sim::Transfer part_of(const sim::Transfer& whole, Bytes offset, Bytes size);

/// Flags of a tensor-parallel sub-layer's programs: stores of 16 B, each counted where it goes. A
/// flag may overtake rows: who raises it waits for their acknowledgement first.
class TpFlags {
  public:
    static constexpr Bytes kBytes = 16;

    /// So many, each with a count of its own on every GPU.
    TpFlags(TpLayer& layer, const char* name, std::size_t how_many)
        : layer_(layer), first_(layer.gpus.add_counters(name, how_many)) {}

    /// One more at `to`; nothing moves where that is the GPU itself.
    void raise(GpuId from, GpuId to, std::uint32_t number = 0);
    /// One more at all other GPUs, at the next one first.
    void raise_at_others(GpuId from, std::uint32_t number = 0);
    sim::Endpoint::Until until(GpuId gpu, std::int64_t many, std::uint32_t number = 0) {
        return layer_.gpus.endpoint(gpu).until(first_ + number, many);
    }

  private:
    TpLayer& layer_;
    sim::CounterId first_;
};

/// Pieces of a tensor-parallel sub-layer around a ring: sums to their homes, each GPU adding its
/// own to what it passes on; and rows from their homes to all.
///
/// Every GPU sends to the one before it. So its GEMM makes the pieces in their order, from the home
/// behind it on and around, as the ring wants them: a piece sets out at the GPU before its home,
/// whose GEMM begins with it, and ends at its home, which makes its own last.
class TpRing {
  public:
    /// What a GPU awaits between having a piece and sending it on, or being through with it.
    using Turn = std::function<Process(GpuId gpu, Bytes bytes)>;
    TpRing(TpLayer& layer, Turn turn);

    GpuId next(GpuId gpu) const { return ahead(gpu, gpus() - 1); }
    /// The GPU's partial sums of a piece lie in memory.
    void made(GpuId gpu, std::uint32_t piece) { layer_.gpus.endpoint(gpu).increase(made_ + piece); }
    /// Ends when the piece's sum so far has left the GPU, or is whole at its home.
    Process reduce(GpuId gpu, std::uint32_t piece);
    /// Ends when the piece, which its home shares, has come and left for the next GPU.
    Process gather(GpuId gpu, std::uint32_t piece);
    /// The shared piece has come; not at its home, where nothing comes.
    sim::Endpoint::Until gathered(GpuId gpu, std::uint32_t piece) {
        return layer_.gpus.endpoint(gpu).until(gathered_ + piece, 1);
    }

  private:
    std::uint32_t gpus() const { return layer_.gpus.count(); }
    GpuId ahead(GpuId gpu, std::uint32_t steps) const {
        return static_cast<GpuId>((gpu + steps) % gpus());
    }

    TpLayer& layer_;
    Turn turn_;
    sim::CounterId made_;      ///< by piece
    sim::CounterId passed_;    ///< by piece: what the GPU behind has added up has come
    sim::CounterId gathered_;  ///< by piece
};

/// SMs that, beside a GEMM, load the sums of their GPU's own pieces through the switch as soon as
/// all GPUs have made their partial sums of them, normalise the rows and store them to all by
/// multicast. The programs of all GPUs share it.
///
/// Every GPU tells a piece's home with a flag that it has made its own.
class SwitchedKernel {
  public:
    /// Who normalises.
    enum class Norm {
        own_sms,        ///< the SMs that load
        between_tiles,  ///< thread blocks of the same kernel, which have the other SMs
    };
    SwitchedKernel(TpLayer& layer, Norm norm);

    /// The first GEMM on the other SMs; homes are told of every piece.
    Process run_first(GpuId gpu);
    /// Takes its SMs from the GPU.
    void hold(GpuId gpu) { sms_[gpu].hold(); }
    /// Ends when everybody's rows are here, and gives the SMs back.
    Process run(GpuId gpu);

  private:
    Process load_sums(GpuId gpu);
    Process share(GpuId gpu, std::uint32_t piece);

    TpLayer& layer_;
    Norm norm_;
    sim::GroupId all_;
    TpFlags ready_;          ///< by piece, at its home: partial sums that are made
    TpFlags met_;            ///< GPUs whose rows are all stored
    sim::CounterId loaded_;  ///< by piece: parts
    sim::CounterId stored_;  ///< by piece: acknowledged
    std::deque<MovingSms> sms_;
    std::deque<PieceLoads> loads_;
};

}  // namespace moehub::layers
