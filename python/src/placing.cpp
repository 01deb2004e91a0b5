// Experts placed on GPUs from recorded routing.
#include "bindings.hpp"
#include "report/document.hpp"
#include "request/place_answer.hpp"

#include <chrono>
#include <future>
#include <numeric>

namespace moehub::python {
namespace {

/// What tokens chose, as recorded routing that a search reads.
Profile profile_of(const NamedRouting& routing, int dense_layers) {
    const Routing& from = routing.value;
    Profile profile;
    profile.name = routing.name;
    profile.layers = from.layers;
    profile.experts = from.experts;
    profile.top_k = from.top_k;
    profile.tokens = from.tokens;
    profile.chosen = from.chosen.copy();
    profile.layer_numbers.resize(static_cast<std::size_t>(from.layers));
    std::iota(profile.layer_numbers.begin(), profile.layer_numbers.end(), dense_layers);
    profile.model_layers = dense_layers + from.layers;
    count_choices(profile);
    return profile;
}

/// Routings among the texts of a keyword are profiles; the texts stay.
std::vector<Profile> take_profiles(py::dict& keywords, const char* name, int dense_layers) {
    std::vector<Profile> profiles;
    if (!keywords.contains(name)) return profiles;
    py::list texts;
    for (const py::handle& one : keywords[name].cast<py::list>())
        if (py::isinstance<NamedRouting>(one))
            profiles.push_back(profile_of(one.cast<const NamedRouting&>(), dense_layers));
        else
            texts.append(one);
    keywords[name] = texts;
    return profiles;
}

/// Runs the work beside this thread, which looks for Ctrl-C: the work is asked to stop, and what
/// the signal raises is raised.
template <class Work>
auto interruptible(const Work& work) {
    constexpr auto kLook = std::chrono::milliseconds(50);
    std::stop_source source;
    auto result = std::async(std::launch::async, [&] { return work(source.get_token()); });
    bool raised = false;
    for (;;) {
        {
            const py::gil_scoped_release unlocked;
            if (result.wait_for(raised ? std::chrono::hours(1) : kLook) ==
                std::future_status::ready)
                break;
        }
        if (!raised && PyErr_CheckSignals() != 0) {
            raised = true;
            source.request_stop();
        }
    }
    if (raised) throw py::error_already_set();
    return result.get();
}

struct Answer {
    Json json;
    ExpertLayout layout;
};

Answer answer_of(const PlaceArguments& arguments, const std::stop_token& stop) {
    PlaceTask task = load_place(arguments);
    Placed placed = search_layout(task, arguments.pareto, {stop, {}});
    if (!task.systems.empty() && !stop.stop_requested()) take_fastest(task, placed);
    note_layers_in_order(task, placed);
    return {document("place", placement_json(report_of(arguments, task, placed))),
            placed.result.layout};
}

/// The document, and the layout.
py::tuple place_experts(py::dict keywords, int dense_layers) {
    PlaceArguments arguments;
    arguments.profiles.given = take_profiles(keywords, "profile", dense_layers);
    arguments.profiles.held_out = take_profiles(keywords, "evaluate", dense_layers);
    fill(place_options(arguments), keywords);
    arguments.json = true;
    Answer answer =
        interruptible([&](const std::stop_token& stop) { return answer_of(arguments, stop); });
    const std::string name = arguments.method;
    return py::make_tuple(to_python(answer.json),
                          Loaded<ExpertLayout>{std::move(answer.layout), name});
}

}  // namespace

void bind_placing(py::module_& module) {
    module.def("place", &place_experts, "A command's document, place, and the layout.");
}

}  // namespace moehub::python
