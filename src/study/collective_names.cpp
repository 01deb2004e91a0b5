#include "study/collective_names.hpp"

#include <array>
#include <utility>

namespace moehub {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;
using Element = Collective::Element;

constexpr Names<Op, 4> kOps{{{Op::all_to_all, "all_to_all"},
                             {Op::all_gather, "all_gather"},
                             {Op::reduce_scatter, "reduce_scatter"},
                             {Op::all_reduce, "all_reduce"}}};
constexpr Names<Algorithm, 7> kAlgorithms{{{Algorithm::direct, "direct"},
                                           {Algorithm::ring, "ring"},
                                           {Algorithm::nvls, "nvls"},
                                           {Algorithm::automatic, "auto"},
                                           {Algorithm::one_shot, "one-shot"},
                                           {Algorithm::nvls_tree, "nvls-tree"},
                                           {Algorithm::collnet, "collnet"}}};
constexpr Names<Element, 2> kElements{{{Element::half, "half"}, {Element::int8, "int8"}}};
constexpr Names<Grain, 2> kGrains{{{Grain::packet, "packet"}, {Grain::row, "row"}}};

template <class Enum, std::size_t N>
std::string_view name_in(const Names<Enum, N>& names, Enum value) {
    for (const auto& [candidate, name] : names)
        if (candidate == value) return name;
    return "?";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_in(const Names<Enum, N>& names, std::string_view wanted) {
    for (const auto& [value, name] : names)
        if (name == wanted) return value;
    return std::nullopt;
}

template <class Enum, std::size_t N>
std::vector<std::string_view> all_of(const Names<Enum, N>& names) {
    std::vector<std::string_view> all;
    for (const auto& entry : names) all.push_back(entry.second);
    return all;
}

}  // namespace

std::string_view name_of(Op op) {
    return name_in(kOps, op);
}
std::string_view name_of(Algorithm algorithm) {
    return name_in(kAlgorithms, algorithm);
}
std::string_view name_of(Element element) {
    return name_in(kElements, element);
}
std::string_view name_of(Grain grain) {
    return name_in(kGrains, grain);
}

std::optional<Op> op_named(std::string_view name) {
    return value_in(kOps, name);
}
std::optional<Algorithm> algorithm_named(std::string_view name) {
    return value_in(kAlgorithms, name);
}
std::optional<Element> element_named(std::string_view name) {
    return value_in(kElements, name);
}

std::vector<std::string_view> op_names() {
    return all_of(kOps);
}
std::vector<std::string_view> algorithm_names() {
    return all_of(kAlgorithms);
}
std::vector<std::string_view> element_names() {
    return all_of(kElements);
}

}  // namespace moehub
