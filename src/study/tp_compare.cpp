#include "base/parallel.hpp"
#include "study/system_names.hpp"
#include "study/tp_rows.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kUsualBaseline = "tp-nvls";

const LayerResult* find(const std::vector<LayerResult>& results, std::string_view system) {
    const auto found = std::find_if(results.begin(), results.end(),
                                    [&](const auto& one) { return one.system == system; });
    return found == results.end() ? nullptr : &*found;
}

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

TpInput with_part(const TpInput& input, SubLayer part) {
    return {input.machine, input.model, input.tokens, part};
}

/// Shares of time are weighted by it.
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

}  // namespace

void check_tp_systems(const std::vector<std::string>& systems) {
    check_names(systems, tp_systems(), moe_systems());
}

std::vector<SystemSpec> load_tp_systems(const std::vector<std::string>& names) {
    check_tp_systems(names);
    std::vector<SystemSpec> systems;
    for (const std::string& name : names) systems.push_back(load_system(name));
    return systems;
}

Comparison tp_rows(const std::vector<SystemSpec>& systems, const std::vector<LayerResult>& results,
                   std::string_view named) {
    const LayerResult* const ideal = find(results, kIdeal);
    const LayerResult* baseline = find(results, named.empty() ? kUsualBaseline : named);
    if (baseline == nullptr)
        baseline = &*std::max_element(results.begin(), results.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
    Comparison made;
    made.baseline = baseline->system;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ComparisonRow row{systems[i], results[i], ratio(baseline->time, results[i].time), {}};
        if (ideal != nullptr) row.share_of_ideal = ratio(ideal->time, results[i].time);
        made.rows.push_back(std::move(row));
    }
    return made;
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

}  // namespace moehub
