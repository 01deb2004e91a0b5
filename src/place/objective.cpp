#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/place.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Term {
    const char* name;
    double Objective::*weight;
};
constexpr Term kTerms[] = {
    {"load", &Objective::load},
    {"gpus", &Objective::gpus},
    {"nodes", &Objective::nodes},
    {"transitions", &Objective::transitions},
    {"node-transitions", &Objective::node_transitions},
    {"pair", &Objective::pair},
    {"activated", &Objective::activated},
    {"moved", &Objective::moved},
};

double weight_of(std::string_view text) {
    double weight = 0;
    try {
        weight = parse_number(text);
    } catch (const InputError&) {
        weight = -1;
    }
    constexpr double kMost = 1e6;
    if (!(weight > 0 && weight <= kMost))
        throw input_error(
            "--objective: found the weight {}, allowed: a number above 0, at most 1e6, as in "
            "4*transitions",
            quoted(text));
    return weight;
}

const Term& term_of(std::string_view name) {
    std::vector<std::string> known;
    for (const Term& term : kTerms) {
        if (name == term.name) return term;
        known.emplace_back(term.name);
    }
    throw input_error(
        "--objective: found {}, allowed: {}, with + between and a weight before, as in "
        "gpus+4*transitions{}",
        quoted(name), fmt::join(known, ", "), did_you_mean(name, known));
}

void add_term(Objective& objective, std::string_view text) {
    double weight = 1;
    if (const auto star = text.find('*'); star != std::string_view::npos) {
        weight = weight_of(trimmed(text.substr(0, star)));
        text = text.substr(star + 1);
    }
    const Term& term = term_of(trimmed(text));
    if (objective.*term.weight > 0)
        throw input_error("--objective: found {} twice, allowed: once", term.name);
    objective.*term.weight = weight;
}

}  // namespace

Objective parse_objective(const std::string& text) {
    Objective objective;
    std::string_view rest = text;
    while (true) {
        // A plus within a number ("1e+3") is not a separator.
        std::size_t plus = rest.find('+');
        while (plus != std::string_view::npos && plus > 1 && plus + 1 < rest.size() &&
               (rest[plus - 1] == 'e' || rest[plus - 1] == 'E') && rest[plus - 2] >= '0' &&
               rest[plus - 2] <= '9')
            plus = rest.find('+', plus + 1);
        add_term(objective, trimmed(rest.substr(0, plus)));
        if (plus == std::string_view::npos) return objective;
        rest = rest.substr(plus + 1);
    }
}

std::string to_string(const Objective& objective) {
    std::string text;
    for (const Term& term : kTerms) {
        const double weight = objective.*term.weight;
        if (weight <= 0) continue;
        if (!text.empty()) text += '+';
        text += weight == 1 ? term.name : fmt::format("{}*{}", print_number(weight), term.name);
    }
    return text;
}

double value_of(const Objective& objective, const Evaluation& evaluation, std::int64_t slots) {
    return objective.load * evaluation.load_max_over_mean +
           objective.gpus * evaluation.gpus_per_token +
           objective.nodes * evaluation.nodes_per_token +
           objective.transitions * evaluation.off_gpu_transitions +
           objective.node_transitions * evaluation.off_node_transitions +
           objective.pair * evaluation.heaviest_pair +
           objective.activated * evaluation.activated_max_over_mean +
           objective.moved * static_cast<double>(evaluation.moved_experts) /
               static_cast<double>(slots);
}

}  // namespace moehub
