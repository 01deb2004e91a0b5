/// SMs that, beside a GEMM, load the sums of their GPU's own pieces through the switch as soon as
/// all GPUs have made their partial sums of them, normalise the rows and store them to all by
/// multicast. The programs of all GPUs share it.
///
/// Every GPU tells a piece's home with a flag that it has made its own.
#pragma once
#include "layers/tp/moving_sms.hpp"
#include "layers/tp/piece_loads.hpp"
#include "layers/tp/tp_flags.hpp"

#include <deque>

namespace moehub::layers {

class SwitchedKernel {
  public:
    /// Who normalises.
    enum class Norm {
        own_sms,        ///< the SMs that load
        between_tiles,  ///< thread blocks of the same kernel, which have the other SMs
    };
    SwitchedKernel(TpLayer& layer, Norm norm);

    /// Those that the GEMM has.
    int other_sms(GpuId gpu) {
        return layer_.gpus.card(gpu).gpu.sms - layer_.system.communication_sms;
    }
    void made(GpuId gpu, std::uint32_t piece) {
        ready_.raise(gpu, layer_.pieces.home(piece), piece);
    }
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
