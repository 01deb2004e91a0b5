// Where a system's lead comes from: host, activation, overlap, or the hardware.
#include "answers/layer_answer.hpp"
#include "answers/question.hpp"

#include <moehub/gain.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Request {
    std::vector<Wanted<Model>> models{
        {"mixtral-8x7b"}, {"phi-3.5-moe"}, {"qwen2-moe-2.7b-moehub"}, {"deepseek-v3"}};
    Wanted<SystemSpec> system{"moe-hub"};
    Wanted<SystemSpec> baseline{"megatron-te"};
    LayerRequest layer;
};

Options options_of(Request& request) {
    Options options{
        {"--models", to(request.models), "names or TOML files with commas between"},
        {"--system", to(request.system), "whose lead is explained"},
        {"--over,--baseline", to(request.baseline), "over whom"},
    };
    LayerRequest& layer = request.layer;
    for (Option& one : machine_options(layer, "dgx-h800", ""))
        if (key_of(one) != "model") options.push_back(std::move(one));
    append(options, routing_options(layer));
    for (Option& one : layer_options(layer))
        if (key_of(one) == "grain") options.push_back(std::move(one));
    for (Option& one : software_options(layer))
        if (key_of(one) == "fp8") options.push_back(std::move(one));
    append(options, token_options(layer, "8192"));
    return options;
}

struct Case {
    LayerCase layer;
    Gain gain;
};

/// The system, the baseline, and today's software, each once.
std::vector<Wanted<SystemSpec>> systems_of(const Request& request) {
    std::vector<Wanted<SystemSpec>> systems{request.system, request.baseline};
    for (const std::string& name : todays_systems())
        if (std::none_of(systems.begin(), systems.end(),
                         [&](const auto& one) { return one.name == name; }))
            systems.push_back({name});
    return systems;
}

std::vector<Case> explain(const Request& request, const Asker& asker) {
    asker.require_one_point("--models", request.models.size());
    check_wanted({request.system, request.baseline}, check_systems);
    const std::vector<SystemSpec> systems =
        load_systems(systems_of(request), request.layer.settings, {});
    GainOptions options;
    options.todays.assign(systems.begin() + 1, systems.end());
    options.fp8 = request.layer.software.fp8.value_or(false);
    std::vector<Case> cases;
    for (const auto& model : request.models) {
        LayerRequest layer = request.layer;
        layer.model = model;
        cases.push_back({load_layer(layer), {}});
    }
    asker.loaded([&] {
        std::string inputs = inputs_of(systems);
        for (const Case& one : cases) inputs += inputs_of(one.layer);
        return inputs;
    });
    const auto progress = asker.pieces("simulating");
    std::size_t done = 0;
    for (Case& one : cases) {
        options.layer = one.layer.options;
        one.gain = explain_gain(one.layer.input, systems[0], systems[1], options);
        progress(++done, cases.size());
    }
    return cases;
}

/// Without one of today's systems, the baseline with equal software is the best.
const GainStep& best_of(const Gain& gain) {
    return gain.steps[gain.steps.size() - 2];
}

/// What a step gains over the one before, µs; below 0 where it loses.
double gained(const Gain& gain, std::string_view name) {
    for (std::size_t i = 1; i < gain.steps.size(); ++i)
        if (gain.steps[i].name == name)
            return to_us(gain.steps[i - 1].time) - to_us(gain.steps[i].time);
    return 0;
}

double over(Ps slower, Ps faster) {
    return static_cast<double>(slower) / static_cast<double>(faster);
}

Table cases_table(const std::vector<Case>& cases) {
    const Gain& first = cases.front().gain;
    const auto gains = [](const char* step) {
        return [step](const Case& one) { return gained(one.gain, step); };
    };
    const auto own = [](const Case& one) { return one.gain.steps.back().time; };
    return table_of<Case>(
        "cases", "",
        {{hidden("machine"), [](const Case& one) { return one.layer.machine_name; }},
         {{"model", "model"}, [](const Case& one) { return one.layer.model_name; }},
         {hidden("gpus"), [](const Case& one) { return one.layer.input.machine.gpus(); }},
         {hidden("tokens"), [](const Case& one) { return one.layer.input.routing.tokens; }},
         {{first.steps.front().system + " µs", "baseline_us", kTenths},
          [](const Case& one) { return to_us(one.gain.steps.front().time); }},
         {{"host", "host_us", kTenths}, gains("host")},
         {{"activation", "activation_us", kTenths}, gains("activation")},
         {{"overlap", "overlap_us", kTenths}, gains("overlap")},
         {{"hub", "hub_us", kTenths}, gains("hub")},
         {{first.steps.back().system + " µs", "time_us", kTenths},
          [own](const Case& one) { return to_us(own(one)); }},
         {hidden("ideal_us"), [](const Case& one) { return to_us(one.gain.ideal); }},
         {{"left to ideal", "left_us", kTenths, 2},
          [own](const Case& one) { return to_us(own(one) - one.gain.ideal); }},
         {{"published", "lead_as_published", kTimes, 1},
          [own](const Case& one) { return over(one.gain.steps.front().time, own(one)); }},
         {{"equal", "lead_equal", kTimes},
          [own](const Case& one) { return over(one.gain.steps[2].time, own(one)); }},
         {{"over the best", "lead_over_best", kTimes},
          [own](const Case& one) { return over(best_of(one.gain).time, own(one)); }},
         {{"which is", "best", kText, 1},
          [](const Case& one) { return best_of(one.gain).system; }}},
        cases);
}

struct StepOf {
    std::string model;
    GainStep step;
};

Table steps_table(const std::vector<Case>& cases) {
    std::vector<StepOf> steps;
    for (const Case& one : cases)
        for (const GainStep& step : one.gain.steps) steps.push_back({one.layer.model_name, step});
    return table_of<StepOf>(
        "steps", "",
        {{{"model", "model", kOnce}, &StepOf::model},
         {{"step", "name"}, [](const StepOf& one) { return one.step.name; }},
         {{"system", "system"}, [](const StepOf& one) { return one.step.system; }},
         {{"software", "software"},
          [](const StepOf& one) { return software_words(one.step.spec); }},
         {{"time µs", "time_us", kTenths}, [](const StepOf& one) { return to_us(one.step.time); }}},
        steps);
}

/// Each model's published baseline divided up.
BarChart shares_chart(const std::vector<Case>& cases) {
    BarChart chart{"Shares of the baseline's time", "% of it", {}, {}, true};
    chart.series = {{"ideal", {}, "█"},   {"left", {}, "▓"},       {"hub", {}, "▒"},
                    {"overlap", {}, "░"}, {"activation", {}, "+"}, {"host", {}, "·"}};
    for (const auto& [layer, gain] : cases) {
        chart.categories.push_back(layer.model_name);
        const double whole = to_us(gain.steps.front().time) / 100;
        const double parts[] = {
            to_us(gain.ideal),          to_us(gain.steps.back().time - gain.ideal),
            gained(gain, "hub"),        gained(gain, "overlap"),
            gained(gain, "activation"), gained(gain, "host")};
        for (std::size_t i = 0; i < std::size(parts); ++i)
            chart.series[i].values.emplace_back(parts[i] / whole);
    }
    return chart;
}

Answer answer_of(const Request& request, const Asker& asker) {
    const std::vector<Case> cases = explain(request, asker);
    Answer answer{
        .title = fmt::format("Where {}'s lead comes from", cases.front().gain.steps.back().system)};
    for (const Case& one : cases)
        for (std::string& line : lead_of(one.layer)) answer.lead.push_back(std::move(line));
    answer.sections = {
        {"Step by step",
         {},
         {cases_table(cases), shares_chart(cases), {steps_table(cases), Reader::page}},
         {"host: kernels follow one another in a graph; activation: fused into the first GEMM; "
          "overlap: from there to the best of today's software, with a graph and fused, too; hub: "
          "from there to the system. Below 0: a step that loses.",
          "published: over the baseline as it is published; equal: both with a graph and fused."}}};
    return answer;
}

}  // namespace

Question gain_question() {
    return {.first = "models",
            .sweeps = {{.name = "gain",
                        .said = {{"models", Request().models.front().name}},
                        .measures = {{"time_us"},
                                     {"baseline_us"},
                                     {"host_us"},
                                     {"activation_us"},
                                     {"overlap_us"},
                                     {"hub_us"},
                                     {"ideal_us"},
                                     {"lead_as_published"},
                                     {"lead_equal"},
                                     {"lead_over_best"}}}},
            .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
