// Where experts stand, as arrays and as servers' files.
#include "bindings.hpp"
#include "model/routing_limits.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub::python {
namespace {

using Experts = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

[[noreturn]] void refuse_expert(std::int64_t found, char kind, int experts) {
    throw InputError(fmt::format(
        "layout: found expert {}, allowed: 0 to {}, or -1 for an empty slot",
        kind == 'u' ? std::to_string(static_cast<std::uint64_t>(found)) : std::to_string(found),
        experts - 1));
}

/// From [layers, gpus, slots] or [gpus, slots]; −1 is an empty slot.
std::shared_ptr<Loaded<ExpertLayout>> from_array(const py::array& array, const py::object& count,
                                                 const py::object& title) {
    const auto experts = static_cast<int>(count_in("experts", count, {1, kMostExperts}));
    const std::string name = name_in("name", title);
    const char kind = array.dtype().kind();
    if ((kind != 'i' && kind != 'u') || (array.ndim() != 2 && array.ndim() != 3))
        throw InputError(fmt::format(
            "layout: found {} of {} dimensions, allowed: whole numbers, [layers, gpus, slots] or "
            "[gpus, slots]",
            std::string(py::str(array.dtype())), array.ndim()));
    const bool one = array.ndim() == 2;
    const auto layers = one ? 1 : array.shape(0);
    const auto gpus = array.shape(one ? 0 : 1);
    const auto slots = array.shape(one ? 1 : 2);
    constexpr std::int64_t kMost = 1 << 24;
    if (array.size() < 1 || array.size() > kMost)
        throw InputError(
            fmt::format("layout: found {} layers of {} GPUs with {} slots, allowed: 1 to {} slots "
                        "in all",
                        layers, gpus, slots, kMost));
    const Experts values = Experts::ensure(array);
    const std::int64_t least = kind == 'u' ? 0 : -1;  // large unsigned ones wrap around
    ExpertLayout layout = empty_layout({static_cast<int>(layers), experts}, static_cast<int>(gpus));
    const std::int64_t* next = values.data();
    for (auto& layer : layout.on)
        for (auto& gpu : layer)
            for (py::ssize_t slot = 0; slot < slots; ++slot, ++next) {
                if (*next < least || *next >= experts) refuse_expert(*next, kind, experts);
                if (*next >= 0) gpu.push_back(static_cast<int>(*next));
            }
    check(layout, name);
    return std::make_shared<Loaded<ExpertLayout>>(Loaded<ExpertLayout>{std::move(layout), name});
}

/// As from_array() takes it.
py::array array_of(const Loaded<ExpertLayout>& self) {
    const ExpertLayout& layout = self.value;
    std::size_t slots = 0;
    for (const auto& layer : layout.on)
        for (const auto& gpu : layer) slots = std::max(slots, gpu.size());
    std::vector<std::int32_t> values;
    for (const auto& layer : layout.on)
        for (const auto& gpu : layer) {
            values.insert(values.end(), gpu.begin(), gpu.end());
            values.insert(values.end(), slots - gpu.size(), -1);
        }
    return to_array(std::move(values),
                    {layout.layers(), layout.gpus, static_cast<py::ssize_t>(slots)});
}

}  // namespace

void bind_layouts(py::module_& module) {
    using Layout = Loaded<ExpertLayout>;
    py::class_<Layout, std::shared_ptr<Layout>>(
        module, "Layout",
        "Which GPU holds which experts, for every MoE layer; made by "
        "moehub.layout() or found by moehub.place().")
        .def_property_readonly(
            "experts_on", &array_of,
            "Experts on each GPU, int32 [layers, gpus, slots]; -1 is an empty slot.")
        .def_property_readonly(
            "gpus", [](const Layout& self) { return self.value.gpus; }, "How many GPUs.")
        .def_property_readonly(
            "experts", [](const Layout& self) { return self.value.experts; },
            "How many experts a layer has.")
        .def_property_readonly(
            "layers", [](const Layout& self) { return self.value.layers(); }, "MoE layers.")
        .def_property_readonly(
            "layer_numbers", [](const Layout& self) { return self.value.layer_numbers; },
            "The model's numbers of these layers.")
        .def_readonly("name", &Layout::name, "What results call it.")
        .def(
            "to_text",
            [](const Layout& self, const std::string& format) {
                return layout_text(self.value, parse_layout_format(format));
            },
            py::arg("format") = "sglang",
            "The file that a server loads: sglang, vllm, vllm-ascend, trtllm, csv or json.")
        .def(py::pickle(
            [](const Layout& self) {
                const ExpertLayout& layout = self.value;
                return py::make_tuple(layout.gpus, layout.experts, layout.on, layout.layer_numbers,
                                      layout.model_layers, self.name);
            },
            [](const py::tuple& state) {
                return std::make_shared<Layout>(
                    Layout{ExpertLayout{state[0].cast<int>(), state[1].cast<int>(),
                                        state[2].cast<std::vector<std::vector<std::vector<int>>>>(),
                                        state[3].cast<std::vector<int>>(), state[4].cast<int>()},
                           state[5].cast<std::string>()});
            }))
        .def("__eq__",
             [](const Layout& self, const Layout& other) { return self.value == other.value; })
        .def("__repr__", [](const Layout& self) {
            return fmt::format("<moehub.Layout {}: {} layers of {} experts on {} GPUs>", self.name,
                               self.value.layers(), self.value.experts, self.value.gpus);
        });
    module.def("layout_from_array", &from_array, "A layout from an array of experts by slots.");
}

}  // namespace moehub::python
