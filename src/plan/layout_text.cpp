/// Parallel layouts as text, both ways.
#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/training.hpp>

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::array kShardings{Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::fsdp};
constexpr std::array kOverlaps{PassOverlap::none, PassOverlap::one_f_one_b, PassOverlap::dualpipe};

struct NamedDegree {
    const char* name;
    int ParallelLayout::*member;
    std::optional<int> PartialLayout::*chosen;
};
constexpr std::array kDegrees{
    NamedDegree{"tp", &ParallelLayout::tp, &PartialLayout::tp},
    NamedDegree{"cp", &ParallelLayout::cp, &PartialLayout::cp},
    NamedDegree{"pp", &ParallelLayout::pp, &PartialLayout::pp},
    NamedDegree{"vpp", &ParallelLayout::vpp, &PartialLayout::vpp},
    NamedDegree{"ep", &ParallelLayout::ep, &PartialLayout::ep},
    NamedDegree{"etp", &ParallelLayout::etp, &PartialLayout::etp},
    NamedDegree{"mb", &ParallelLayout::micro_batch, &PartialLayout::micro_batch}};

template <class Flags>
struct NamedFlag {
    const char* name;
    bool Flags::*member;
};
constexpr std::array<NamedFlag<Recompute>, 6> kRecomputes{{{"norms", &Recompute::norms},
                                                           {"activations", &Recompute::activations},
                                                           {"attention", &Recompute::attention},
                                                           {"latents", &Recompute::latents},
                                                           {"experts", &Recompute::experts},
                                                           {"full", &Recompute::all}}};
constexpr std::array<NamedFlag<Offload>, 2> kOffloads{
    {{"optimizer", &Offload::optimizer}, {"activations", &Offload::activations}}};

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

[[noreturn]] void refuse(std::string_view key, std::string_view value,
                         const std::vector<std::string>& allowed) {
    throw input_error("parallel layout: {} is {}, allowed: {}", key, quoted(std::string(value)),
                      fmt::join(allowed, ", "));
}

/// Flags joined by "+"; none where one is unknown.
template <class Flags, class Names>
std::optional<Flags> flags_of(const std::string& value, const Names& names) {
    Flags flags;
    for (const std::string& part : split(value, '+')) {
        const auto found = std::ranges::find(names, part, &NamedFlag<Flags>::name);
        if (found == names.end()) return {};
        flags.*found->member = true;
    }
    return flags;
}

template <class Flags, class Names>
std::string joined(const Flags& flags, const Names& names) {
    std::vector<std::string> parts;
    for (const auto& one : names)
        if (flags.*one.member) parts.emplace_back(one.name);
    return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, "+"));
}

void read(int& degree, std::string_view key, const std::string& value) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), degree);
    if (error != std::errc{} || end != value.data() + value.size() || degree < 1 ||
        degree > 1'000'000)
        throw input_error("parallel layout: {} is {}, allowed: whole numbers from 1", key,
                          quoted(value));
}

template <class Values>
auto named(std::string_view key, const std::string& value, const Values& values) {
    std::vector<std::string> names;
    for (const auto one : values) {
        if (name_of(one) == value) return one;
        names.emplace_back(name_of(one));
    }
    refuse(key, value, names);
}

void read(Sharding& sharding, std::string_view key, const std::string& value) {
    sharding = named(key, value, kShardings);
}
void read(PassOverlap& overlap, std::string_view key, const std::string& value) {
    overlap = named(key, value, kOverlaps);
}

void read(Recompute& recompute, std::string_view key, const std::string& value) {
    if (value == "none") return;
    const auto flags =
        value == "selective" ? selective_recompute() : flags_of<Recompute>(value, kRecomputes);
    if (!flags || (flags->all && *flags != Recompute{.all = true}))
        refuse(key, value,
               {"none", "selective", "full",
                "or of norms, activations, attention, latents, experts several joined by +"});
    recompute = *flags;
}

void read(Offload& offload, std::string_view key, const std::string& value) {
    if (value == "none") return;
    const auto flags = flags_of<Offload>(value, kOffloads);
    if (!flags) refuse(key, value, {"none", "optimizer", "activations", "optimizer+activations"});
    offload = *flags;
}

void read(std::string& system, std::string_view, const std::string& value) {
    system = value;
}

/// Calls visit(key, member, chosen member) for each, in the order of parallel_keys().
template <class Visit>
void each_key(Visit visit) {
    using All = ParallelLayout;
    using Part = PartialLayout;
    for (const NamedDegree& one : kDegrees) visit(one.name, one.member, one.chosen);
    visit("sharding", &All::sharding, &Part::sharding);
    visit("recompute", &All::recompute, &Part::recompute);
    visit("offload", &All::offload, &Part::offload);
    visit("overlap", &All::overlap, &Part::overlap);
    visit("system", &All::system, &Part::system);
}

int name_of(int degree) {
    return degree;
}
const std::string& name_of(const std::string& system) {
    return system;
}

void set(PartialLayout& layout, const std::string& key, const std::string& value) {
    bool known = false;
    each_key([&](const char* name, auto member, auto chosen) {
        if (key != name) return;
        known = true;
        auto found = ParallelLayout{}.*member;
        read(found, key, value);
        if (layout.*chosen) throw input_error("parallel layout: {} is found twice", quoted(key));
        layout.*chosen = std::move(found);
    });
    if (!known)
        throw input_error("parallel layout: unknown key {}{}, allowed: {}", quoted(key),
                          did_you_mean(key, parallel_keys()), fmt::join(parallel_keys(), ", "));
}

/// The values that differ from the default.
PartialLayout told_of(const ParallelLayout& layout) {
    const ParallelLayout usual;
    PartialLayout told;
    each_key([&](const char*, auto member, auto chosen) {
        if (layout.*member != usual.*member) told.*chosen = layout.*member;
    });
    return told;
}

}  // namespace

Recompute selective_recompute() {
    Recompute recompute;
    recompute.norms = recompute.activations = recompute.latents = true;
    return recompute;
}

std::string_view name_of(Sharding sharding) {
    constexpr std::array names{"none", "zero1", "zero2", "fsdp"};
    return names[static_cast<std::size_t>(sharding)];
}

std::string_view name_of(PassOverlap overlap) {
    constexpr std::array names{"none", "1f1b", "dualpipe"};
    return names[static_cast<std::size_t>(overlap)];
}

std::string name_of(const Recompute& recompute) {
    if (recompute == selective_recompute()) return "selective";
    return recompute.all ? "full" : joined(recompute, kRecomputes);
}

std::string name_of(const Offload& offload) {
    return joined(offload, kOffloads);
}

std::string to_text(const ParallelLayout& layout) {
    const std::string text = to_text(told_of(layout));
    return text.empty() ? "tp=1" : text;
}

std::string to_text(const PartialLayout& layout) {
    std::vector<std::string> parts;
    each_key([&](const char* key, auto, auto chosen) {
        if (const auto& value = layout.*chosen)
            parts.push_back(fmt::format("{}={}", key, name_of(*value)));
    });
    return fmt::format("{}", fmt::join(parts, ","));
}

ParallelLayout completed(const PartialLayout& layout, ParallelLayout start) {
    each_key([&](const char*, auto member, auto chosen) {
        start.*member = (layout.*chosen).value_or(start.*member);
    });
    return start;
}

PartialLayout parse_partial_layout(std::string_view text, PartialLayout chosen) {
    for (const std::string& part : split(text, ',')) {
        const auto equals = part.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
            throw input_error("parallel layout: {} is not KEY=VALUE, as in tp=8,pp=4",
                              quoted(part));
        set(chosen, part.substr(0, equals), part.substr(equals + 1));
    }
    return chosen;
}

ParallelLayout parse_parallel_layout(std::string_view text, ParallelLayout start) {
    return completed(parse_partial_layout(text), std::move(start));
}

std::vector<std::string> parallel_keys() {
    std::vector<std::string> all;
    each_key([&all](const char* key, auto, auto) { all.emplace_back(key); });
    return all;
}

}  // namespace moehub
