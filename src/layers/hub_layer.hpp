/// A layer on GPUs whose hubs allocate addresses: regions for the experts' inputs, buffers for the
/// results, and who is who. The programs on top are moe_hub.cpp and mh_base.cpp.
#pragma once
#include "layers/mail.hpp"
#include "layers/moe_layer.hpp"
#include "layers/rows.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "sim/hub/isa.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

namespace moehub::layers {

/// Rows of MoE-Hub between nodes, once per node: a token crosses to the GPU of its home's rail,
/// which stores it to its experts there as a home does; their results come back to that GPU, which
/// adds them up and sends one sum home. SMs of the GPUs in between (`communication_sms`) read and
/// store all that passes, and are held until nothing more will come.
class HubRelay {
  public:
    /// Marks a result's place where the row was passed on: its other bits are the row's number.
    static constexpr std::uint32_t kPassedOn = std::uint32_t{1} << 31;
    /// Stores a row from a GPU that passes it on; returns how many acknowledgements that brings.
    using PassOn = std::function<int(GpuId, const CarriedRow&)>;

    HubRelay(MoeLayer& layer, PassOn pass_on);

    /// Whether rows cross once: with `once_per_node`, between nodes.
    bool active() const { return active_; }
    bool crosses(GpuId home, const Row& row) const;
    GpuId target(const CarriedRow& row) const { return targets_.of(row); }  ///< GPU computing it

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
    std::int64_t stores(GpuId gpu) const { return stores_[gpu]; }  ///< stores of passed-on rows
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
    sim::CounterId tokens_;             ///< other GPUs' tokens that were passed on
    sim::CounterId passed_on_;          ///< 1: all of them
    sim::CounterId sums_;               ///< sent home
    std::vector<Ps> busy_;              ///< by GPU: until when its SMs are
    std::vector<std::int64_t> stores_;  ///< by GPU
    std::vector<std::unordered_map<std::uint32_t, std::size_t>> rows_of_;  ///< [gpu][token]
};

/// An expert's copy on one GPU (one shard of it).
struct LocalExpert {
    int expert = 0;
    sim::MallocId input;
    std::unique_ptr<sim::RowGemm> up;
    std::unique_ptr<sim::RowGemm> down;
};

/// Counters; the same on all GPUs, so that a peer can name them.
struct HubCounters {
    sim::CounterId results_sent = 0;  ///< acknowledged stores of results
    sim::CounterId results = 0;       ///< returned results of this GPU's tokens
    sim::CounterId kernels_done = 0;  ///< local experts that have finished, and the shared ones
    // For software that has no DAM: by expert, the first one's; the others follow.
    sim::CounterId sent_to = 0;       ///< acknowledged stores to an expert
    sim::CounterId flags = 0;         ///< GPUs that have sent an expert all their rows
    sim::CounterId result_flags = 0;  ///< GPUs that have sent all results
};

class HubLayer {
  public:
    explicit HubLayer(MoeLayer& layer);

    MoeLayer& layer;
    const HubCounters& counters() const { return counters_; }
    std::vector<LocalExpert>& experts(GpuId gpu) { return experts_[gpu]; }
    /// A region's number is its expert's among the GPU's.
    LocalExpert& expert_in(GpuId gpu, sim::RegionId region) { return experts_[gpu][region]; }

    /// The kernel that sends all rows of a GPU. `by_expert`: acknowledgements are counted by
    /// expert, for flags; else for AllReady.
    Process send_rows(GpuId from, bool by_expert);
    /// Stores that `send` makes for all rows of a GPU, and for those to each expert.
    std::int64_t stores(GpuId gpu) const;
    std::vector<std::int64_t> stores_by_expert(GpuId gpu) const;
    std::vector<GpuId> gpus_with(std::uint32_t expert) const;
    /// Rows of a GPU that are stored where they belong; the others cross once per node.
    std::int64_t rows_stored(GpuId gpu) const;
    /// Results that come back to a GPU, and kernels that end on it: its experts and the shared.
    std::int64_t results_of(GpuId gpu) const { return rows_stored(gpu) * layer.shards(); }
    std::int64_t kernels(GpuId gpu) const {
        return static_cast<std::int64_t>(experts_[gpu].size()) + 1;
    }
    /// Sends the results of an expert's row block back to where the rows came from.
    void send_back(GpuId gpu, const LocalExpert& expert, std::uint32_t row_block);
    /// Rows the copy has received so far.
    std::uint32_t rows_in(GpuId gpu, const LocalExpert& expert) const {
        return layer.gpus.hub(gpu).rows(expert.input.region);
    }

    std::int64_t rows_in(GpuId gpu) const;  ///< over all its experts

    /// What the hubs do by themselves: the DAM starts blocks of first GEMMs as their rows arrive,
    /// the last when AllReady is reached.
    void spawn_dam(GpuId gpu);
    /// The DAM counts returned results, too.
    Process results_ready(GpuId gpu);
    /// Who goes on to add up results must have all of them (std::logic_error).
    void check_results(GpuId gpu) const;
    /// Shared experts, beside everything else, with low priority.
    Process run_shared(GpuId gpu);
    /// Rows are underway from the first store until the results are back.
    void communication(GpuId gpu, bool underway);

    /// Reads memory when all is over and reports every row.
    void close_books();

    sim::AllReady all_ready;
    HubRelay relay;

  private:
    struct Starter final : sim::ReadyListener {
        HubLayer& hub;
        GpuId gpu;
        Starter(HubLayer& of, GpuId on) : hub(of), gpu(on) {}
        void rows_ready(sim::RegionId region, std::uint32_t row_block) override;
    };

    void add_expert(GpuId gpu, int expert);
    int send(GpuId from, const Row& row, sim::CounterId answered);
    int pass_on(GpuId from, const CarriedRow& row);
    /// A row to one shard of a copy of its expert, and where its result belongs.
    struct Stored {
        std::uint32_t id = 0;
        std::uint32_t token = 0;
        std::uint32_t result = 0;
        sim::CounterId answered = 0;
    };
    void store_at(GpuId from, sim::MallocId to, const Stored& row);
    std::uint32_t copy_of(std::uint32_t expert, std::uint32_t rank) const;
    std::uint32_t first_result(GpuId home, const Row& row) const;
    Process start_all_ready(GpuId gpu);
    void check_row(GpuId gpu, const LocalExpert& expert, std::uint32_t number) const;
    Process watch_experts(GpuId gpu);

    std::int64_t stores_per_row_ = 2;  ///< row and source column; 1: both in one train
    HubCounters counters_;
    std::deque<std::vector<LocalExpert>> experts_;    ///< by GPU; index is the region's number
    std::vector<sim::MallocId> results_;              ///< by GPU
    std::vector<std::vector<sim::MallocId>> inputs_;  ///< [expert][copy · shards + shard]
    std::deque<Starter> starters_;                    ///< by GPU
};

/// Runs the programs that `spawn` starts on every GPU, and reads memory at the end.
LayerResult run_hub(const Job& job, void (*spawn)(HubLayer&, GpuId));

}  // namespace moehub::layers
