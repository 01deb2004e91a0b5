// Are the bytes on every GPU's links those that each system must send, to the flit: rows, counts,
// flags, requests and acknowledgements? What follows is written from what the systems say they do,
// message by message, for a node of four GPUs with two experts each.
#include "small_layer.hpp"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::bytes_test {
namespace {

constexpr int kGpus = 4;
constexpr int kExperts = 8;
constexpr int kLocal = kExperts / kGpus;
constexpr int kTopK = 2;
constexpr Bytes kRow = 512;  ///< in bf16: four whole packets, so that rows add up in any order
constexpr std::int64_t kTokens = 64;  ///< tokens of a GPU

/// Flits on every GPU's link, both ways; 16 B each, packets with a header of one.
struct Wires {
    Bytes payload = 128;  ///< bytes of a packet
    std::int64_t up[kGpus] = {};
    std::int64_t down[kGpus] = {};

    std::int64_t packets(Bytes bytes) const { return (bytes + payload - 1) / payload; }
    std::int64_t flits(Bytes bytes) const { return packets(bytes) + (bytes + 15) / 16; }
    void move(int from, int to, std::int64_t some) {
        up[from] += some;
        down[to] += some;
    }
    /// Acknowledged packet by packet. A message of no rows is still one: a byte.
    void store(int from, int to, Bytes bytes) {
        if (from == to) return;
        bytes = std::max<Bytes>(1, bytes);
        move(from, to, flits(bytes));
        move(to, from, packets(bytes));
    }
    /// Asked for packet by packet.
    void load(int reader, int owner, Bytes bytes) {
        if (reader == owner) return;
        bytes = std::max<Bytes>(1, bytes);
        move(reader, owner, packets(bytes));
        move(owner, reader, flits(bytes));
    }
    void all_to_all(Bytes bytes) {
        for (int from = 0; from < kGpus; ++from)
            for (int to = 0; to < kGpus; ++to) store(from, to, bytes);
    }
    /// Through the switch, to all: one packet up, one down to each; acknowledgements are merged.
    void multicast(int from, Bytes bytes) {
        up[from] += flits(bytes) + packets(bytes);
        for (int to = 0; to < kGpus; ++to) {
            down[to] += flits(bytes) + packets(bytes);
            up[to] += packets(bytes);
        }
        down[from] += packets(bytes);
    }
    /// A load that the switch asks all for and adds up.
    void reduce(int reader, Bytes bytes) {
        up[reader] += 2 * packets(bytes);
        for (int owner = 0; owner < kGpus; ++owner) {
            down[owner] += 2 * packets(bytes);
            up[owner] += flits(bytes);
        }
        down[reader] += flits(bytes);
    }
};

/// Who chose whom.
struct Chosen {
    explicit Chosen(const Routing& routing) {
        const std::int64_t each = routing.tokens / kGpus;
        for (std::int64_t token = 0; token < routing.tokens; ++token) {
            const int home = static_cast<int>(token / each);
            std::map<int, int> gpus;
            for (const int expert : routing.chosen_by(0, token)) {
                ++rows[home][expert];
                ++gpus[expert / kLocal];
            }
            for (const auto& [gpu, count] : gpus) tokens[home][gpu].push_back(token % each);
            gpus.erase(home);
            others[home].push_back(gpus);
        }
    }
    Bytes rows_to(int home, int gpu) const {
        Bytes sum = 0;
        for (int i = 0; i < kLocal; ++i) sum += rows[home][gpu * kLocal + i];
        return sum;
    }
    Bytes copies(int home, int gpu) const { return static_cast<Bytes>(tokens[home][gpu].size()); }

    Bytes rows[kGpus][kExperts] = {};
    std::vector<std::int64_t> tokens[kGpus][kGpus];  ///< [home][GPU]: those with an expert there
    std::vector<std::map<int, int>> others[kGpus];   ///< [home][token]: rows on each other GPU
};

template <class Pair>
void each_pair(Pair pair) {
    for (int home = 0; home < kGpus; ++home)
        for (int gpu = 0; gpu < kGpus; ++gpu) pair(home, gpu);
}

void megatron_te(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kExperts);
    each_pair([&](int home, int gpu) {
        wires.store(home, gpu, kRow * chosen.rows_to(home, gpu));
        wires.store(home, gpu, 4 * chosen.rows_to(home, gpu));
        wires.store(gpu, home, kRow * chosen.rows_to(home, gpu));
    });
}

void rows_there_and_back(const Chosen& chosen, Wires& wires) {
    each_pair([&](int home, int gpu) {
        wires.store(home, gpu, kRow * chosen.rows_to(home, gpu));
        wires.store(gpu, home, kRow * chosen.rows_to(home, gpu));
    });
}

/// Rows alone, with counts for the receiver's experts.
void all_to_all(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    rows_there_and_back(chosen, wires);
}

/// In one node there is nothing to gather; all know all counts.
void hierarchical(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kExperts);
    rows_there_and_back(chosen, wires);
}

void fastermoe(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(8 * kExperts);
    each_pair([&](int home, int gpu) {
        for (int expert = gpu * kLocal; expert < (gpu + 1) * kLocal; ++expert) {
            wires.store(home, gpu, kRow * chosen.rows[home][expert]);
            wires.store(gpu, home, kRow * chosen.rows[home][expert]);
        }
    });
}

/// Two chunks of the capacity, filled or not.
void tutel(const Chosen& chosen, Wires& wires) {
    Bytes capacity = 1;
    for (const auto& of_home : chosen.rows)
        for (const Bytes rows : of_home) capacity = std::max(capacity, rows);
    wires.all_to_all(4);
    for (const Bytes rows : {capacity / 2, capacity - capacity / 2}) {
        wires.all_to_all(kLocal * rows * kRow);
        wires.all_to_all(kLocal * rows * kRow);
    }
}

void ccfuser(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kExperts);
    wires.all_to_all(1);
    wires.all_to_all(1);
    each_pair([&](int home, int gpu) {
        if (chosen.rows_to(home, gpu) == 0) return;
        wires.load(gpu, home, kRow * chosen.rows_to(home, gpu));
        wires.store(gpu, home, kRow * chosen.rows_to(home, gpu));
    });
}

void comet(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kExperts);
    each_pair([&](int home, int gpu) {
        wires.load(gpu, home, kRow * chosen.copies(home, gpu));
        for (int chunk = 0; chunk < 4; ++chunk)
            wires.store(gpu, home, kRow * chosen.copies(home, gpu) / 4);
    });
}

/// Twelve channels share a GPU's tokens; eight copies are a message.
void deepep(const Chosen& chosen, Wires& wires) {
    wires.payload = 64;
    constexpr int kChannels = 12;
    constexpr Bytes kChunk = 8;
    wires.all_to_all(4 * (1 + kLocal));
    each_pair([&](int home, int gpu) {
        Bytes copies[kChannels] = {};
        for (const std::int64_t token : chosen.tokens[home][gpu])
            ++copies[token * kChannels / kTokens];
        for (Bytes left : copies) {
            for (; left > 0; left -= kChunk) {
                const Bytes some = std::min(left, kChunk);
                wires.store(home, gpu, some * (kRow + 4 + 12 * kTopK));
                wires.store(gpu, home, some * (kRow + 4));
            }
        }
    });
}

/// Channels share a GPU's tokens, too few here for more than one message to a GPU.
void copy_engines(const Chosen& chosen, Wires& wires, int channels, Bytes beside) {
    each_pair([&](int home, int gpu) {
        std::map<std::int64_t, Bytes> copies;
        for (const std::int64_t token : chosen.tokens[home][gpu])
            ++copies[token * channels / kTokens];
        for (const auto& [channel, some] : copies) {
            wires.store(home, gpu, some * (kRow + beside));
            wires.store(gpu, home, some * (kRow + 4));
        }
    });
}

void deepep_v2(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * (1 + kLocal));
    copy_engines(chosen, wires, 12, 4 + 12 * kTopK);
}

/// Everyone's choices are known to all; a weight of every expert goes beside a copy.
void hybrid_ep(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(kTokens * kExperts);
    copy_engines(chosen, wires, 16, 4 * kExperts);
}

void deepep_ll(const Chosen& chosen, Wires& wires) {
    wires.payload = 64;
    each_pair([&](int home, int gpu) {
        for (Bytes row = 0; row < chosen.rows_to(home, gpu); ++row) {
            wires.store(home, gpu, kRow + 16);
            wires.store(gpu, home, kRow);
        }
    });
    for (int expert = 0; expert < kLocal; ++expert) {
        wires.all_to_all(4);
        wires.all_to_all(4);
    }
}

/// A block for each token: no SM has two.
void one_sided(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4);
    wires.all_to_all(4);
    each_pair([&](int home, int gpu) {
        for (Bytes copy = 0; copy < chosen.copies(home, gpu); ++copy) {
            wires.store(home, gpu, kRow + 8 * kTopK);
            wires.load(home, gpu, kRow);
        }
    });
}

void flashdmoe(const Chosen& chosen, Wires& wires) {
    each_pair([&](int home, int gpu) {
        for (int expert = gpu * kLocal; expert < (gpu + 1) * kLocal; ++expert) {
            const Bytes rows = chosen.rows[home][expert];
            wires.store(home, gpu, kRow * rows);
            if (rows > 0) wires.store(gpu, home, kRow * rows);
        }
    });
}

void mega_moe(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    wires.all_to_all(4);
    each_pair([&](int home, int gpu) {
        if (chosen.rows_to(home, gpu) == 0) return;
        wires.load(gpu, home, kRow * chosen.rows_to(home, gpu));
        wires.store(gpu, home, kRow * chosen.rows_to(home, gpu));
    });
}

void nvls(const Chosen&, Wires& wires) {
    wires.all_to_all(1);
    wires.all_to_all(1);
    for (int gpu = 0; gpu < kGpus; ++gpu) {
        wires.multicast(gpu, kTokens * (kRow + 12 * kTopK));
        wires.reduce(gpu, kTokens * kRow);
    }
}

/// A row is four packets, its source column one more.
void hub_rows(const Chosen& chosen, Wires& wires) {
    each_pair([&](int home, int gpu) {
        for (Bytes row = 0; row < chosen.rows_to(home, gpu); ++row) {
            wires.store(home, gpu, kRow);
            wires.store(home, gpu, 16);
            wires.store(gpu, home, kRow);
        }
    });
}

/// Everyone tells everyone when all of its rows are acknowledged.
void moe_hub(const Chosen& chosen, Wires& wires) {
    hub_rows(chosen, wires);
    wires.all_to_all(16);
}

/// A flag for each expert, and one behind all results.
void mh_base(const Chosen& chosen, Wires& wires) {
    hub_rows(chosen, wires);
    for (int expert = 0; expert < kLocal; ++expert) wires.all_to_all(16);
    wires.all_to_all(16);
}

/// A row and its weights up once with the list of experts, eight in a flit; down to each GPU with
/// its own part of it. The sum is asked for in the same way and comes down once.
void by_lists(const Chosen& chosen, Wires& wires) {
    constexpr Bytes kSent = kRow + 4 * kTopK;
    const auto list = [](int rows) { return (rows + 7) / 8; };
    for (int home = 0; home < kGpus; ++home) {
        for (const auto& gpus : chosen.others[home]) {
            if (gpus.empty()) continue;
            int rows = 0;
            for (const auto& [gpu, here] : gpus) {
                rows += here;
                wires.down[gpu] += wires.flits(kSent) + wires.packets(kSent) * list(here);
                wires.up[gpu] += wires.packets(kSent);
                wires.down[gpu] += wires.packets(kRow) * (1 + list(here));
                wires.up[gpu] += wires.flits(kRow);
            }
            wires.up[home] += wires.flits(kSent) + wires.packets(kSent) * list(rows);
            wires.down[home] += wires.packets(kSent);
            wires.up[home] += wires.packets(kRow) * (1 + list(rows));
            wires.down[home] += wires.flits(kRow);
        }
    }
}

/// A token's home is told of every result.
void notices(const Chosen& chosen, Wires& wires) {
    each_pair([&](int home, int gpu) {
        for (Bytes row = 0; row < chosen.rows_to(home, gpu); ++row) wires.store(gpu, home, 16);
    });
}

void dysharp(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    by_lists(chosen, wires);
    notices(chosen, wires);
}

void dysharp_basic(const Chosen& chosen, Wires& wires) {
    by_lists(chosen, wires);
    wires.all_to_all(16);
    wires.all_to_all(16);
}

/// Four chunks of columns, a packet each, and a flag of everyone for each.
void dysharp_comet(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    by_lists(chosen, wires);
    for (int chunk = 0; chunk < 4; ++chunk) wires.all_to_all(16);
}

void moe_hub_dysharp(const Chosen& chosen, Wires& wires) {
    by_lists(chosen, wires);
    notices(chosen, wires);
    wires.all_to_all(16);
}

/// A copy to every GPU, and so many loads back.
void one_by_one(const Chosen& chosen, Wires& wires, bool each_row) {
    each_pair([&](int home, int gpu) {
        for (Bytes copy = 0; copy < chosen.copies(home, gpu); ++copy)
            wires.store(home, gpu, kRow + 4 * kTopK);
        const Bytes loads = each_row ? chosen.rows_to(home, gpu) : chosen.copies(home, gpu);
        for (Bytes load = 0; load < loads; ++load) wires.load(home, gpu, kRow);
    });
}

void fusion_only(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    notices(chosen, wires);
    one_by_one(chosen, wires, true);
}

void steps_only(const Chosen& chosen, Wires& wires) {
    wires.all_to_all(4 * kLocal);
    one_by_one(chosen, wires, false);
    wires.all_to_all(16);
    wires.all_to_all(16);
}

using Formula = void (*)(const Chosen&, Wires&);
const std::map<std::string, Formula> kFormulas = {
    {"ideal", [](const Chosen&, Wires&) {}},
    {"megatron-te", megatron_te},
    {"all-to-all", all_to_all},
    {"hierarchical", hierarchical},
    {"fastermoe", fastermoe},
    {"tutel", tutel},
    {"ccfuser", ccfuser},
    {"comet", comet},
    {"deepep", deepep},
    {"deepep-single-qp", deepep},
    {"deepep-v2", deepep_v2},
    {"hybrid-ep", hybrid_ep},
    {"deepep-ll", deepep_ll},
    {"one-sided", one_sided},
    {"one-sided-relay", one_sided},
    {"flashdmoe", flashdmoe},
    {"mega-moe", mega_moe},
    {"nvls", nvls},
    {"dysharp", dysharp},
    {"dysharp-basic", dysharp_basic},
    {"dysharp-comet", dysharp_comet},
    {"fusion-only", fusion_only},
    {"steps-only", steps_only},
    {"moe-hub+dysharp", moe_hub_dysharp},
    {"moe-hub", moe_hub},
    {"moe-hub-relay", moe_hub},
    {"mh-dep", moe_hub},
    {"mh-base", mh_base},
    {"mh-pkt", mh_base},
};

Bytes between(const LayerResult& result, const std::string& gpu, bool up) {
    Bytes sum = 0;
    for (const LinkUse& link : result.links)
        if ((up ? link.from : link.to) == gpu) sum += link.bytes;
    return sum;
}

class BytesOfEverySystem : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Systems, BytesOfEverySystem, ::testing::ValuesIn(system_names()));

TEST_P(BytesOfEverySystem, are_the_closed_form) {
    Case layer;
    layer.machine = small_gpus(kGpus);
    layer.model = small_model(kExperts, kTopK, kRow / 2);
    layer.tokens = kGpus * kTokens;
    const Placement placement = contiguous_placement(kExperts, kGpus);
    if (!layer.allowed(GetParam(), placement)) GTEST_SKIP() << "not on four GPUs";
    ASSERT_TRUE(kFormulas.contains(GetParam())) << "every system has one";
    for (const std::string routed : {"uniform", "zipf:1.5"}) {
        const Routing routing = make_routing(parse_routing(routed), layer.model, layer.tokens);
        Wires wires;
        kFormulas.at(GetParam())(Chosen(routing), wires);
        for (const Grain grain : {Grain::packet, Grain::row}) {
            layer.options.grain = grain;
            SystemSpec system = load_system(GetParam());
            system = with_software(system, {.host = {}, .fused_activation = {}, .fp8 = false});
            const LayerResult result = simulate_layer(
                {layer.machine, layer.model, routing, placement}, system, layer.options);
            for (int gpu = 0; gpu < kGpus; ++gpu) {
                const std::string name = fmt::format("gpu {}", gpu);
                EXPECT_EQ(between(result, name, true), 16 * wires.up[gpu]) << name << " up";
                EXPECT_EQ(between(result, name, false), 16 * wires.down[gpu]) << name << " down";
            }
        }
    }
}

}  // namespace
}  // namespace moehub::testing::bytes_test
