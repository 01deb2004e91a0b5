/// Collectives as programs that any layer awaits. Every member calls the same ones in the same
/// order, each when it comes to it:
///
///     Communicator tp(fabric, {0, 1, 2, 3}, "tensor parallel");
///     co_await all_reduce(tp, gpu, {.bytes = 1 << 20, .algorithm = Algorithm::nvls});
///
/// A communicator runs one collective at a time, as a stream does.
#pragma once
#include "sim/fabric.hpp"

#include <moehub/collective.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace moehub::sim {

/// Where part i of n begins; parts differ by at most one byte.
inline Bytes part_begin(Bytes bytes, std::uint32_t i, std::uint32_t n) {
    return static_cast<Bytes>(static_cast<__int128>(bytes) * i / n);
}
inline Bytes part(Bytes bytes, std::uint32_t i, std::uint32_t n) {
    return part_begin(bytes, i + 1, n) - part_begin(bytes, i, n);
}

class Communicator {
  public:
    /// `meets`: members come at different times, so in-switch collectives, whose loads and stores
    /// reach into everyone's memory, begin or end with a barrier of flags. Other algorithms wait
    /// for their data anyhow.
    Communicator(Fabric& fabric, std::vector<GpuId> members, const char* name, bool meets = true);
    /// All GPUs are its members.
    Communicator(Fabric& fabric, const char* name, bool meets = true);

    Fabric& fabric() const { return fabric_; }
    const Machine& machine() const { return fabric_.machine(); }
    const CollectiveCosts& costs() const { return machine().collective; }
    const NcclCosts& nccl() const { return machine().nccl; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
    std::uint32_t rank(GpuId gpu) const;
    GpuId member(std::uint32_t rank) const { return members_[rank]; }
    Endpoint& endpoint(GpuId gpu) const { return fabric_.gpu(gpu); }
    GroupId group() const { return group_; }  ///< the members as switches know them
    bool meets() const { return meets_; }
    bool whole_machine() const { return size() == fabric_.topology().gpus; }

    // What programs count. A member may be one call ahead of another, never two, since it waits for
    // all of them: calls take turns with two sets of counters.
    enum Count : std::uint32_t { reduced, gathered, answered, loaded, stored, met, exchanged };
    /// The member begins its next call. `calls`: how many it has begun so far.
    void begin(GpuId gpu);
    int calls(GpuId gpu) const { return states_[rank(gpu)].calls; }
    /// The counter of the caller's present call at the member.
    CounterId counter(GpuId member, Count count, GpuId caller) const;
    /// Waits for `many` counts of the present call.
    Endpoint::Until until(GpuId gpu, Count count, std::int64_t many);
    /// Says that `many` counts will come that nobody waits for.
    void expect(GpuId gpu, Count count, std::int64_t many);
    /// Parts of a ring come in order from one neighbour, whichever the call: one counter a ring,
    /// and how many of its parts the member has waited for so far.
    std::uint32_t rings() const;
    CounterId ring_counter(GpuId gpu, std::uint32_t ring) const;
    std::int64_t& ring_parts(GpuId gpu, std::uint32_t ring);
    /// Counters of other neighbours have numbers behind those of rings: a chain's way back, a
    /// chain's sums, and kTreeWays of trees.
    static constexpr std::uint32_t kTreeWays = 8;
    std::uint32_t way_back(std::uint32_t chain) const { return rings() + chain; }
    std::uint32_t sums_of(std::uint32_t chain) const { return 2 * rings() + chain; }
    std::uint32_t tree_way(std::uint32_t number) const { return 3 * rings() + number; }
    /// What an exchange brought the member, one message from each other.
    std::vector<Received> received(GpuId gpu) {
        return endpoint(gpu).take(counter(gpu, exchanged, gpu));
    }

  private:
    static constexpr std::uint32_t kCounts = 7;
    struct Member {
        CounterId counters = 0;  ///< first counter of both sets
        CounterId rings = 0;     ///< first counter of the rings
        std::vector<std::int64_t> ring_parts;
        int calls = 0;
        std::uint32_t set = 1;
        std::int64_t before[2][kCounts] = {};  ///< counts of earlier calls
        std::int64_t many[2][kCounts] = {};    ///< counts of the last call
    };

    Fabric& fabric_;
    std::vector<GpuId> members_;
    bool meets_;
    GroupId group_ = kNoGroup;
    std::vector<Member> states_;  ///< state of each member, by rank
};

/// What one call does. `bytes` are those of the whole buffer, as nccl-tests count.
struct CollectiveCall {
    Bytes bytes = 0;
    Collective::Algorithm algorithm = Collective::Algorithm::direct;
    Collective::Element element = Collective::Element::half;  ///< numbers that are summed
    Bytes part_of = 0;  ///< bytes of the whole that this call is a part of; 0: no part
};
Process all_to_all(Communicator& all, GpuId gpu, CollectiveCall call);
Process all_gather(Communicator& all, GpuId gpu, CollectiveCall call);
Process reduce_scatter(Communicator& all, GpuId gpu, CollectiveCall call);
Process all_reduce(Communicator& all, GpuId gpu, CollectiveCall call);

/// What one member tells another: so many bytes, and what they say.
struct Parcel {
    Bytes bytes = 0;
    Message message;
};
/// An all-to-all of parcels of any size, one for each member by its rank; its own is not moved. A
/// pair with nothing to say exchanges one byte, so that all know that they have everything.
Process exchange(Communicator& all, GpuId gpu, std::vector<Parcel> parcels);

/// A member's part of a buffer that lies on all members at the same address, through the switch:
/// its rows to all of them, or their sums to it. Where rows are followed, `region` is where they
/// are written or read (sums), and sums go to the member's region `into`.
struct Slice {
    Bytes begin = 0;
    Bytes bytes = 0;
    RowTarget target;
};
/// The member's own part, by its rank, of a buffer of so many bytes.
Slice own_slice(const Communicator& all, GpuId gpu, Bytes bytes);
Process multicast_slice(Communicator& all, GpuId gpu, Slice slice);
Process reduce_slice(Communicator& all, GpuId gpu, Slice slice);
/// Reduces the slice and multicasts the sums to all members, to `stored`, chunk by chunk as NCCL's
/// all-reduce does.
Process all_reduce_slice(Communicator& all, GpuId gpu, Slice slice, RowTarget stored);

/// Exchanges a few bytes, such as counts; nobody waits for acknowledgements.
Process tell(Communicator& all, GpuId gpu, std::vector<Parcel> parcels);

/// Sends flags to all and waits for those of all; the n-th barrier of the present call.
Process barrier(Communicator& all, GpuId gpu, int number = 1);

// The programs of each algorithm, which the calls above choose from.
Process direct(Communicator& all, GpuId gpu, Collective::Op op, Bytes bytes);
Process ring(Communicator& all, GpuId gpu, Collective::Op op, Bytes bytes);
Process in_switch(Communicator& all, GpuId gpu, Collective::Op op, Bytes bytes);

}  // namespace moehub::sim
