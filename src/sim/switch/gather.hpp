/// The gathering unit of a switch's port: answers of a group's GPUs to one multicast request, on
/// their way to who asked, become one. Acknowledgements are counted; data is added up, packet by
/// packet, in a finite buffer of partial sums.
///
/// Answers belong together when they are for the same address, group and asker. A GPU that answers
/// twice answers the later of two such requests: answers of one GPU stay in order.
///
/// A buffer that is full gives up its oldest partial sum: that goes on as it is, says how many
/// answers it stands for, and the asker adds up what comes. The answers still missing start a new
/// sum. In row grain a train waits as a whole for the last of its peers, of which packets see only
/// the part that came before that peer's: the buffer is charged with
///     min(packets of the train, 1 + time since its first packet / time of a packet).
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"
#include "sim/topology.hpp"
#include "sim/wire.hpp"

#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace moehub::sim {

class Fabric;

struct GatherStats {
    std::int64_t answers = 0;   ///< packets taken in
    std::int64_t gathered = 0;  ///< requests whose answers all came
    std::int64_t evicted = 0;   ///< partial sums that went on before they were complete
    std::int64_t deepest = 0;   ///< packets of partial sums at once
};

class Gather {
  public:
    /// `room`: how many packets of partial sums it can hold.
    Gather(std::int64_t room, const Wire& wire) : room_(room), wire_(&wire) {}

    /// Takes in an answer, whole or its first or last packet; returns what goes on to the asker
    /// now. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& answer);

    const GatherStats& stats() const { return stats_; }

  private:
    struct Key {
        std::uint64_t address;
        GroupId group;
        GpuId asker;
        bool data;
        bool operator==(const Key&) const = default;
    };
    struct HashKey {
        std::size_t operator()(const Key& key) const {
            const std::uint64_t mixed = key.address * 0x9e3779b97f4a7c15u ^
                                        (std::uint64_t{key.group} << 20) ^ (key.asker * 2u) ^
                                        (key.data ? 1u : 0u);
            return static_cast<std::size_t>(mixed ^ (mixed >> 29));
        }
    };
    using EntryId = std::uint32_t;
    static constexpr EntryId kNone = 0xffffffff;
    struct Batch {    // answers that go on as one
        Train train;  ///< as it will go on: from who came first, for as many answers as have begun
        std::uint32_t ended = 0;  ///< answers in it that are all there
        Ps since = 0;
        bool closed = false;  ///< no answers will join
    };
    struct Entry {  // a request whose answers are gathered
        Key key{};
        std::uint32_t missing = 0;            ///< GPUs whose answer has not begun to come
        EntryId later = kNone;                ///< a later request with the same key
        std::uint64_t number = 0;             ///< number that no other entry ever had
        std::vector<std::uint16_t> batch_of;  ///< batch that each member joined, or kNotYet
        std::vector<Batch> batches;           ///< the last one is open while answers are missing
    };
    static constexpr std::uint16_t kNotYet = 0xffff;
    struct Waiting {  // a partial sum: an open batch of data
        EntryId entry;
        std::uint64_t number;
        std::size_t batch;
    };

    Key key_of(const Fabric& fabric, const Train& train) const;
    EntryId add_entry(const Key& key, std::size_t members);
    EntryId entry_of(const Key& key, std::size_t member, std::size_t members, bool begins);
    void remove(EntryId id);
    void begin(EntryId id, std::size_t member, const Event& answer);
    void end(Fabric& fabric, EntryId id, std::size_t member, const Event& answer);
    void close(Batch& batch, Ps now);
    void pass(const Batch& batch, Phase phase, Ps now);
    void make_room(Ps now);
    std::int64_t charge(const Batch& batch, Ps now) const;
    Batch* open_batch(const Waiting& waiting);

    std::int64_t room_;
    const Wire* wire_;
    std::unordered_map<Key, EntryId, HashKey> index_;
    Reused<Entry> entries_;
    std::deque<Waiting> waiting_;       ///< partial sums, oldest first; some have gone on since
    std::int64_t waiting_packets_ = 0;  ///< packets of partial sums: at least their charge
    std::uint64_t opened_ = 0;
    bool trains_ = false;  ///< trains have several packets: row grain
    std::vector<Event> out_;
    GatherStats stats_;
};

/// SHARP in a leaf or spine switch: it adds up what the GPUs of a group send for the same address
/// and hands every one of them the sum. A leaf waits for its own GPUs of the group; where others
/// take part it sends one packet to a spine, the same for all, and its GPUs the one that comes
/// back.

class NetworkSums {
  public:
    explicit NetworkSums(SwitchId number) : number_(number) {}

    /// Takes in a GPU's or a leaf's part, or a spine's sum; returns what goes on, its ports to be
    /// looked up by `port`. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& event);
    /// The port that what was taken leaves by.
    std::uint32_t port(const Fabric& fabric, const Train& train) const;

  private:
    using Key = std::pair<GroupId, std::uint64_t>;  ///< a group, an address
    Key key_of(const Fabric& fabric, const Train& train) const;
    std::size_t parts(const Fabric& fabric, GroupId group);
    void answer(const Fabric& fabric, const Train& part, Ps now);

    SwitchId number_;
    std::map<Key, std::vector<Train>> waiting_;
    std::unordered_map<GroupId, std::size_t> parts_;  ///< parts that make a sum here, by group
    std::vector<Event> out_;
};

}  // namespace moehub::sim
