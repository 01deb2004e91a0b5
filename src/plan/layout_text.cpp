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
};
constexpr std::array kDegrees{
    NamedDegree{"tp", &ParallelLayout::tp},         NamedDegree{"cp", &ParallelLayout::cp},
    NamedDegree{"pp", &ParallelLayout::pp},         NamedDegree{"vpp", &ParallelLayout::vpp},
    NamedDegree{"ep", &ParallelLayout::ep},         NamedDegree{"etp", &ParallelLayout::etp},
    NamedDegree{"mb", &ParallelLayout::micro_batch}};

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

std::vector<std::string> keys() {
    std::vector<std::string> all;
    for (const NamedDegree& degree : kDegrees) all.emplace_back(degree.name);
    for (const char* name : {"sharding", "recompute", "offload", "overlap", "system"})
        all.emplace_back(name);
    return all;
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

void set(ParallelLayout& layout, const std::string& key, const std::string& value) {
    for (const NamedDegree& degree : kDegrees)
        if (key == degree.name) {
            layout.*degree.member = degree_of(key, value);
            return;
        }
    if (key == "sharding")
        layout.sharding = named(key, value, kShardings);
    else if (key == "overlap")
        layout.overlap = named(key, value, kOverlaps);
    else if (key == "recompute")
        layout.recompute = recompute_of(value, selective_recompute());
    else if (key == "offload")
        layout.offload = offload_of(value);
    else if (key == "system")
        layout.system = value;
    else
        throw InputError(fmt::format("parallel layout: unknown key {}{}, allowed: {}", quoted(key),
                                     did_you_mean(key, keys()), fmt::join(keys(), ", ")));
}

std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& part : split(text, ',')) {
        const auto equals = part.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
            throw InputError(
                fmt::format("parallel layout: {} is not KEY=VALUE, as in tp=8,pp=4", quoted(part)));
        std::string key = part.substr(0, equals);
        for (const auto& [other, value] : pairs)
            if (other == key)
                throw InputError(fmt::format("parallel layout: {} is found twice", quoted(key)));
        pairs.emplace_back(std::move(key), part.substr(equals + 1));
    }
    return pairs;
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
    std::vector<std::string> parts;
    for (const NamedDegree& degree : kDegrees)
        if (layout.*degree.member > 1)
            parts.push_back(fmt::format("{}={}", degree.name, layout.*degree.member));
    if (layout.sharding != Sharding::zero1)
        parts.push_back(fmt::format("sharding={}", name_of(layout.sharding)));
    if (layout.recompute != Recompute{})
        parts.push_back(fmt::format("recompute={}", name_of(layout.recompute)));
    if (layout.offload != Offload{})
        parts.push_back(fmt::format("offload={}", name_of(layout.offload)));
    if (layout.overlap != PassOverlap::none)
        parts.push_back(fmt::format("overlap={}", name_of(layout.overlap)));
    if (!layout.system.empty()) parts.push_back(fmt::format("system={}", layout.system));
    return parts.empty() ? "tp=1" : fmt::format("{}", fmt::join(parts, ","));
}

ParallelLayout parse_parallel_layout(std::string_view text, ParallelLayout start) {
    for (const auto& [key, value] : pairs_of(text)) set(start, key, value);
    return start;
}

std::vector<std::string> parallel_keys_of(std::string_view text) {
    std::vector<std::string> found;
    for (auto& [key, value] : pairs_of(text)) found.push_back(std::move(key));
    return found;
}

}  // namespace moehub
