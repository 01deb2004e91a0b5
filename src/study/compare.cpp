#include "base/parallel.hpp"
#include "study/compare_checked.hpp"
#include "study/system_names.hpp"
#include "systems/systems.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

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

/// Of systems that were checked.
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

/// By the format in which experts compute; nothing where ideal was not asked for.
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

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

}  // namespace

std::vector<SystemSpec> load_systems(const std::vector<std::string>& names) {
    check_systems(names);
    std::vector<SystemSpec> systems;
    for (const std::string& name : names) systems.push_back(load_system(name));
    return systems;
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
    const LayerResult* baseline =
        find(results, options.baseline.empty() ? kUsualBaseline : options.baseline);
    if (baseline == nullptr)
        baseline = &*std::max_element(results.begin(), results.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
    Comparison comparison;
    comparison.baseline = baseline->system;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        const LayerResult& result = results[i];
        ComparisonRow row{systems[i], result, ratio(baseline->time, result.time), {}};
        if (const auto bound = ideal.find(systems[i].expert_format); bound != ideal.end()) {
            row.share_of_ideal = ratio(bound->second, result.time);
            if (bound->second != find(results, kIdeal)->time)
                comparison.other_ideal = bound->second;
        }
        comparison.rows.push_back(std::move(row));
    }
    return comparison;
}

}  // namespace moehub
