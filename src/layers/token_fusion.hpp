/// Token-centric fusion (DySHARP): tokens go out, through both of their experts' GEMMs and back
/// one by one, so that tokens of all stages are underway together and both directions of the links
/// are used at once.
///
/// A tile of rows that has come starts in the first GEMM, one that is through with it in the second
/// (both told by the TS table); what has left the second is told to the GPU that collects the
/// token (its OR table), which loads the sum when all of the token's experts are through.
#pragma once
#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"
#include "sim/hub/multimem.hpp"

#include <deque>
#include <memory>

namespace moehub::layers {

class TokenFusion {
  public:
    explicit TokenFusion(MultimemLayer& rows);

    /// What a GPU knows of its own tokens once they are routed, before they are sent; returns how
    /// many stores they take in its node.
    std::int64_t add_tokens(GpuId gpu);
    /// The role of `sending_sms` SMs: sends the GPU's tokens out. `answered` counts
    /// acknowledgements of those stores.
    Process dispatch(GpuId gpu, sim::CounterId answered);
    /// The tiles of one expert, of which so many rows will have come.
    Process run_expert(GpuId gpu, std::size_t expert, std::int64_t rows);
    std::size_t experts(GpuId gpu) const { return gemms_[gpu].size(); }
    /// Ends when so many experts have.
    Process experts_ended(GpuId gpu);
    /// The role of `combining_sms` SMs, held from the start or the first token on: collects tokens
    /// as their results are there; ends when all of the GPU's own are.
    Process combine(GpuId gpu, bool from_the_start);

  private:
    struct Gemms {
        std::unique_ptr<sim::RowGemm> up;
        std::unique_ptr<sim::RowGemm> down;
    };
    void add_gemms(GpuId gpu, std::size_t expert);
    Process tell_collectors(GpuId gpu, std::size_t expert, std::uint32_t block);
    void expect(GpuId gpu, const NodeToken& token);
    Process start_second(GpuId gpu, std::size_t expert, std::uint32_t block);
    Process watch_notices(GpuId gpu);
    Process watch_crossings(GpuId gpu);
    Process release(GpuId gpu, std::uint32_t token, Ps time);
    void collected(GpuId gpu, std::uint32_t token);
    Process watch_homecoming(GpuId gpu);
    Ps ready_latency() const;
    std::vector<Statistic> statistics() const;

    MultimemLayer& rows_;
    MoeLayer& layer_;
    std::vector<std::vector<Gemms>> gemms_;  ///< [gpu][expert]
    std::deque<TileStarter> starters_;
    Mail notices_;
    Relay relay_;
    CombiningKernel kernel_;
    std::vector<sim::OrTable> or_tables_;  ///< by GPU
    std::vector<bool> told_;               ///< [token][choice]: its collector, of the result
    sim::CounterId collected_;             ///< parts of a GPU's own tokens, one of each node
    sim::CounterId experts_done_;
};

}  // namespace moehub::layers
