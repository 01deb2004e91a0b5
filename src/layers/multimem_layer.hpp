/// A layer whose switches copy rows and add up results (DySHARP): a token goes out once, with the
/// list of its experts; its row number there is found by the receiving hub; what experts made of it
/// is loaded by the same list and comes back as one sum.
///
/// Switches serve their own node: what a GPU sends on and collects are a token's rows in its own
/// node (NodeToken). Between nodes: multimem_kernels.hpp.
#pragma once
#include "layers/moe_layer.hpp"

#include <moehub/program.hpp>

#include <deque>
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
    /// Of which the hubs tell when they have come.
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
    Bytes sent_bytes() const;  ///< of a token: its row and the weights of its choices
    std::uint32_t rows_in(GpuId gpu, const MultimemExpert& expert) const {
        return layer.gpus.hub(gpu).rows(expert.input);
    }
    std::vector<std::int64_t> rows_by_expert(GpuId gpu) const;  ///< that came
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
    std::uint32_t own_rows(const NodeToken& token) const;  ///< on the GPU that sends it on
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
    /// … that the GPU collected: they are home.
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
    std::vector<sim::RegionId> sums_;                    ///< by GPU: of tokens it collects
    std::vector<sim::RegionId> crossed_;                 ///< by GPU: from other nodes
    std::vector<std::unordered_map<std::uint32_t, NodeToken>> tokens_;  ///< by GPU
};

}  // namespace moehub::layers
