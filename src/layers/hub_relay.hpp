/// Rows of MoE-Hub between nodes, once per node: a token crosses to the GPU of its home's rail,
/// which stores it to its experts there as a home does; their results come back to that GPU, which
/// adds them up and sends one sum home. SMs of the GPUs in between (`communication_sms`) read and
/// store all that passes, and are held until nothing more will come.
#pragma once
#include "layers/mail.hpp"
#include "layers/rows.hpp"

#include <functional>
#include <unordered_map>

namespace moehub::layers {

class HubRelay {
  public:
    /// Of a result's place, where the row was passed on: its other bits are the row's number.
    static constexpr std::uint32_t kPassedOn = std::uint32_t{1} << 31;
    /// Stores a row from a GPU that passes it on; returns how many acknowledgements that brings.
    using PassOn = std::function<int(GpuId, const CarriedRow&)>;

    HubRelay(MoeLayer& layer, PassOn pass_on);

    /// Whether rows cross once: with `once_per_node`, between nodes.
    bool active() const { return active_; }
    bool crosses(GpuId home, const Row& row) const;
    GpuId target(const CarriedRow& row) const { return targets_.of(row); }  ///< that computes it

    // At home.
    /// A token's rows in another node.
    struct Crossing {
        GpuId to = 0;
        Rows rows;
    };
    std::vector<Crossing> crossings(GpuId home) const;
    void cross(GpuId home, const Crossing& crossing);
    /// Behind the last: how many there were.
    void tell_all(GpuId home, const std::vector<Crossing>& crossings);
    /// Until all sums are back; enters them.
    Process sums_back(GpuId home);

    // In the other nodes.
    /// The kernel that passes rows on and adds up results; ends when nothing more will come.
    Process run(GpuId gpu);
    /// Until all rows of others are passed on.
    sim::Endpoint::Until all_passed_on(GpuId gpu) {
        return layer_.endpoint(gpu).until(passed_on_, 1);
    }
    std::int64_t stores(GpuId gpu) const { return stores_[gpu]; }  ///< of rows passed on
    /// A result for the GPU that passed its row on.
    void bring(GpuId from, GpuId to, std::uint32_t place, const double* numbers);

  private:
    Process pass_on_rows(GpuId gpu);
    Process add_up_results(GpuId gpu);
    Process send_sum(GpuId gpu, Rows rows);
    /// The SMs do one thing at a time: until they have read and stored so many bytes.
    Process work(GpuId gpu, double read, double stored);

    MoeLayer& layer_;
    PassOn pass_on_row_;
    bool active_;
    RowTargets targets_;
    Mail out_;                          ///< channel 0: tokens; 1: how many there were
    Mail back_;                         ///< results
    Mail home_;                         ///< sums
    sim::CounterId tokens_;             ///< of others, passed on
    sim::CounterId passed_on_;          ///< 1: all of them
    sim::CounterId sums_;               ///< sent home
    std::vector<Ps> busy_;              ///< by GPU: until when its SMs are
    std::vector<std::int64_t> stores_;  ///< by GPU
    std::vector<std::unordered_map<std::uint32_t, std::size_t>> rows_of_;  ///< [gpu][token]
};

}  // namespace moehub::layers
