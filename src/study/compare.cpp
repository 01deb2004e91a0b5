#include "study/compare.hpp"

#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/parallel.hpp"
#include "base/quantity.hpp"
#include "systems/systems.hpp"

#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kUsualBaseline = "megatron-te";

/// Tells how many simulations are done of those that are known: an eager layer's rounds come to
/// light one by one.
class Count {
  public:
    Count(std::size_t known, const CompareOptions& options)
        : known_(known), progress_(options.progress) {}

    void one_done(bool another) {
        const std::lock_guard lock(mutex_);
        ++done_;
        if (another) ++known_;
        if (progress_) progress_(done_, known_);
    }

  private:
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::size_t known_;
    const std::function<void(std::size_t, std::size_t)>& progress_;
};

/// Simulates systems that were checked.
std::vector<LayerResult> simulate_all(const LayerInput& input, const std::vector<SystemSpec>& all,
                                      const CompareOptions& options) {
    std::vector<LayerResult> results(all.size());
    Count count(all.size(), options);
    LayerOptions layer = options.layer;
    layer.another_round = [&count] { count.one_done(true); };
    run_parallel(all.size(),
                 [&](std::size_t i) {
                     results[i] = systems::run_job({input, all[i], layer});
                     count.one_done(false);
                 },
                 {options.threads, {}});
    return results;
}

const LayerResult* find(const std::vector<LayerResult>& results, std::string_view system) {
    const auto found = std::find_if(results.begin(), results.end(),
                                    [&](const auto& one) { return one.system == system; });
    return found == results.end() ? nullptr : &*found;
}

/// Times of ideal by the format in which experts compute; none where ideal was not asked for.
using IdealTimes = std::map<NumberFormat, Ps>;

/// Where systems compute in another format than ideal was asked for, ideal runs in theirs, too.
std::vector<SystemSpec> other_ideals(const std::vector<SystemSpec>& systems) {
    const auto ideal = std::find_if(systems.begin(), systems.end(),
                                    [](const SystemSpec& one) { return one.name == kIdeal; });
    std::vector<SystemSpec> others;
    if (ideal == systems.end()) return others;
    std::set<NumberFormat> formats{ideal->expert_format};
    for (const SystemSpec& system : systems) {
        if (!formats.insert(system.expert_format).second) continue;
        others.push_back(*ideal);
        others.back().expert_format = system.expert_format;
    }
    return others;
}

IdealTimes ideal_times(const std::vector<SystemSpec>& systems,
                       const std::vector<LayerResult>& results) {
    IdealTimes times;
    for (std::size_t i = 0; i < systems.size(); ++i)
        if (systems[i].name == kIdeal) times[systems[i].expert_format] = results[i].time;
    return times;
}

/// The result of that name; the slowest where there is none.
const LayerResult& baseline_of(const std::vector<LayerResult>& results, std::string_view name) {
    if (const LayerResult* const named = find(results, name)) return *named;
    return *std::max_element(results.begin(), results.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; });
}

/// Compares results, which are in the order of their systems; `named` is the baseline's name.
template <class IdealOf>
Comparison side_by_side(const std::vector<SystemSpec>& systems,
                        const std::vector<LayerResult>& results, std::string_view named,
                        const IdealOf& ideal_of) {
    const LayerResult& baseline = baseline_of(results, named);
    Comparison made;
    made.baseline = baseline.system;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ComparisonRow row{systems[i], results[i], ratio(baseline.time, results[i].time), {}};
        if (const std::optional<Ps> ideal = ideal_of(systems[i]))
            row.share_of_ideal = ratio(*ideal, results[i].time);
        made.rows.push_back(std::move(row));
    }
    return made;
}

std::vector<SystemSpec> loaded(const std::vector<std::string>& names) {
    std::vector<SystemSpec> systems;
    for (const std::string& name : names) systems.push_back(load_system(name));
    return systems;
}

constexpr std::string_view kUsualTpBaseline = "tp-nvls";

TpInput with_part(const TpInput& input, SubLayer part) {
    return {input.machine, input.model, input.tokens, part};
}

/// Adds one result to a sum; shares of time are weighted by it.
void add(LayerResult& sum, const LayerResult& one) {
    const auto before = static_cast<double>(sum.time);
    const auto more = static_cast<double>(one.time);
    const auto mean = [&](double a, double b) { return (a * before + b * more) / (before + more); };
    sum.sm_busy = mean(sum.sm_busy, one.sm_busy);
    sum.tensor_busy = mean(sum.tensor_busy, one.tensor_busy);
    sum.time += one.time;
    sum.first_gemm += one.first_gemm;
    sum.dispatch += one.dispatch;
    sum.combine += one.combine;
    sum.breakdown.compute += one.breakdown.compute;
    sum.breakdown.communication += one.breakdown.communication;
    sum.breakdown.host += one.breakdown.host;
    sum.bytes_up += one.bytes_up;
    sum.bytes_down += one.bytes_down;
    sum.payload += one.payload;
    sum.packets += one.packets;
    sum.events += one.events;
    sum.largest_error = std::max(sum.largest_error, one.largest_error);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<SystemSpec> load_systems(const std::vector<std::string>& names) {
    check_systems(names);
    return loaded(names);
}

void check_systems(const std::vector<std::string>& systems) {
    check_names(systems, moe_systems(), tp_systems());
}

Comparison compare(const LayerInput& input, const std::vector<std::string>& systems,
                   const CompareOptions& options) {
    return compare_systems(input, load_systems(systems), options);
}

Comparison compare_systems(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options) {
    for (const SystemSpec& system : systems) check_layer(input, system, options.layer);
    return compare_checked(input, systems, options);
}

Comparison compare_checked(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options) {
    check_unlike(systems);
    check_baseline(options.baseline, systems);
    std::vector<SystemSpec> all = systems;
    for (SystemSpec& one : other_ideals(systems)) {
        check_layer(input, one, options.layer);
        all.push_back(std::move(one));
    }
    std::vector<LayerResult> results = simulate_all(input, all, options);
    const IdealTimes ideal = ideal_times(all, results);
    results.resize(systems.size());
    Comparison comparison =
        side_by_side(systems, results, options.baseline.empty() ? kUsualBaseline : options.baseline,
                     [&](const SystemSpec& system) {
                         const auto bound = ideal.find(system.expert_format);
                         return bound == ideal.end() ? std::nullopt : std::optional(bound->second);
                     });
    for (const SystemSpec& system : systems)
        if (const auto bound = ideal.find(system.expert_format);
            bound != ideal.end() && bound->second != find(results, kIdeal)->time)
            comparison.other_ideal = bound->second;
    return comparison;
}

void check_tp_systems(const std::vector<std::string>& systems) {
    check_names(systems, tp_systems(), moe_systems());
}

std::vector<SystemSpec> load_tp_systems(const std::vector<std::string>& names) {
    check_tp_systems(names);
    return loaded(names);
}

Comparison tp_rows(const std::vector<SystemSpec>& systems, const std::vector<LayerResult>& results,
                   std::string_view named) {
    const LayerResult* const ideal = find(results, kIdeal);
    return side_by_side(
        systems, results, named.empty() ? kUsualTpBaseline : named,
        [ideal](const SystemSpec&) { return ideal ? std::optional(ideal->time) : std::nullopt; });
}

std::vector<Comparison> compare_tp_parts(const TpInput& input, const std::vector<SubLayer>& parts,
                                         const std::vector<SystemSpec>& systems,
                                         const TpCompareOptions& options) {
    if (systems.empty()) check_tp_systems({});
    check_unlike(systems);
    check_baseline(options.baseline, systems);
    for (const SystemSpec& system : systems)
        for (const SubLayer part : parts) check_tp(with_part(input, part), system, options.layer);
    std::vector<std::vector<LayerResult>> results(parts.size(),
                                                  std::vector<LayerResult>(systems.size()));
    run_parallel(parts.size() * systems.size(),
                 [&](std::size_t i) {
                     const std::size_t part = i / systems.size();
                     const std::size_t system = i % systems.size();
                     results[part][system] =
                         simulate_tp(with_part(input, parts[part]), systems[system], options.layer);
                 },
                 {options.threads, options.progress});
    std::vector<Comparison> made;
    for (const auto& one : results) made.push_back(tp_rows(systems, one, options.baseline));
    return made;
}

Comparison compare_tp(const TpInput& input, const std::vector<SystemSpec>& systems,
                      const TpCompareOptions& options) {
    return compare_tp_parts(input, {input.part}, systems, options).front();
}

Comparison sum_of(const std::vector<Comparison>& parts) {
    std::vector<SystemSpec> systems;
    std::vector<LayerResult> sums;
    for (const ComparisonRow& row : parts.front().rows) {
        systems.push_back(row.system);
        sums.push_back(row.result);
        sums.back().statistics.clear();
        sums.back().links.clear();
        sums.back().intervals.clear();
    }
    for (std::size_t part = 1; part < parts.size(); ++part)
        for (std::size_t i = 0; i < sums.size(); ++i) add(sums[i], parts[part].rows[i].result);
    const bool same = std::all_of(parts.begin(), parts.end(), [&](const Comparison& part) {
        return part.baseline == parts.front().baseline;
    });
    Comparison sum = tp_rows(systems, sums, same ? parts.front().baseline : std::string_view());
    sum.left_out = parts.front().left_out;
    return sum;
}

KindOfSystems moe_systems() {
    return {"MoE layers", all_systems};
}

KindOfSystems tp_systems() {
    return {"tensor-parallel sub-layers", all_tp_systems};
}

std::vector<std::string> names_of(const KindOfSystems& kind) {
    std::vector<std::string> names;
    for (const SystemInfo& system : kind.all()) names.push_back(system.name);
    return names;
}

void check_names(const std::vector<std::string>& systems, const KindOfSystems& kind,
                 const KindOfSystems& other) {
    const std::vector<std::string> known = names_of(kind);
    if (systems.empty())
        throw input_error("no system is named, allowed: {}", fmt::join(known, ", "));
    for (auto name = systems.begin(); name != systems.end(); ++name) {
        const bool file = name->ends_with(".toml") || name->find('/') != name->npos;
        if (file)
            load_system(*name);
        else if (!has(known, *name) && has(names_of(other), *name))
            throw input_error("system {} runs {}, allowed for {}: {}", moehub::quoted(*name),
                              other.words, kind.words, fmt::join(known, ", "));
        else if (!has(known, *name))
            throw input_error("unknown system {}, allowed: {}{}", moehub::quoted(*name),
                              fmt::join(known, ", "), did_you_mean(*name, known));
        if (std::find(systems.begin(), name, *name) != name)
            throw input_error("system {} is named twice, allowed: once", quoted(*name));
    }
}

void check_baseline(const std::string& baseline, const std::vector<SystemSpec>& systems) {
    if (baseline.empty()) return;
    std::vector<std::string> names;
    for (const SystemSpec& system : systems) names.push_back(system.name);
    if (!has(names, baseline))
        throw input_error("baseline: found {}, allowed: one of the systems compared: {}{}",
                          quoted(baseline), fmt::join(names, ", "), did_you_mean(baseline, names));
}

void check_unlike(const std::vector<SystemSpec>& systems) {
    for (auto system = systems.begin(); system != systems.end(); ++system) {
        const bool twice = std::any_of(systems.begin(), system, [&](const SystemSpec& other) {
            return other.name == system->name;
        });
        if (twice)
            throw input_error("two systems are named {}, allowed: one of a name",
                              moehub::quoted(system->name));
    }
}

}  // namespace moehub
