#include "study/training_runs.hpp"

#include "base/input_error.hpp"
#include "plan/units.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostTrainingGpus = 1'000'000;
constexpr std::int64_t kMostWays = 65'536;
constexpr std::int64_t kMostBatch = 1 << 24;
constexpr std::int64_t kMostSequence = 1 << 24;

/// A column of the file and the key of a parallel layout that it gives.
struct Cell {
    std::string_view column;
    std::string_view key;
};
constexpr std::array<Cell, 7> kCounts = {{{"micro_batch", "mb"},
                                          {"tp", "tp"},
                                          {"pp", "pp"},
                                          {"vpp", "vpp"},
                                          {"cp", "cp"},
                                          {"ep", "ep"},
                                          {"etp", "etp"}}};

void read_name(const CsvRow& row, PublishedRun& run, Cell cell,
               const std::vector<std::string_view>& allowed) {
    const std::string& name = row.field(cell.column);
    if (name.empty()) return;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), name) == allowed.end())
        row.reject(cell.column, fmt::format("{}, or nothing", fmt::join(allowed, ", ")));
    run.cells[std::string(cell.key)] = name;
}

void read_layout(const CsvRow& row, PublishedRun& run) {
    for (const Cell& cell : kCounts)
        if (row.has(cell.column))
            run.cells[std::string(cell.key)] =
                fmt::format("{}", row.integer(cell.column, 1, kMostWays));
    if (run.cells.contains("tp")) run.cells.emplace("etp", run.cells["tp"]);
    read_name(row, run, {"sharding", "sharding"}, {"none", "zero1", "zero2", "fsdp"});
    read_name(row, run, {"overlap", "overlap"}, {"none", "1f1b", "dualpipe"});
    read_name(row, run, {"recompute", "recompute"}, {});
    read_name(row, run, {"dispatcher", "system"}, {});
}

void read_measured(const CsvRow& row, PublishedRun& run) {
    const auto read = [&row](std::string_view column) {
        return row.has(column) ? row.positive(column) : 0;
    };
    run.tokens_per_second = read("tokens_per_s_per_gpu");
    run.tflops = read("tflops_per_gpu");
    run.mfu = read("mfu") / 100;
    run.step_seconds = read("step_s");
}

std::optional<RoutingSpec> routing_in(const CsvRow& row) {
    if (!row.has("routing")) return {};
    try {
        return parse_routing(row.text("routing"));
    } catch (const InputError&) {
        row.reject("routing", "balanced, uniform, normal:STD, zipf:S, lognormal:SIGMA, or nothing");
    }
}

NumberFormat precision_of(const PublishedRun& run) {
    if (run.precision == "bf16") return NumberFormat::bf16;
    if (run.precision == "fp8") return NumberFormat::fp8;
    throw input_error("precision {}: known are bf16, fp8", run.precision);
}

int ways(const PublishedRun& run, const std::string& key) {
    const auto cell = run.cells.find(key);
    return cell == run.cells.end() ? 1 : std::stoi(cell->second);
}

std::int64_t batch_of(const PublishedRun& run) {
    if (run.global_batch > 0) return run.global_batch;
    const int pipeline = ways(run, "tp") * ways(run, "cp") * ways(run, "pp");
    return kMicroBatches * ways(run, "mb") * std::max(1, run.gpus / pipeline);
}

constexpr const char* kNewest = "megatron-26.04";  ///< for runs whose source no trainer names

/// Length of the longest part of the list that is in the text; 0: none is.
std::size_t longest_part(std::string_view list, std::string_view text) {
    std::size_t longest = 0;
    for (const std::string& part : parts_of_list(list))
        if (text.find(part) != std::string_view::npos) longest = std::max(longest, part.size());
    return longest;
}

/// The best of all layouts that were searched.
struct Searched {
    std::optional<TrainingStep> fastest;   ///< fastest step that fits
    std::optional<TrainingStep> smallest;  ///< smallest step, where none fits
};

void search(const TrainingClock& clock, const PartialLayout& fixed, Searched& found) {
    PlanOptions options;
    options.fixed = fixed;
    options.top = 1;
    options.exact = false;
    const Plan plan = plan_training(clock, options);
    if (!plan.best.empty() &&
        (!found.fastest || plan.best.front().seconds < found.fastest->seconds))
        found.fastest = plan.best.front();
    if (!plan.nearest.empty() &&
        (!found.smallest || plan.nearest.front().memory.sum() < found.smallest->memory.sum()))
        found.smallest = plan.nearest.front();
}

/// Searches with each overlap that the trainer can do. One that no layout of the row allows is not
/// counted, unless it is the last.
void search_overlaps(const TrainingClock& clock, const PartialLayout& fixed, Searched& found) {
    if (fixed.overlap) return search(clock, fixed, found);
    const TrainingRun& run = clock.run();
    const TrainerCosts& costs = run.trainer.costs(run.machine.gpu.generation);
    std::string why = "the trainer names no overlaps";
    for (const std::string& overlap : parts_of_list(costs.overlaps)) {
        try {
            search(clock, parse_partial_layout("overlap=" + overlap, fixed), found);
        } catch (const InputError& error) {
            why = error.what();
        }
    }
    if (!found.fastest && !found.smallest) throw InputError(why);
}

TrainingStep best_step(const TrainingClock& clock, const PartialLayout& fixed) {
    Searched found;
    PartialLayout kept = fixed;
    kept.offload = Offload{};
    search_overlaps(clock, kept, found);
    if (found.fastest) return *found.fastest;
    Searched offloaded;
    search_overlaps(clock, fixed, offloaded);
    return offloaded.fastest ? *offloaded.fastest : *found.smallest;
}

}  // namespace

std::vector<std::string> parts_of_list(std::string_view list) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(';', at), list.size());
        if (end > at) parts.emplace_back(list.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

PublishedRun parse_training_run(const CsvRow& row) {
    PublishedRun run;
    run.line = row.line();
    run.model = row.text("model");
    run.machine = row.text("machine");
    run.gpus = static_cast<int>(row.integer("gpus", 1, kMostTrainingGpus));
    run.precision = row.text("precision");
    if (row.has("global_batch")) run.global_batch = row.integer("global_batch", 1, kMostBatch);
    if (row.has("sequence")) run.sequence = row.integer("sequence", 1, kMostSequence);
    run.routing = routing_in(row);
    run.source = row.text("source");
    run.note = row.field("note");
    read_layout(row, run);
    read_measured(row, run);
    return run;
}

std::vector<PublishedRun> read_published_runs(const std::string& path) {
    const CsvTable table = CsvTable::read(path);
    if (const FileKind kind = file_kind_of(table); kind.header != kTrainingRunColumns)
        throw input_error("{}: rows of kind {}, allowed: training runs, with columns {}", path,
                          kind.name, kTrainingRunColumns);
    if (table.size() == 0) throw InputError(path + ": a header without rows, allowed: one or more");
    std::vector<PublishedRun> runs;
    for (std::size_t i = 0; i < table.size(); ++i)
        if (PublishedRun run = parse_training_run(table[i]); run.measured())
            runs.push_back(std::move(run));
    return runs;
}

TrainingRun training_run(const PublishedRun& row, const TrainerSpec& trainer,
                         const Overrides& machine) {
    TrainingRun run;
    run.precision = precision_of(row);
    run.model = load_model(row.model);
    run.machine = training_machine(load_machine(row.machine, machine), row.gpus);
    if (const auto cell = row.cells.find("system"); cell != row.cells.end())
        load_system(cell->second);  // an unknown one is refused here, by its name
    run.trainer = trainer;
    run.sequence = row.sequence > 0 ? row.sequence : run.model.sequence;
    run.global_batch = batch_of(row);
    if (row.routing)
        run.routing = *row.routing;
    else if (trainer.imbalance > 0)
        run.routing = {RoutingSpec::Shares::lognormal, trainer.imbalance};
    run.mtp = row.note.find("no MTP") == std::string::npos;
    check(run);
    return run;
}

PartialLayout fixed_layout(const PublishedRun& run, const TrainerSpec& trainer) {
    auto cells = run.cells;
    if (trainer.micro_batch > 0) cells.emplace("mb", std::to_string(trainer.micro_batch));
    if (!trainer.recompute.empty()) cells.emplace("recompute", trainer.recompute);
    if (ways(run, "etp") > 1) cells["system"] = kSharedExperts;
    std::string text;
    for (const auto& [key, cell] : cells)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, cell);
    return parse_partial_layout(text);
}

double published_mfu(const PublishedRun& run, const PublishedAnswer& answer) {
    const TrainingStep& step = answer.step;
    if (run.mfu > 0) return run.mfu;
    const double peak = step.tflops() / step.mfu;
    if (run.tflops > 0) return run.tflops / peak;
    double tokens = run.tokens_per_second;
    if (tokens == 0) tokens = step.tokens_per_second * step.seconds / run.step_seconds;
    return tokens * step.flops_per_token / 1e12 / peak;
}

double predicted_mfu(const PublishedRun& run, const PublishedAnswer& answer) {
    const TrainingStep& step = answer.step;
    if (run.tflops == 0 || run.tokens_per_second == 0) return step.mfu;
    const double peak = step.tflops() / step.mfu;
    return step.tokens_per_second * run.tflops / run.tokens_per_second / peak;
}

// Which trainer a published run is of, and what the planner chooses where a row says nothing.

RunTrainer trainer_of(const PublishedRun& run) {
    const std::string about =
        fmt::format("{} {} {} {}", run.model, run.machine, run.precision, run.note);
    RunTrainer best{kNewest, false};
    std::pair<std::size_t, std::size_t> longest{0, 0};
    for (const std::string& name : preset_names("trainers")) {
        const TrainerSpec trainer = load_trainer(name);
        const std::size_t source = longest_part(trainer.sources, run.source);
        const std::size_t note = longest_part(trainer.notes, about);
        if (source == 0 || (note == 0 && !trainer.notes.empty())) continue;
        if (best.known && std::pair{source, note} <= longest) continue;
        best = {name, true};
        longest = {source, note};
    }
    return best;
}

const PublishedAnswer& RunAnswers::answer(const PublishedRun& run) {
    const RunTrainer trainer = trainer_of(run);
    return answer(run, trainer, load_trainer(trainer.name));
}

TrainingClock RunAnswers::clock(const PublishedRun& row, const TrainerSpec& trainer) {
    TrainingRun run = training_run(row, trainer, machine_);
    std::shared_ptr<TrainingClock>& first = clocks_[fmt::format(
        "{} {} {} {}", row.model, row.machine, row.gpus, to_string(run.routing))];
    if (!first) first = std::make_shared<TrainingClock>(run);
    return {std::move(run), *first};
}

const PublishedAnswer& RunAnswers::answer(const PublishedRun& row, const RunTrainer& named,
                                          const TrainerSpec& trainer) {
    const TrainingClock timed = clock(row, trainer);
    const TrainingRun& run = timed.run();
    const PartialLayout fixed = fixed_layout(row, trainer);
    const std::string key =
        fmt::format("{} {} {} {} {} {} {} {} {}\n{}", row.model, row.machine, row.gpus,
                    row.precision, run.sequence, run.global_batch, to_string(run.routing), run.mtp,
                    to_text(fixed), to_toml(trainer));
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = {named, best_step(timed, fixed)};
}

}  // namespace moehub
