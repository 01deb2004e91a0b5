// Routings: generated, read, or an array's own memory.
#include "bindings.hpp"
#include "model/routing_limits.hpp"

#include <moehub/error.hpp>

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub::python {
namespace {

/// Models have no more.
constexpr int kMostLayers = 1000;

using Ids = py::array_t<std::uint16_t, py::array::c_style>;
using AnyIds = py::array_t<std::uint16_t, py::array::c_style | py::array::forcecast>;
using Weights = py::array_t<float, py::array::c_style | py::array::forcecast>;

/// Keeps an array, whichever thread drops the last copy of a routing.
std::shared_ptr<const void> keeper_of(const py::array& array) {
    return {array.inc_ref().ptr(), [](const void* kept) {
                const py::gil_scoped_acquire lock;
                py::handle(static_cast<PyObject*>(const_cast<void*>(kept))).dec_ref();
            }};
}

/// Nobody can change it through this array any more.
void lock(const py::array& array) {
    array.attr("setflags")(py::arg("write") = false);
}

std::string shape_of(const py::array& array) {
    const std::vector<py::ssize_t> shape(array.shape(), array.shape() + array.ndim());
    return fmt::format("({})", fmt::join(shape, ", "));
}

/// As uint16 in C order: the array itself where it is that already. Ids that would wrap around are
/// refused before.
Ids ids_of(const py::array& array, int experts) {
    if (Ids::check_(array)) return py::reinterpret_borrow<Ids>(array);
    const char kind = array.dtype().kind();
    if (kind != 'i' && kind != 'u')
        throw InputError(fmt::format("routing: found an array of {}, allowed: whole numbers",
                                     std::string(py::str(array.dtype()))));
    if (array.size() > 0) {
        const auto least = py::float_(array.attr("min")()).cast<double>();
        const auto most = py::float_(array.attr("max")()).cast<double>();
        if (least < 0 || most >= experts)
            throw InputError(fmt::format("routing: found expert {:.0f}, allowed: 0 to {}",
                                         least < 0 ? least : most, experts - 1));
    }
    return py::reinterpret_borrow<Ids>(AnyIds(array));
}

/// [layers, tokens, top_k] or [tokens, top_k].
Routing sized(const py::array& array, int experts) {
    const auto dimensions = array.ndim();
    const bool one = dimensions == 2;
    if (dimensions != 2 && dimensions != 3)
        throw InputError(
            fmt::format("routing: found shape {}, allowed: (layers, tokens, top_k) or (tokens, "
                        "top_k)",
                        shape_of(array)));
    constexpr py::ssize_t kMost = 1 << 24;
    for (py::ssize_t i = 0; i < dimensions; ++i)
        if (array.shape(i) < 1 || array.shape(i) > kMost)
            throw InputError(fmt::format("routing: found shape {}, allowed: 1 to {} of each",
                                         shape_of(array), kMost));
    Routing routing;
    routing.experts = experts;
    routing.layers = one ? 1 : static_cast<int>(array.shape(0));
    routing.tokens = array.shape(one ? 0 : 1);
    routing.top_k = static_cast<int>(array.shape(one ? 1 : 2));
    check_rows("routing", routing.tokens, routing.layers, routing.top_k);
    return routing;
}

Weights weights_of(const py::object& weights, const Ids& chosen) {
    auto array = Weights::ensure(weights);
    if (!array) throw InputError("routing: weights: found no numbers, allowed: an array of them");
    if (shape_of(array) != shape_of(chosen))
        throw InputError(fmt::format("routing: weights: found shape {}, allowed: {}, as chosen",
                                     shape_of(array), shape_of(chosen)));
    return array;
}

template <class Array>
auto shared(const Array& array) {
    using Value = typename Array::value_type;
    return SharedArray<Value>{std::span(array.data(), static_cast<std::size_t>(array.size())),
                              keeper_of(array)};
}

using Made = Loaded<NamedRouting>;

std::shared_ptr<Made> made_of(Routing routing, const std::string& name,
                              std::optional<std::uint64_t> seed) {
    return std::make_shared<Made>(Made{{std::move(routing), seed}, name});
}

std::shared_ptr<Made> from_array(const py::array& array, int experts, const py::object& weights,
                                 const std::string& name) {
    Routing routing = sized(array, experts);
    const Ids chosen = ids_of(array, experts);
    routing.chosen = shared(chosen);
    Weights weighted;
    if (weights.is_none())
        routing.weights = std::vector<float>(static_cast<std::size_t>(chosen.size()),
                                             1.0f / static_cast<float>(routing.top_k));
    else
        routing.weights = shared(weighted = weights_of(weights, chosen));
    {
        const py::gil_scoped_release unlocked;
        check(routing);
    }
    // Not before: what is refused stays its caller's to write to.
    lock(chosen);
    lock(weighted);
    return made_of(std::move(routing), name, {});
}

int experts_in(const py::object& experts) {
    return static_cast<int>(count_in("experts", experts, {1, kMostExperts}));
}

std::shared_ptr<Made> generated(const std::string& text, const Loaded<Model>& model,
                                const py::object& wanted_tokens, const py::object& wanted_layers,
                                const py::object& wanted_seed) {
    const std::int64_t tokens = count_in("tokens", wanted_tokens, {1, kMostTokens});
    const auto layers = static_cast<int>(count_in("layers", wanted_layers, {1, kMostLayers}));
    constexpr auto kMostSeed = std::numeric_limits<std::int64_t>::max();
    const std::int64_t seed = count_in("seed", wanted_seed, {0, kMostSeed});
    const py::gil_scoped_release unlocked;
    RoutingSpec spec = parse_routing(text);
    spec.seed = static_cast<std::uint64_t>(seed);
    return made_of(make_routing(spec, model.value, tokens, layers), to_string(spec), spec.seed);
}

/// Read-only, in the routing's own memory.
template <class Value>
py::array view(const SharedArray<Value>& values, const Routing& routing) {
    const py::capsule owner(new SharedArray<Value>(values),
                            [](void* kept) { delete static_cast<SharedArray<Value>*>(kept); });
    py::array_t<Value> array(
        {static_cast<py::ssize_t>(routing.layers), static_cast<py::ssize_t>(routing.tokens),
         static_cast<py::ssize_t>(routing.top_k)},
        values.data(), owner);
    lock(array);
    return array;
}

}  // namespace

void bind_routing(py::module_& module) {
    const auto of = [](auto Routing::*member) {
        return [member](const Made& self) { return self.value.value.*member; };
    };
    const auto array = [](auto Routing::*member) {
        return
            [member](const Made& self) { return view(self.value.value.*member, self.value.value); };
    };
    py::class_<Made, std::shared_ptr<Made>> bound(
        module, "Routing",
        "For every layer and token its experts and their weights; made by moehub.routing().");
    bound
        .def_property_readonly("chosen", array(&Routing::chosen),
                               "Experts, uint16 [layers, tokens, top_k]; read-only, not a copy.")
        .def_property_readonly("weights", array(&Routing::weights),
                               "Their weights, float32, as chosen; read-only, not a copy.")
        .def_property_readonly("experts", of(&Routing::experts), "How many experts there are.")
        .def_property_readonly("top_k", of(&Routing::top_k), "Experts of a token.")
        .def_property_readonly("layers", of(&Routing::layers), "MoE layers.")
        .def_property_readonly("tokens", of(&Routing::tokens), "Tokens in total.")
        .def_readonly("name", &Made::name, "What results call it.")
        .def_property_readonly(
            "seed", [](const Made& self) { return self.value.seed; },
            "Of a generated one; else None.");
    bound.def("__repr__", [](const Made& self) {
        const Routing& routing = self.value.value;
        return fmt::format("<moehub.Routing {}: {} layers, {} tokens, top-{} of {}>", self.name,
                           routing.layers, routing.tokens, routing.top_k, routing.experts);
    });
    bound.def(py::pickle(
        [](const Made& self) {
            const Routing& routing = self.value.value;
            return py::make_tuple(view(routing.chosen, routing), view(routing.weights, routing),
                                  routing.experts, self.name, self.value.seed);
        },
        [](const py::tuple& state) {
            const auto made =
                from_array(state[0], state[2].cast<int>(), state[1], state[3].cast<std::string>());
            made->value.seed = state[4].cast<std::optional<std::uint64_t>>();
            return made;
        }));
    module.def(
        "routing_from_array",
        [](const py::array& chosen, const py::object& experts, const py::object& weights,
           const py::object& name) {
            return from_array(chosen, experts_in(experts), weights, name_in("name", name));
        },
        "A routing in the array's own memory where it is uint16 and in C order.");
    module.def("generate_routing", &generated, "Drawn as the text says.");
    module.def(
        "read_routing",
        [](const std::string& file, const py::object& count) {
            const int experts = experts_in(count);
            const py::gil_scoped_release unlocked;
            return made_of(read_routing(file, experts), file, {});
        },
        "From an .npy file, [tokens, layers, top_k].");
}

}  // namespace moehub::python
