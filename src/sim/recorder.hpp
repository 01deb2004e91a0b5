/// What a timeline is made of, while a layer runs: kernels of every GPU, units of hubs and
/// switches, bytes from GPU to GPU, rows that are followed. A fabric without one records nothing,
/// at the price of a look whether there is one.
#pragma once
#include "sim/event.hpp"
#include "sim/gpu/kernel_log.hpp"
#include "sim/topology.hpp"
#include "sim/transfer.hpp"

#include <moehub/timeline.hpp>

#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace moehub::sim {

struct FollowedRow {
    struct Step {
        const char* what;
        ComponentId where;
        Ps at;
    };
    static constexpr std::uint16_t kNoExpert = 0xffff;

    std::uint32_t token = 0;
    std::uint16_t choice = 0;
    std::uint16_t expert = 0;
    GpuId from = 0;
    GpuId to = 0;
    std::vector<Step> steps = {};
    std::vector<GpuId> with_result = {};  ///< GPUs where its result lies, whole or in part
};

/// Some rows of a layer, followed: when each was stored, left its hub, passed the switch, lay in
/// its expert's memory, was read, and the same of its result. Kept only where a timeline is asked
/// for.
///
/// A transfer that carries a row gives it its steps: rows in messages by themselves, rows that are
/// stored otherwise where their sender says so (Carrying). A step of something that comes in parts
/// is that of its last part.
class RowLog {
  public:
    /// Follows the rows whose number, token · per_token + choice, is `every` / 2 beyond a multiple
    /// of `every`; they are then added in the order of their numbers.
    void follow(std::int64_t every, std::uint32_t per_token);
    bool follows(std::uint32_t token, std::uint32_t choice) const {
        return every_ > 0 && choice < per_token_ && number(token, choice) % every_ == every_ / 2;
    }
    void add(FollowedRow row) { rows_.push_back(std::move(row)); }
    std::int64_t every() const { return every_; }
    const std::vector<FollowedRow>& rows() const { return rows_; }

    // What happens to a row that may be followed.
    void step(std::uint32_t token, std::uint32_t choice, const FollowedRow::Step& step);
    void computed(std::uint32_t token, std::uint32_t choice, GpuId gpu, Ps now);

    /// Transfers that are posted from now on carry this, too, between its expert's GPU and another,
    /// until all is put down.
    enum class What { row, result };
    void carry(std::uint32_t token, std::uint32_t choice, What what) {
        if (follows(token, choice)) loads_.push_back({index(token, choice), what == What::result});
    }
    void put_down() { loads_.clear(); }

    // What the fabric tells of any transfer.
    void posted(TransferId id, const Transfer& transfer, std::span<const CarriedRow> rows, Ps now);
    /// Rows that a load finds in the memory of `transfer.dst`.
    void found(TransferId id, const Transfer& transfer, std::span<const CarriedRow> rows, Ps now);
    void departed(const Train& train, GpuId gpu, Ps at);
    void entered(const Train& train, ComponentId at_switch, Ps at);
    void in_memory(TransferId id, GpuId gpu, Ps at);
    /// A program takes messages out of its memory.
    void taken(std::span<const CarriedRow> rows, GpuId gpu, Ps now);

  private:
    struct Carried {
        std::size_t row = 0;  ///< index in rows_
        bool result = false;
        bool notice = false;  ///< says of a result that it is there
    };
    struct Carrier {
        std::vector<Carried> rows = {};
        Bytes bytes = 0;
        Bytes left = 0;       ///< bytes that left the hub
        Bytes entered = 0;    ///< bytes that entered switches, counted at each
        bool copied = false;  ///< the switch copies it to several GPUs
        bool load = false;
    };
    std::int64_t number(std::uint32_t token, std::uint32_t choice) const {
        return std::int64_t{token} * per_token_ + choice;
    }
    std::size_t index(std::uint32_t token, std::uint32_t choice) const {
        return static_cast<std::size_t>(number(token, choice) / every_);
    }
    Carrier* carrier_of(const Train& train);
    bool has_result(const FollowedRow& row, GpuId gpu) const;
    void note(const Carried& carried, const char* of_row, const char* of_result,
              const FollowedRow::Step& step);

    std::int64_t every_ = 0;
    std::uint32_t per_token_ = 1;
    std::vector<FollowedRow> rows_;
    std::vector<Carried> loads_;
    std::unordered_map<TransferId, Carrier> carriers_;
};

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

    /// The timeline of a layer that ended then.
    Timeline timeline(Ps end) const;

  private:
    static constexpr std::size_t kBins = 128;

    void add_kernels(Timeline& timeline, Ps end) const;
    void add_units(Timeline& timeline) const;
    void add_rows(Timeline& timeline) const;

    const Topology& topology_;
    std::deque<KernelLog> kernels_;  ///< kernels of each GPU
    std::map<std::pair<ComponentId, std::string_view>, TimeBins<kBins>> units_;
    std::vector<Bytes> sent_;
};

/// Has what is posted carry a row as long as this lives. Nothing may be awaited meanwhile.
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
