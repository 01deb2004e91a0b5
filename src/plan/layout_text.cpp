/// Parallel layouts as text, both ways.
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>
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

struct NamedRecompute {
    const char* name;
    bool Recompute::*member;
};
constexpr std::array kRecomputes{NamedRecompute{"norms", &Recompute::norms},
                                 NamedRecompute{"activations", &Recompute::activations},
                                 NamedRecompute{"attention", &Recompute::attention},
                                 NamedRecompute{"latents", &Recompute::latents},
                                 NamedRecompute{"experts", &Recompute::experts},
                                 NamedRecompute{"full", &Recompute::all}};

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
    throw InputError(fmt::format("parallel layout: {} is {}, allowed: {}", key,
                                 quoted(std::string(value)), fmt::join(allowed, ", ")));
}

int degree_of(std::string_view key, const std::string& value) {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < 1 ||
        number > 1'000'000)
        throw InputError(fmt::format("parallel layout: {} is {}, allowed: whole numbers from 1",
                                     key, quoted(value)));
    return number;
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

Recompute recompute_of(const std::string& value, const Recompute& selective) {
    if (value == "none") return {};
    if (value == "selective") return selective;
    Recompute recompute;
    for (const std::string& part : split(value, '+')) {
        bool known = false;
        for (const NamedRecompute& one : kRecomputes)
            if (part == one.name) known = recompute.*one.member = true;
        if (!known || (recompute.all && recompute != Recompute{.all = true}))
            refuse("recompute", value,
                   {"none", "selective", "full",
                    "or of norms, activations, attention, latents, "
                    "experts several joined by +"});
    }
    return recompute;
}

Offload offload_of(const std::string& value) {
    if (value == "none") return {};
    Offload offload;
    for (const std::string& part : split(value, '+')) {
        if (part == "optimizer")
            offload.optimizer = true;
        else if (part == "activations")
            offload.activations = true;
        else
            refuse("offload", value, {"none", "optimizer", "activations", "optimizer+activations"});
    }
    return offload;
}

template <class Value>
void choose(std::optional<Value>& member, const std::string& key, Value value) {
    if (member) throw InputError(fmt::format("parallel layout: {} is found twice", quoted(key)));
    member = std::move(value);
}

void set(PartialLayout& layout, const std::string& key, const std::string& value) {
    for (const NamedDegree& degree : kDegrees)
        if (key == degree.name) return choose(layout.*degree.chosen, key, degree_of(key, value));
    if (key == "sharding")
        choose(layout.sharding, key, named(key, value, kShardings));
    else if (key == "overlap")
        choose(layout.overlap, key, named(key, value, kOverlaps));
    else if (key == "recompute")
        choose(layout.recompute, key, recompute_of(value, selective_recompute()));
    else if (key == "offload")
        choose(layout.offload, key, offload_of(value));
    else if (key == "system")
        choose(layout.system, key, value);
    else
        throw InputError(fmt::format("parallel layout: unknown key {}{}, allowed: {}", quoted(key),
                                     did_you_mean(key, parallel_keys()),
                                     fmt::join(parallel_keys(), ", ")));
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

/// What differs from the default.
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
    if (recompute == Recompute{}) return "none";
    if (recompute == selective_recompute()) return "selective";
    if (recompute.all) return "full";
    std::vector<std::string> parts;
    for (const NamedRecompute& one : kRecomputes)
        if (recompute.*one.member) parts.emplace_back(one.name);
    return fmt::format("{}", fmt::join(parts, "+"));
}

std::string name_of(const Offload& offload) {
    if (offload.optimizer) return offload.activations ? "optimizer+activations" : "optimizer";
    return offload.activations ? "activations" : "none";
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
            throw InputError(
                fmt::format("parallel layout: {} is not KEY=VALUE, as in tp=8,pp=4", quoted(part)));
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
