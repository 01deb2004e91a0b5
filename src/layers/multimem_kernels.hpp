/// Kernels around a multimem layer: the one that sends tokens by list, what starts the experts' row
/// blocks as rows come, and the one that loads sums of results.
#pragma once
#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"
#include "sim/gpu/row_gemm.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace moehub::layers {

/// What a GPU knows of its own tokens once they are routed; returns how many stores they take in
/// its node.
std::int64_t add_tokens(MultimemLayer& rows, GpuId gpu);
/// Tokens that leave the node as well.
struct Crossings {
    std::int64_t stores = 0;                        ///< of all tokens
    std::function<int(std::uint32_t token)> store;  ///< one token's; returns how many
};
/// The system's `sending_sms` SMs send them. `answered` counts acknowledgements inside the node.
Process send_tokens(MultimemLayer& rows, GpuId gpu, sim::CounterId answered,
                    Crossings crossings = {});
/// All that a GPU's experts made of their rows is in memory.
void write_all_results(MultimemLayer& rows, GpuId gpu);

/// What follows when a hub tells that a tile of an expert's rows has come: the row blocks of the
/// expert's first GEMM that it makes start.
class TileStarter final : public sim::ReadyListener {
  public:
    /// `gemm(i)` is the first GEMM of the GPU's i-th expert.
    TileStarter(MultimemLayer& rows, GpuId gpu, std::function<sim::RowGemm&(std::size_t)> gemm)
        : rows_(rows), gpu_(gpu), gemm_(std::move(gemm)) {}

    void rows_ready(sim::RegionId region, std::uint32_t tile) override {
        const auto& experts = rows_.experts(gpu_);
        const auto expert = std::find_if(experts.begin(), experts.end(),
                                         [&](const auto& one) { return one.input == region; });
        sim::RowGemm& up = gemm_(static_cast<std::size_t>(expert - experts.begin()));
        const std::uint32_t in_tile = rows_.layer.gpus.hub(gpu_).space(region).block_rows;
        const std::uint32_t here = std::min(in_tile, rows_.rows_in(gpu_, *expert) - tile * in_tile);
        const std::uint32_t size = up.block_rows();
        up.start(tile * (in_tile / size), (here - 1) / size + 1);
        if (rows_.layer.gpus.recorder() == nullptr) return;
        const std::uint32_t first = tile * in_tile;
        for (const CarriedRow& row : rows_.rows_of(gpu_, *expert, first, first + here))
            rows_.layer.note_step(row.token, row.choice, "released", gpu_);
    }

  private:
    MultimemLayer& rows_;
    GpuId gpu_;
    std::function<sim::RowGemm&(std::size_t)> gemm_;
};

/// SMs that load sums of results for the tokens that their GPU collects, as these get ready: each
/// as many at a time as its registers hold, and no faster than an SM stores what it has loaded.
class CombiningKernel {
  public:
    /// `collected` is told of each token whose results in the node are all there.
    using Collected = std::function<void(GpuId gpu, std::uint32_t token)>;
    CombiningKernel(MultimemLayer& rows, Collected collected);

    /// A token of which a part can be loaded now. Its last part is added last.
    struct Item {
        std::uint32_t token = 0;
        MultimemLayer::Part part;
        bool last = true;
    };
    void add(GpuId gpu, const Item& item);
    /// `co_await kernel.ready(gpu);` goes on when the first is there.
    sim::Endpoint::Until ready(GpuId gpu) { return rows_.layer.endpoint(gpu).until(ready_, 1); }

    /// Takes the system's `combining_sms` SMs, and gives them back.
    void start(GpuId gpu);
    void stop(GpuId gpu) { rows_.layer.card(gpu).blocks.release(sms(), KernelName::combine); }

  private:
    struct Queue {
        std::vector<Item> items;              ///< in the order in which they were ready
        std::size_t next = 0;                 ///< that an SM takes
        std::vector<std::uint32_t> underway;  ///< tokens whose last part is asked for
    };
    int sms() const { return rows_.layer.system.combining_sms; }
    Process run_sm(GpuId gpu);
    void take_collected(GpuId gpu);

    MultimemLayer& rows_;
    Collected collected_;
    sim::CounterId ready_;
    std::deque<Queue> queues_;  ///< by GPU
};

/// Tokens between nodes: each crosses once into every node where it has experts, to the GPU of its
/// home's rail, which sends it on there and collects the node's results; their sum crosses back
/// once. SMs of the GPUs in between read and store every token that passes.
class Relay {
  public:
    explicit Relay(MultimemLayer& rows);

    /// A GPU's own token to all other nodes where it has experts; returns how many stores that
    /// takes, each of which tells when the hub has taken it in.
    int cross(GpuId home, const std::vector<Rows>& by_node);
    std::int64_t crossings(GpuId home) const;  ///< of all its tokens
    /// What has crossed to a GPU since the last time, as it is to send it on.
    sim::Endpoint::Until crossed(GpuId gpu, std::int64_t tokens) {
        return out_.arrived(gpu, 0, tokens);
    }
    std::vector<Rows> take(GpuId gpu);

    /// The sum of a token's results in a node goes home.
    void send_home(GpuId from, std::uint32_t token);
    sim::Endpoint::Until came_home(GpuId home, std::int64_t sums) {
        return home_.arrived(home, 0, sums);
    }
    /// Adds up what came home since the last time.
    struct Homecoming {
        std::int64_t messages = 0;
        std::int64_t sums = 0;
    };
    Homecoming take_home(GpuId home);

    /// The GPU that collects a token's results in the node of `gpu`.
    GpuId collector(GpuId gpu, std::uint32_t token) const;
    bool several_nodes() const { return rows_.layer.input.machine.nodes > 1; }

  private:
    GpuId on_rail_of(GpuId home, std::uint32_t node) const;

    MultimemLayer& rows_;
    Mail out_;
    Mail home_;
};

}  // namespace moehub::layers
