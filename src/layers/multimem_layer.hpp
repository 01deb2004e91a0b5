/// A layer whose switches copy rows and add up results (DySHARP): a token goes out once, with the
/// list of its experts; its row number there is found by the receiving hub; what experts made of it
/// is loaded by the same list and comes back as one sum.
///
/// Switches serve their own node: what a GPU sends on and collects are a token's rows in its own
/// node (NodeToken). Between nodes: Relay.
#pragma once
#include "layers/mail.hpp"
#include "layers/moe_layer.hpp"
#include "sim/gpu/row_gemm.hpp"

#include <moehub/program.hpp>

#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace moehub::layers {

/// An expert's copy on one GPU.
struct MultimemExpert {
    int expert = 0;
    sim::RegionId input = 0;    ///< rows that came
    sim::RegionId results = 0;  ///< what it made of them, weighted: sums of one row each
};

/// A token as a GPU sends it on in its own node, and collects it there.
struct NodeToken {
    std::uint32_t token = 0;
    sim::GroupId others = sim::kNoGroup;  ///< its experts on other GPUs of the node
    sim::GroupId own = sim::kNoGroup;     ///< its experts on this GPU, which no packet leaves for
};

class MultimemLayer {
  public:
    /// The tiles of rows of which the hubs tell when they have come.
    enum class Tiles {
        none,
        fixed,    ///< 128 rows: entries of the TS table (DySHARP paper)
        by_need,  ///< as many row blocks as should start together (MoE-Hub's dependency table)
    };
    struct Options {
        bool in_switch = true;  ///< by lists that switches act on; false: each copy by itself
        Tiles tiles = Tiles::fixed;
        bool rows_apart = true;  ///< without the switch every result is loaded by itself; false: a
                                 ///< GPU's SMs have added up their own
    };
    MultimemLayer(MoeLayer& layer, const Options& options);

    MoeLayer& layer;

    const std::vector<MultimemExpert>& experts(GpuId gpu) const { return experts_[gpu]; }
    Bytes sent_bytes() const;  ///< bytes of a token: its row and its choices' weights
    std::uint32_t rows_in(GpuId gpu, const MultimemExpert& expert) const {
        return layer.gpus.hub(gpu).rows(expert.input);
    }
    std::vector<std::int64_t> rows_by_expert(GpuId gpu) const;  ///< rows that came
    std::int64_t tokens_on(GpuId gpu) const;                    ///< distinct ones among those

    /// A token that a GPU is to send on and to collect: its rows in the GPU's node.
    const NodeToken& add_token(GpuId gpu, std::uint32_t token, const Rows& rows);
    const NodeToken& token_on(GpuId gpu, std::uint32_t token) const {
        return tokens_[gpu].at(token);
    }
    /// A token's rows, by the node of who computes them.
    std::vector<Rows> rows_by_node(std::uint32_t token) const;

    /// `dymultimem.st`: a token to its experts in the node; returns how many stores that takes,
    /// each of which increases `answered` when it is acknowledged, and tells, if it is to, when the
    /// hub has taken it in.
    struct Told {
        sim::CounterId answered = sim::kNoCounter;
        bool taken_in = false;
    };
    int store(GpuId gpu, const NodeToken& token, const Told& told);
    int stores_of(const NodeToken& token) const;
    std::uint32_t rows_in_node(const NodeToken& token) const;
    std::uint32_t own_rows(const NodeToken& token) const;  ///< rows on the GPU that sends it on
    /// `dymultimem.ld_reduce`: part of what experts made of a token into the GPU's sums; returns
    /// how many loads that takes, each of which increases `arrived` here.
    struct Part {
        Bytes offset = 0;
        Bytes bytes = 0;
    };
    int load(GpuId gpu, const NodeToken& token, const Part& part, sim::CounterId arrived);
    int loads_of(const NodeToken& token) const;
    /// Whether all of a token's results in the node have come.
    bool collected(GpuId gpu, const NodeToken& token) const;
    sim::RowSums& sums(GpuId gpu) const { return layer.gpus.hub(gpu).sums(sums_[gpu]); }

    /// The rows of an expert from `first` to before `last`, as they came.
    Rows rows_of(GpuId gpu, const MultimemExpert& expert, std::uint32_t first,
                 std::uint32_t last) const;
    /// The second GEMM has written what it made of those.
    void write_results(GpuId gpu, const MultimemExpert& expert, std::uint32_t first,
                       std::uint32_t last);

    /// For the timeline: a step of a token's rows that experts of the GPU's node compute.
    void note_step(GpuId gpu, std::uint32_t token, const char* what);
    /// For the timeline: a token's rows that the GPU collected are home.
    void note_returned(std::uint32_t token, GpuId collector);

    /// The sum of another node's results, from the GPU that collected them, has come to the token's
    /// home.
    void add_crossed(GpuId home, std::uint32_t token, GpuId from);
    /// When a GPU is through: reports the rows of its experts, and the sums of its tokens.
    void close_books(GpuId gpu);

  private:
    void add_expert(GpuId gpu, int expert);
    std::size_t index(std::uint32_t token, std::uint32_t choice) const {
        return std::size_t{token} * layer.top_k() + choice;
    }
    std::uint32_t choice_of(std::uint32_t token, int expert) const;
    /// Rows of a token in the GPU's node that others compute, or it itself.
    enum class Whose { others, own };
    void carry(sim::Carrying& carrying, GpuId gpu, std::uint32_t token, Whose whose,
               sim::RowLog::What what) const;
    int post(GpuId gpu, sim::Transfer transfer, sim::GroupId list);
    std::uint32_t answers(const NodeToken& token) const;

    Options options_;
    std::deque<std::vector<MultimemExpert>> experts_;    ///< by GPU
    std::vector<std::vector<sim::RegionId>> region_of_;  ///< [GPU][expert]
    std::vector<GpuId> gpu_of_;                          ///< [token][choice]: that computes it
    std::vector<sim::RegionId> sums_;                    ///< by GPU: sums of tokens it collects
    std::vector<sim::RegionId> crossed_;                 ///< by GPU: tokens from other nodes
    std::vector<std::unordered_map<std::uint32_t, NodeToken>> tokens_;  ///< by GPU
};

// Kernels around the layer: the one that sends tokens by list, what starts the experts' row blocks
// as rows come, and the one that loads sums of results.

/// What a GPU knows of its own tokens once they are routed; returns how many stores they take in
/// its node.
std::int64_t add_tokens(MultimemLayer& rows, GpuId gpu);
/// Tokens that leave the node as well.
struct Crossings {
    std::int64_t stores = 0;                        ///< stores that all tokens take
    std::function<int(std::uint32_t token)> store;  ///< one token's; returns how many
};
/// The system's `sending_sms` SMs send them. `answered` counts acknowledgements inside the node.
Process send_tokens(MultimemLayer& rows, GpuId gpu, sim::CounterId answered,
                    Crossings crossings = {});
/// Notes that everything that a GPU's experts made of their rows is in memory.
void write_all_results(MultimemLayer& rows, GpuId gpu);

/// What follows when a hub tells that a tile of an expert's rows has come: the row blocks of the
/// expert's first GEMM that it makes start.
class TileStarter final : public sim::ReadyListener {
  public:
    /// `gemm(i)` is the first GEMM of the GPU's i-th expert.
    TileStarter(MultimemLayer& rows, GpuId gpu, std::function<sim::RowGemm&(std::size_t)> gemm)
        : rows_(rows), gpu_(gpu), gemm_(std::move(gemm)) {}

    void rows_ready(sim::RegionId region, std::uint32_t tile) override;

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
        std::size_t next = 0;                 ///< item that an SM takes next
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
    std::int64_t crossings(GpuId home) const;  ///< stores that all its tokens take
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
