/// What a group of GPUs sees of its machine, and collectives over it, simulated; of very large
/// groups from smaller ones alike; times by bytes; MoE layers of a group of neighbouring GPUs.
#pragma once
#include "plan/communication.hpp"

#include <moehub/routing.hpp>
#include <moehub/units.hpp>

#include <array>
#include <atomic>
#include <compare>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

namespace moehub {

/// How many members a group has on a node, and nodes.
struct GroupShape {
    int per_node = 1;
    int nodes = 1;

    int gpus() const { return per_node * nodes; }
    friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

/// A group's shape: as many members of a node as its GPUs and the stride leave, and as divide the
/// group: nodes are alike.
GroupShape shape_of(const Machine& machine, GpuGroup group);

/// The machine of the group alone. Every GPU keeps its links to switches and its NIC; of a mesh the
/// links to GPUs of other groups are gone. That members lie several nodes apart is left out: spines
/// then add half a microsecond, and have a NIC's rate for every NIC.
Machine machine_of(const Machine& machine, GroupShape shape);

/// Seconds of a collective, bytes as nccl-tests counts them; 0 for one GPU; `machine` is whole.
///
/// NCCL's choice: rings, in-switch sums, NVLS trees; no SHARP. Rings between nodes of up to 32 GPUs
/// by Simple where that is faster than LL128. On a mesh what HCCL does: everyone to everyone inside
/// a node, then rings of a NIC each between nodes, each with its share.
///
/// Simulated as a whole are rings of some 32 GPUs, or of 8 nodes with one member each, and
/// exchanges and trees of 4 nodes or so. Beyond, steps that are all alike are counted on: see the
/// source.
double group_seconds(const Machine& machine, Collective::Op op, GroupShape shape, double bytes);

/// Bytes from which on time grows in proportion: parts are so large that a link or NIC is what
/// takes long.
double linear_from(GroupShape shape);

// Times by bytes: simulated at sizes of a coarse grid when they are first needed, straight lines
// between them.

class SizeTable {
  public:
    using Simulate = std::function<double(Bytes)>;

    /// `simulate` gives the seconds of a size. From the first size of the grid from `linear_from`
    /// on time grows as between the last two.
    SizeTable(Simulate simulate, double linear_from);

    /// Seconds of a size; below the grid as at its start, 0 for 0 bytes. Never falls as bytes grow,
    /// whatever the simulation says. Any number of threads may ask.
    double at(double bytes);

  private:
    static constexpr int kMostPoints = 24;

    double point(int index);

    Simulate simulate_;
    int points_ = 2;
    std::array<double, kMostPoints> times_{};  ///< seconds at the first `known_` points
    std::atomic<int> known_{0};
    std::mutex simulating_;
};

// MoE layers of a group of neighbouring GPUs, simulated under a system and without communication.

/// Values that are made once, whoever asks first; any number of threads may ask.
template <class Key, class Value>
class OnceMap {
  public:
    /// The key's value. The first to ask makes it, those who ask meanwhile wait. What `make` throws
    /// is remembered and thrown to all.
    template <class Make>
    Value& get(const Key& key, const Make& make) {
        Entry& entry = entry_of(key);
        std::call_once(entry.made, [&] {
            try {
                entry.value.emplace(make());
            } catch (...) {
                entry.error = std::current_exception();
            }
        });
        if (entry.error) std::rethrow_exception(entry.error);
        return *entry.value;
    }

  private:
    struct Entry {
        std::once_flag made;
        std::optional<Value> value;
        std::exception_ptr error;
    };

    Entry& entry_of(const Key& key) {
        {
            const std::shared_lock lock(mutex_);
            const auto found = entries_.find(key);
            if (found != entries_.end()) return *found->second;
        }
        const std::unique_lock lock(mutex_);
        std::unique_ptr<Entry>& entry = entries_[key];
        if (!entry) entry = std::make_unique<Entry>();
        return *entry;
    }

    std::shared_mutex mutex_;
    std::map<Key, std::unique_ptr<Entry>> entries_;
};

/// Times by tokens of a GPU: simulated at two counts, straight lines through them. Any number of
/// threads may ask.
class ExchangeTimes {
  public:
    /// `routing` is a TrainingRun's.
    ExchangeTimes(Machine machine, Model model, RoutingSpec routing);

    /// What the layer's communication takes, interpolated along the line of its case.
    MoeCommunication at(const MoeCase& one);
    MoeCommunication exact(const MoeCase& one);

  private:
    /// Two counts of tokens, and what was simulated at them.
    struct Line {
        std::int64_t few = 0;
        std::int64_t many = 0;
        MoeCommunication at_few;
        MoeCommunication at_many;
    };

    std::int64_t affordable(const MoeCase& one, std::int64_t rows) const;
    Line line_of(const MoeCase& one);
    /// The layer's communication, simulated once.
    MoeCommunication simulated(const MoeCase& one);
    double ideal(const MoeCase& one);
    static MoeCommunication along(const Line& line, std::int64_t tokens);

    Machine machine_;
    Model model_;
    RoutingSpec routing_;
    OnceMap<MoeCase, Line> lines_;  ///< lines by case, its tokens 0
    OnceMap<MoeCase, MoeCommunication> simulated_;
    OnceMap<MoeCase, double> ideals_;  ///< times of ideal by case, its system empty
};

}  // namespace moehub
