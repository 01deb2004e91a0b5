/// What a timeline is made of, while a layer runs: kernels of every GPU, units of hubs and
/// switches, bytes from GPU to GPU, rows that are followed. A fabric without one records nothing,
/// at the price of a look whether there is one.
#pragma once
#include "sim/event.hpp"
#include "sim/gpu/kernel_log.hpp"
#include "sim/row_log.hpp"
#include "sim/topology.hpp"

#include <moehub/timeline.hpp>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace moehub::sim {

/// "gpu 3", "switch 1 of node 0", "leaf 2", "spine 0".
std::string name_of(const Topology& topology, ComponentId component);

class Recorder {
  public:
    explicit Recorder(const Topology& topology);

    KernelLog& kernels(std::uint32_t gpu) { return kernels_[gpu]; }
    /// A unit, by its name, has handled so many packets.
    void count(ComponentId where, const char* unit, Ps at, std::int64_t packets) {
        units_[{where, unit}].count(at, packets);
    }
    void received(GpuId from, GpuId to, Bytes bytes) {
        sent_[std::size_t{from} * topology_.gpus + to] += bytes;
    }
    RowLog rows;

    /// Of a layer that ended then.
    Timeline timeline(Ps end) const;

  private:
    static constexpr std::size_t kBins = 128;

    void add_kernels(Timeline& timeline, Ps end) const;
    void add_units(Timeline& timeline) const;
    void add_rows(Timeline& timeline) const;

    const Topology& topology_;
    std::deque<KernelLog> kernels_;  ///< by GPU
    std::map<std::pair<ComponentId, std::string_view>, TimeBins<kBins>> units_;
    std::vector<Bytes> sent_;
};

/// As long as this lives, what is posted carries what is added. Nothing may be awaited meanwhile.
class Carrying {
  public:
    explicit Carrying(Recorder* recorder) : recorder_(recorder) {}
    Carrying(Recorder* recorder, std::uint32_t token, std::uint32_t choice, RowLog::What what)
        : recorder_(recorder) {
        add(token, choice, what);
    }
    ~Carrying() {
        if (recorder_ != nullptr) recorder_->rows.put_down();
    }
    Carrying(const Carrying&) = delete;
    void add(std::uint32_t token, std::uint32_t choice, RowLog::What what) {
        if (recorder_ != nullptr) recorder_->rows.carry(token, choice, what);
    }

  private:
    Recorder* recorder_;
};

}  // namespace moehub::sim
