/// The tables of each proposal: one function each, listed in area.cpp. Entries and banks are the
/// machine's; the bits of an entry follow from its fields, named beside their widths.
#pragma once
#include <moehub/area.hpp>

#include <vector>

namespace moehub {

/// RPM, AAU and DAM of a GPU's hub.
std::vector<AreaTable> moe_hub_tables(const Machine& machine);

/// MultimemQ, AL TLB and trackers of a GPU; reductions in a switch.
std::vector<AreaTable> dysharp_tables(const Machine& machine);

/// Blocks of a GPU that wait for others; merge units and the group table in a switch.
std::vector<AreaTable> cais_tables(const Machine& machine);

/// Bits that tell so many things apart; none for a single one.
constexpr int bits_for(std::int64_t things) {
    int bits = 0;
    while (bits < 62 && std::int64_t{1} << bits < things) ++bits;
    return bits;
}

}  // namespace moehub
