/// CAIS's merge unit of a switch's port: requests of several GPUs for the same line of one home,
/// the GPU behind the port, become one. Equal addresses meet here because the address decides the
/// switch. (`ld.cais`, `red.cais`: RowTarget::merge says how many requests a line gets.)
///
/// - Load: the first one goes home, and those that come until its data is back wait for it. The
///   data is kept until as many have asked as will.
/// - Reduction: added up until all contributions are there; then one sum goes home, which says how
///   many it stands for. A contributor is acknowledged when the switch has what it sent; what the
///   home itself acknowledges ends here.
///
/// An entry is a packet, or in row grain a train of several, which acts when its last packet is
/// here. A full table gives up what was touched least recently, as it is: a partial sum goes home,
/// data is dropped. Loads that wait for data stay, and where there are only those a request goes on
/// as an ordinary one. So does what hits an entry that still waits when its time is up; all others
/// then go as they are. Later requests for the line start anew: the home counts contributions.
///
/// A train's packets come and go one after another, so the table is charged as a gathering unit's
/// buffer is:
///     min(packets of the train, 1 + time since its first request / time of a packet).
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"
#include "sim/wire.hpp"

#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

class Fabric;

/// Counts are in packets. What goes home and what does not are all requests, once the run is over.
struct MergeStats {
    std::int64_t requests = 0;
    std::int64_t merged = 0;     ///< requests that the home never saw by themselves
    std::int64_t sent_home = 0;  ///< requests and sums that went home
    std::int64_t evicted = 0;    ///< entries that made room for others
    std::int64_t timed_out = 0;  ///< entries whose time was up
    std::int64_t bypassed = 0;   ///< requests that found no room, or their line's time up
    std::int64_t deepest = 0;    ///< most packets at once in one port's table
    std::int64_t entries = 0;    ///< entries that were made
    double waited = 0;           ///< ps from an entry's first request to its last, over entries
    Ps longest_wait = 0;         ///< longest wait of an entry, ps

    void add(const MergeStats& other);
};

/// The merging table of a switch's port: entries by line and type, in the order in which they were
/// made and, those that may be given up, in that of their last use. Millions of requests pass it:
/// all lies in flat vectors that are used again.
class MergeTable {
  public:
    using Id = std::uint32_t;
    static constexpr Id kNone = 0xffffffff;

    struct Key {
        std::uint64_t address = 0;
        bool reduction = false;
        bool operator==(const Key&) const = default;
    };
    enum class State : std::uint8_t { free, load_wait, load_ready, reduction };
    struct Requester {
        TransferId transfer = 0;
        std::uint32_t index = 0;
        GpuId gpu = 0;
        Id next = kNone;
    };
    struct Links {  // neighbours in a list
        Id before = kNone;
        Id behind = kNone;
    };
    struct Entry {
        Key key;
        State state = State::free;
        bool expired = false;      ///< it only waits for its data, for those that it has
        std::uint16_t count = 0;   ///< requests that have come
        std::uint16_t wanted = 0;  ///< requests that will come
        Train train;               ///< the first request; the data once it is ready; or the sum
        Ps first = 0;              ///< time of the first request
        Ps last = 0;
        Id requester = kNone;  ///< the first of those who are to be answered
        Id last_requester = kNone;
        Links made;
        Links used;
    };

    Id find(const Key& key) const;
    /// Adds an entry, the last made. `state` is the caller's to set.
    Id add(const Key& key);
    void remove(Id id);
    Entry& operator[](Id id) { return entries_[id]; }
    const Entry& operator[](Id id) const { return entries_[id]; }
    /// All entries, free ones among them.
    const std::vector<Entry>& all() const { return entries_.all(); }

    Id first_made() const { return made_.behind; }
    /// Takes an entry whose time is up, or that is no more, off the list of those made.
    void forget_made(Id id) { unlink(made_, id, &Entry::made); }
    Id least_used() const { return used_.behind; }
    /// Marks an entry as used now; it enters the list of those used if it was not there.
    void use(Id id);

    void add_requester(Entry& entry, const Requester& requester);
    const Requester& requester(Id id) const { return requesters_[id]; }
    void drop_requesters(Entry& entry);

  private:
    void unlink(Links& ends, Id id, Links Entry::*list);
    void append(Links& ends, Id id, Links Entry::*list);
    bool linked(const Links& ends, Id id, Links Entry::*list) const {
        return (entries_[id].*list).before != kNone || ends.behind == id;
    }
    std::size_t slot_of(const Key& key) const;
    void grow();

    Reused<Entry> entries_;
    Links made_;  ///< ends of the lists: behind is the first, before the last
    Links used_;
    std::vector<Requester> requesters_;
    Id free_requester_ = kNone;
    std::vector<Id> slots_;  ///< open addressing, a power of two of them
    std::size_t filled_ = 0;
};

class MergeUnit {
  public:
    struct Spec {
        std::int64_t room = 0;  ///< packets that the table has room for
        Ps timeout = 0;         ///< time of an entry, from its first request on
    };
    MergeUnit(const Spec& spec, const Wire& wire) : spec_(spec), wire_(&wire) {}

    /// Takes in a request for the home or an answer of it; returns what goes on now, to wherever
    /// it says. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& event);

    /// When the next entry's time is up; kNever: there is none.
    Ps next_expiry() const {
        const MergeTable::Id first = table_.first_made();
        return first == MergeTable::kNone ? kNever : table_[first].first + spec_.timeout;
    }
    /// Handles the entry whose time is up next; returns what goes on then.
    std::span<const Event> expire(Fabric& fabric);

    const MergeStats& stats() const { return stats_; }

  private:
    using Id = MergeTable::Id;
    using Entry = MergeTable::Entry;
    using State = MergeTable::State;

    void load(Fabric& fabric, const Event& event);
    void reduce(Fabric& fabric, const Event& event);
    void answer(Fabric& fabric, const Event& event);
    MergeTable::Key key_of(const Fabric& fabric, const Train& train, bool reduction) const;
    Id add_entry(const MergeTable::Key& key, const Event& event, State state);
    void join(Entry& entry, const Event& event);
    void remember(Entry& entry, const Train& train);
    void add_up(Fabric& fabric, Entry& entry, const Train& train);
    void pass(const Event& event, bool merge);
    void send_home(Fabric& fabric, Id id, Ps now);
    void acknowledge(const Event& event);
    void give_data(Fabric& fabric, Entry& entry, const MergeTable::Requester& to, Ps now);
    void remove(Fabric& fabric, Id id);
    bool make_room(Fabric& fabric, Ps now, std::int64_t need);
    std::int64_t charge(const Entry& entry, Ps now) const;
    std::int64_t charged(Ps now) const;

    Spec spec_;
    const Wire* wire_;
    MergeTable table_;
    std::int64_t packets_ = 0;  ///< packets of all entries
    bool trains_ = false;       ///< trains have several packets: row grain
    std::vector<Event> out_;
    MergeStats stats_;
};

/// CAIS's group-sync table of a switch: GPUs meet at an address. Their trains are counted, and when
/// as many have come as must, each of them is acknowledged.
struct Wire;

struct GroupSyncStats {
    std::int64_t meetings = 0;  ///< meetings at which all came
    std::int64_t deepest = 0;   ///< groups that wait at once in one switch
};

class GroupSync {
  public:
    explicit GroupSync(const Wire& wire) : wire_(&wire) {}

    /// Takes in a GPU's train; returns what goes on to those who met. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& event);

    const GroupSyncStats& stats() const { return stats_; }

  private:
    void answer(const Train& train, Ps now);

    const Wire* wire_;
    std::unordered_map<std::uint64_t, std::vector<Train>> waiting_;  ///< trains, by address
    std::vector<Event> out_;
    GroupSyncStats stats_;
};

}  // namespace moehub::sim
