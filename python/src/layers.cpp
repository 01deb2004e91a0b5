// A simulated layer: numbers as a dict, what has many as arrays.
#include "bindings.hpp"

#include <moehub/layer.hpp>

#include <cmath>

#include <fmt/format.h>

namespace moehub::python {
namespace {

/// An array in the result's own memory; the result lives as long as it does.
template <class Value>
py::array view(const std::vector<Value>& values, const py::object& owner,
               std::vector<py::ssize_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<py::ssize_t>(values.size())};
    py::array_t<Value> array(std::move(shape), values.data(), owner);
    array.attr("setflags")(py::arg("write") = false);
    return array;
}

const LayerResult& result_of(const py::object& self) {
    return *self.cast<const SimulatedLayer&>().result;
}

py::list links_of(const py::object& self) {
    py::list made;
    for (const LinkUse& link : result_of(self).links) {
        made.append(py::dict(py::arg("from") = link.from, py::arg("to") = link.to,
                             py::arg("bytes") = link.bytes, py::arg("busy_ps") = link.busy,
                             py::arg("bin_ps") = link.bin,
                             py::arg("bins") = view(link.bins, self)));
    }
    return made;
}

py::list series_of(const std::vector<TimeSeries>& all, const py::object& self) {
    py::list made;
    for (const TimeSeries& one : all) {
        made.append(py::dict(py::arg("where") = one.where, py::arg("name") = one.name,
                             py::arg("bin_ps") = one.bin,
                             py::arg("values") = view(one.values, self)));
    }
    return made;
}

/// Columns of a list of structs, an array each.
template <class Row>
py::dict columns(
    const std::vector<Row>& rows,
    const std::vector<std::pair<const char*, std::function<std::int64_t(const Row&)>>>& wanted) {
    py::dict made;
    for (const auto& [name, get] : wanted) {
        std::vector<std::int64_t> column;
        column.reserve(rows.size());
        for (const Row& row : rows) column.push_back(get(row));
        made[name] = to_array(std::move(column));
    }
    return made;
}

py::dict intervals_of(const py::object& self) {
    using Row = BusyInterval;
    return columns<Row>(
        result_of(self).intervals,
        {{"gpu", [](const Row& row) { return std::int64_t{row.gpu}; }},
         {"communication",
          [](const Row& row) { return std::int64_t{row.what == Row::What::communication}; }},
         {"begin_ps", [](const Row& row) { return row.begin; }},
         {"end_ps", [](const Row& row) { return row.end; }}});
}

py::dict spans_of(const Timeline& timeline) {
    using Row = KernelSpan;
    return columns<Row>(timeline.spans,
                        {{"gpu", [](const Row& row) { return std::int64_t{row.gpu}; }},
                         {"kernel", [](const Row& row) { return std::int64_t{row.kernel}; }},
                         {"begin_ps", [](const Row& row) { return row.begin; }},
                         {"end_ps", [](const Row& row) { return row.end; }}});
}

py::list rows_of(const Timeline& timeline) {
    py::list made;
    for (const RowPath& path : timeline.rows) {
        py::list steps;
        for (const RowStep& step : path.steps)
            steps.append(py::make_tuple(step.what, step.where, step.at));
        made.append(py::dict(py::arg("token") = path.token, py::arg("expert") = path.expert,
                             py::arg("from") = path.from, py::arg("to") = path.to,
                             py::arg("steps") = steps));
    }
    return made;
}

py::object timeline_of(const py::object& self) {
    const Timeline& timeline = result_of(self).timeline;
    if (timeline.kernels.empty() && timeline.sent.empty()) return py::none();
    py::dict made;
    made["kernels"] = timeline.kernels;
    made["spans"] = spans_of(timeline);
    made["sms"] = series_of(timeline.sms, self);
    made["units"] = series_of(timeline.units, self);
    made["rows"] = rows_of(timeline);
    made["every"] = timeline.every;
    return made;
}

py::object traffic_of(const py::object& self) {
    const auto& sent = result_of(self).timeline.sent;
    if (sent.empty()) return py::none();
    const auto gpus = static_cast<py::ssize_t>(std::lround(std::sqrt(sent.size())));
    return view(sent, self, {gpus, gpus});
}

}  // namespace

void bind_layers(py::module_& module) {
    using One = SimulatedLayer;
    py::class_<One>(module, "LayerResult",
                    "A simulated layer; made by moehub.simulate(), held by Result.simulated.")
        .def_property_readonly(
            "system", [](const One& self) { return self.result->system; }, "Name of the system.")
        .def_property_readonly(
            "time_us", [](const One& self) { return to_us(self.result->time); },
            "Until the last GPU has its tokens' outputs.")
        .def_property_readonly(
            "time_ps", [](const One& self) { return self.result->time; },
            "The same, in picoseconds.")
        .def(
            "to_dict", [](const One& self) { return self.row; },
            "Its numbers: a row of the answer's results.")
        .def_property_readonly("links", &links_of,
                               "Every direction of every link: bytes, and busy time by bins.")
        .def_property_readonly("intervals", &intervals_of,
                               "Stretches in which a GPU computed or communicated, by columns.")
        .def_property_readonly(
            "traffic", &traffic_of,
            "Payload from GPU to GPU, [gpus, gpus] in bytes; with timeline=True.")
        .def_property_readonly("timeline", &timeline_of,
                               "Kernels, units and rows over time; with timeline=True, else None.")
        .def("__repr__", [](const One& self) {
            return fmt::format("<moehub.LayerResult {}, {:.1f} us>", self.result->system,
                               to_us(self.result->time));
        });
}

}  // namespace moehub::python
