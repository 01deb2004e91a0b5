// Parallel layouts of a training run: the fastest, or one of them in full.
#include "answers/nouns.hpp"
#include "answers/plan_answers.hpp"
#include "plan/units.hpp"
#include "report/number.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kBreakdowns = 3;             ///< layouts whose parts are shown
constexpr int kPicture = 100, kLeastPicture = 72;  ///< columns of a pipeline

Section count_section(const Plan& plan) {
    const auto count = [](std::size_t number) {
        return grouped(static_cast<std::int64_t>(number));
    };
    const TrainingStep& best = plan.best.front();
    Section section;
    section.notes.emplace_back(fmt::format(
        "{} parallel layouts looked at: {} do not fit in {} GB, {} were timed", count(plan.layouts),
        count(plan.too_large), significant(best.capacity / 1e9), count(plan.timed)));
    if (plan.refused > 0)
        section.notes.emplace_back(
            fmt::format("{} left out: {}", count(plan.refused), plan.refusal));
    section.notes.emplace_back(
        fmt::format("The first in full: --explain {}", to_text(best.layout)));
    return section;
}

// One layout in full

std::string fit_words(const TrainingStep& step) {
    const double sum = step.memory.sum();
    if (step.fits)
        return fmt::format("It fits: {} of {} a GPU.", byte_size(sum), byte_size(step.capacity));
    if (sum <= step.capacity)
        return fmt::format("It does not fit: {} a GPU of the host's memory, which has {}.",
                           byte_size(step.memory.host), byte_size(step.host_capacity));
    return fmt::format("It does not fit: {} a GPU, {} more than its {}.", byte_size(sum),
                       byte_size(sum - step.capacity), byte_size(step.capacity));
}

/// What is left for data parallelism, and who moves rows.
std::string ranks_words(const TrainingRun& run, const ParallelLayout& l) {
    const std::int64_t dense = std::int64_t{l.tp} * l.cp * l.pp;
    if (run.model.experts == 0) return fmt::format("data parallel {}", run.gpus() / dense);
    const std::int64_t sparse = std::int64_t{l.etp} * l.ep * l.pp;
    return fmt::format("data parallel {}, experts {}{}", run.gpus() / dense, run.gpus() / sparse,
                       l.ep * l.etp > 1 ? "; rows by " + exchange_of(run, l) : "");
}

std::string summary(const TrainingRun& run, const TrainingStep& step) {
    return fmt::format(
        "{}\n{} a step, {} tokens/s a GPU, {} TFLOP/s a GPU, MFU {}\nlimited by {}; "
        "{} micro-batch{} of {} sequence{}\n{}\n{}\n",
        to_text(step.layout), duration(step.seconds), tenths(step.tokens_per_second),
        tenths(step.tflops()), percent(step.mfu), step.limit, grouped(step.micro_batches),
        step.micro_batches > 1 ? "es" : "", step.layout.micro_batch,
        step.layout.micro_batch > 1 ? "s" : "", ranks_words(run, step.layout), fit_words(step));
}

/// A micro-batch in each stage, all its pieces together.
std::vector<StageTime> stages_of(const TrainingStep& step) {
    std::vector<StageTime> stages(static_cast<std::size_t>(step.layout.pp));
    for (const StageTime& one : step.stages) {
        StageTime& stage = stages[static_cast<std::size_t>(one.stage)];
        stage.stage = one.stage;
        stage.forward += one.forward;
        stage.backward += one.backward;
    }
    return stages;
}

Table stages_table(const std::vector<StageTime>& stages) {
    constexpr std::size_t kMostRows = 24;
    double longest = 0;
    for (const StageTime& one : stages) longest = std::max(longest, one.forward + one.backward);
    Table table = table_of<StageTime>(
        "", "",
        {{{"stage", "", kWhole}, &StageTime::stage},
         {{"forward ms", "", scaled(fixed(2), 1e3)}, &StageTime::forward},
         {{"backward ms", "", scaled(fixed(2), 1e3)}, &StageTime::backward},
         {{"", "", bar_of(32)},
          [&](const StageTime& one) { return (one.forward + one.backward) / longest; }}},
        stages);
    if (stages.size() <= kMostRows) return table;
    const auto middle = table.rows.begin() + kMostRows / 2;  // what lies between is alike
    *middle = {"…", "…", "…", nullptr};
    table.rows.erase(middle + 1, table.rows.end() - kMostRows / 2);
    return table;
}

BarChart stages_chart(const std::vector<StageTime>& stages) {
    BarChart chart{
        "One micro-batch in each stage", "ms", {}, {{"forward", {}}, {"backward", {}}}, true};
    for (const StageTime& stage : stages) {
        chart.categories.push_back(fmt::format("stage {}", stage.stage));
        chart.series[0].values.emplace_back(1e3 * stage.forward);
        chart.series[1].values.emplace_back(1e3 * stage.backward);
    }
    return chart;
}

Section pipeline_section(const TrainingStep& step, std::shared_ptr<TrainingClock> clock) {
    const std::vector<StageTime> stages = stages_of(step);
    Lines picture;
    picture.drawn = [clock = std::move(clock), layout = step.layout](int width) {
        return width < kLeastPicture
                   ? fmt::format("The pipeline is drawn in {} columns or more.\n", kLeastPicture)
                   : clock->picture(layout, std::min(width, kPicture));
    };
    picture.text = picture.drawn(kPicture);
    return {"The pipeline",
            {},
            {{stages_table(stages), Reader::terminal},
             {stages_chart(stages), Reader::page},
             std::move(picture)}};
}

std::string run_words(const PlanCase& what) {
    const TrainingRun& run = what.run;
    const int nodes = run.machine.nodes;
    return fmt::format("{} on {}: {} GPU{}{}, {}, by {}", what.model_name, what.machine_name,
                       grouped(run.gpus()), run.gpus() > 1 ? "s" : "",
                       nodes > 1 ? fmt::format(" in {} nodes", grouped(nodes)) : "",
                       name_of(run.precision), what.trainer_name);
}

std::string step_words(const TrainingRun& run) {
    return fmt::format(
        "a step: {} sequence{} of {} tokens, {} tokens{}", grouped(run.global_batch),
        run.global_batch > 1 ? "s" : "", grouped(run.sequence),
        grouped(run.global_batch * run.sequence),
        run.model.experts > 0 ? fmt::format("; {} routing", to_string(run.routing)) : "");
}

std::string flops_words(const TrainingRun& run, const TrainingStep& any) {
    return fmt::format("a token: {} GFLOP forward and backward, {} of attention's pairs counted{}",
                       significant(any.flops_per_token / 1e9),
                       run.trainer.causal_flops ? "half" : "all",
                       run.model.mtp_layers == 0 ? ""
                       : run.mtp                 ? ", with multi-token prediction"
                                                 : ", without multi-token prediction");
}

/// What both ways of asking for layouts begin with.
Answer layouts_answer(const PlanCase& what, const TrainingStep& any) {
    const TrainingRun& run = what.run;
    Answer answer = what.answer();
    answer.lead = {run_words(what), step_words(run), flops_words(run, any)};
    const std::string fixed = to_text(what.fixed);
    if (!fixed.empty()) answer.lead.push_back("fixed: " + fixed);
    if (!what.settings.empty())
        answer.lead.push_back(fmt::format("with {}", fmt::join(what.settings, ", ")));
    answer.facts["flops_per_token"] = any.flops_per_token;
    answer.facts["causal_flops"] = run.trainer.causal_flops;
    answer.facts["capacity_bytes"] = any.capacity;
    return answer;
}

}  // namespace

Answer PlanCase::answer() const {
    Answer answer{.title = fmt::format("Training {} on {} GPUs of {}", model_name,
                                       grouped(run.gpus()), machine_name)};
    answer.facts = {{"model", model_name},
                    {"machine", machine_name},
                    {"trainer", trainer_name},
                    {"set", settings},
                    {"fixed", to_text(fixed)},
                    {"gpus", run.gpus()},
                    {"nodes", run.machine.nodes},
                    {"sequence", run.sequence},
                    {"global_batch", run.global_batch},
                    {"tokens", run.sequence * run.global_batch},
                    {"precision", name_of(run.precision)},
                    {"routing", to_string(run.routing)},
                    {"mtp", run.mtp && run.model.mtp_layers > 0}};
    add_configuration(answer.configuration, "Machine", run.machine);
    add_configuration(answer.configuration, "Model", run.model);
    add_configuration(answer.configuration, "Trainer", run.trainer);
    return answer;
}

Answer searched_answer(const PlanCase& what, const Plan& plan) {
    const TrainingStep& best = plan.best.front();
    Answer answer = layouts_answer(what, best);
    answer.main = "best";
    answer.facts["layouts"] = plan.layouts;
    answer.facts["timed"] = plan.timed;
    answer.facts["too_large"] = plan.too_large;
    answer.facts["refused"] = plan.refused;
    answer.facts["refusal"] = or_null(plan.refusal);
    if (plan.systems.empty())
        answer.facts["systems"] = Json::array();
    else
        answer.sections.push_back(systems_section(plan.systems));
    const Steps first(plan.best.begin(), plan.best.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 plan.best.size(), kBreakdowns)));
    Table best_table = layouts_table("best", plan.best);
    Section memory = memory_section(best, best_table, "rank", Reader::terminal);
    BarChart times = time_chart(best_table, "Where a step's time goes", "rank");
    answer.sections.push_back({"The fastest parallel layouts",
                               {},
                               {std::move(best_table),
                                {breakdown_table(first), Reader::terminal},
                                {kinds_chart(first), Reader::terminal},
                                {std::move(times), Reader::page}},
                               {"Shares are of the stage that is busy longest."}});
    answer.sections.push_back(std::move(memory));
    answer.sections.push_back(front_section(plan.front));
    answer.sections.push_back(count_section(plan));
    return answer;
}

Answer explained_answer(const PlanCase& what, std::shared_ptr<TrainingClock> clock,
                        const ParallelLayout& layout) {
    const TrainingStep step = clock->exact(layout);
    Table table = layouts_table("step", {step});
    Section memory = memory_section(step, table, "layout.text", Reader::all);
    BarChart times = time_chart(table, "Where the step's time goes", "layout.text");
    Answer answer = layouts_answer(what, step);
    answer.sections = {{"One parallel layout",
                        {},
                        {Lines{summary(what.run, step)},
                         {std::move(table), Reader::program},
                         seconds_table(step),
                         {std::move(times), Reader::page}}},
                       std::move(memory)};
    if (step.stages.size() > 1) answer.sections.push_back(pipeline_section(step, std::move(clock)));
    return answer;
}

}  // namespace moehub
