/// The merging table of a switch's port (merge_unit.hpp): entries by line and type, in the order in
/// which they were made and, those that may be given up, in that of their last use. Millions of
/// requests pass it: all lies in flat vectors that are used again.
#pragma once
#include "sim/event.hpp"

#include <vector>

namespace moehub::sim {

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
    struct Links {  // to the neighbours in a list
        Id before = kNone;
        Id behind = kNone;
    };
    struct Entry {
        Key key;
        State state = State::free;
        bool expired = false;      ///< it only waits for its data, for those that it has
        std::uint16_t count = 0;   ///< requests
        std::uint16_t wanted = 0;  ///< of so many
        Train train;               ///< the first request; of data that is ready: that; and the sum
        Ps first = 0;              ///< request
        Ps last = 0;
        Id requester = kNone;  ///< the first of those who are to be answered
        Id last_requester = kNone;
        Links made;
        Links used;
    };

    Id find(const Key& key) const;
    /// A new one, the last made. `state` is the caller's to set.
    Id add(const Key& key);
    void remove(Id id);
    Entry& operator[](Id id) { return entries_[id]; }
    const Entry& operator[](Id id) const { return entries_[id]; }
    /// All that there ever were at once; some are free.
    const std::vector<Entry>& all() const { return entries_; }

    Id first_made() const { return made_.behind; }
    /// Its time is up, or it is no more: it leaves the list of those made.
    void forget_made(Id id) { unlink(made_, id, &Entry::made); }
    Id least_used() const { return used_.behind; }
    /// Used now, from now on if it was not in the list yet.
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

    std::vector<Entry> entries_;
    std::vector<Id> free_;
    Links made_;  ///< ends of the lists: behind is the first, before the last
    Links used_;
    std::vector<Requester> requesters_;
    Id free_requester_ = kNone;
    std::vector<Id> slots_;  ///< open addressing, a power of two of them
    std::size_t filled_ = 0;
};

}  // namespace moehub::sim
