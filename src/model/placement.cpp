#include "base/input_error.hpp"

#include <moehub/placement.hpp>

#include <algorithm>

namespace moehub {
namespace {

using Rows = std::vector<long long>;

double rows_per_copy(const Placement& placement, const Rows& rows, std::size_t expert) {
    return static_cast<double>(rows[expert]) / static_cast<double>(placement.hosts[expert].size());
}

/// Whether a rank has room for one more expert.
using Room = std::vector<bool>;

Room room_of(const Placement& placement, std::size_t slots) {
    Room room;
    for (const std::vector<int>& experts : experts_by_rank(placement))
        room.push_back(experts.size() < slots);
    return room;
}

bool has(const std::vector<int>& hosts, int rank) {
    return std::binary_search(hosts.begin(), hosts.end(), rank);
}

bool lacking_somewhere(const std::vector<int>& hosts, const Room& room) {
    for (std::size_t rank = 0; rank < room.size(); ++rank)
        if (room[rank] && !has(hosts, static_cast<int>(rank))) return true;
    return false;
}

/// The expert with the most rows per copy that some rank with room lacks; with fewer copies, then
/// with the lower number where rows are equal. None: the number of experts.
std::size_t most_wanted(const Placement& placement, const Rows& rows, const Room& room) {
    const auto& hosts = placement.hosts;
    std::size_t best = hosts.size();
    for (std::size_t expert = 0; expert < hosts.size(); ++expert) {
        if (!lacking_somewhere(hosts[expert], room)) continue;
        if (best == hosts.size()) {
            best = expert;
            continue;
        }
        const double wanted = rows_per_copy(placement, rows, expert);
        const double most = rows_per_copy(placement, rows, best);
        if (wanted > most || (wanted == most && hosts[expert].size() < hosts[best].size()))
            best = expert;
    }
    return best;
}

/// Rows that each rank can expect when an expert's rows spread evenly over its copies.
std::vector<double> expected_rows(const Placement& placement, const Rows& rows) {
    std::vector<double> expected(static_cast<std::size_t>(placement.ranks), 0.0);
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert)
        for (const int rank : placement.hosts[expert])
            expected[static_cast<std::size_t>(rank)] += rows_per_copy(placement, rows, expert);
    return expected;
}

/// Returns whether a rank with fewer than `slots` experts could take one.
bool add_copy(Placement& placement, const Rows& rows, std::size_t slots) {
    const Room room = room_of(placement, slots);
    const std::size_t expert = most_wanted(placement, rows, room);
    if (expert == placement.hosts.size()) return false;
    std::vector<int>& hosts = placement.hosts[expert];
    const auto expected = expected_rows(placement, rows);
    int best = -1;
    for (int rank = 0; rank < placement.ranks; ++rank) {
        if (!room[static_cast<std::size_t>(rank)] || has(hosts, rank)) continue;
        if (best < 0 ||
            expected[static_cast<std::size_t>(rank)] < expected[static_cast<std::size_t>(best)])
            best = rank;
    }
    hosts.insert(std::upper_bound(hosts.begin(), hosts.end(), best), best);
    return true;
}

void check_each_expert(const Placement& placement, const Rows& rows) {
    if (rows.size() != placement.hosts.size())
        throw input_error("placement: found rows of {} experts, allowed: of all {}", rows.size(),
                          placement.hosts.size());
    const auto negative = std::find_if(rows.begin(), rows.end(), [](long long n) { return n < 0; });
    if (negative != rows.end())
        throw input_error("placement: expert {}: found {} rows, allowed: 0 or more",
                          negative - rows.begin(), *negative);
}

}  // namespace

Placement contiguous_placement(int experts, int ranks) {
    if (experts < 1) throw input_error("placement: found {} experts, allowed: 1 or more", experts);
    if (ranks < 1) throw input_error("placement: found {} ranks, allowed: 1 or more", ranks);
    Placement placement{ranks, {}};
    for (int rank = 0; rank < ranks; ++rank) {
        const int count = experts / ranks + (rank < experts % ranks ? 1 : 0);
        placement.hosts.insert(placement.hosts.end(), static_cast<std::size_t>(count), {rank});
    }
    return placement;
}

Placement with_replicas(const Placement& placement, const std::vector<long long>& rows_of_expert,
                        int redundant) {
    check(placement, static_cast<int>(placement.hosts.size()));
    check_each_expert(placement, rows_of_expert);
    long long room = 0;
    for (const auto& hosts : placement.hosts)
        room += placement.ranks - static_cast<long long>(hosts.size());
    if (redundant < 0 || redundant > room)
        throw input_error(
            "placement: found {} redundant copies, allowed: 0 to {} ({} experts on {} "
            "ranks, a copy each at most)",
            redundant, room, placement.hosts.size(), placement.ranks);
    Placement result = placement;
    const long long copies =
        placement.ranks * static_cast<long long>(placement.hosts.size()) - room;
    long long slots = (copies + redundant + placement.ranks - 1) / placement.ranks;
    for (int copy = 0; copy < redundant; ++copy)
        while (!add_copy(result, rows_of_expert, static_cast<std::size_t>(slots))) ++slots;
    return result;
}

std::vector<std::vector<int>> experts_by_rank(const Placement& placement) {
    std::vector<std::vector<int>> experts(static_cast<std::size_t>(placement.ranks));
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert)
        for (const int rank : placement.hosts[expert])
            experts[static_cast<std::size_t>(rank)].push_back(static_cast<int>(expert));
    return experts;
}

void check(const Placement& placement, int experts) {
    if (placement.ranks < 1)
        throw input_error("placement: found {} ranks, allowed: 1 or more", placement.ranks);
    if (experts < 0 || placement.hosts.size() != static_cast<std::size_t>(experts))
        throw input_error("placement: found {} experts, allowed: the model's {}",
                          placement.hosts.size(), experts);
    for (std::size_t expert = 0; expert < placement.hosts.size(); ++expert) {
        const auto& hosts = placement.hosts[expert];
        const auto fail = [expert](const std::string& what) {
            throw input_error("placement: expert {}: {}", expert, what);
        };
        if (hosts.empty()) fail("found on no rank, allowed: at least one");
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            if (hosts[i] < 0 || hosts[i] >= placement.ranks)
                fail(fmt::format("found on rank {}, allowed: 0 to {}", hosts[i],
                                 placement.ranks - 1));
            if (i > 0 && hosts[i] == hosts[i - 1])
                fail(fmt::format("found twice on rank {}, allowed: once", hosts[i]));
            if (i > 0 && hosts[i] < hosts[i - 1])
                fail(fmt::format("found on rank {} after rank {}, allowed: ascending", hosts[i],
                                 hosts[i - 1]));
        }
    }
}

}  // namespace moehub
