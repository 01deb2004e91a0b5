#include "request/sweep_points.hpp"

#include "base/crc32.hpp"
#include "base/parallel.hpp"
#include "request/point_arguments.hpp"
#include "request/sweep_case.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp_compare.hpp>

#include <algorithm>
#include <memory>
#include <mutex>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The error with the place of the key that it is about: loading knows only options and --set.
[[noreturn]] void fail_at(const Study& study, const SweepPoint& point, std::string_view what) {
    const auto after = [](std::string_view text, std::string_view front) {
        return text.starts_with(front) ? text.substr(front.size()) : std::string_view{};
    };
    const std::string_view set = after(what, "--set: ");
    const std::string_view option = set.empty() ? after(what, "--") : set;
    std::string key(option.substr(0, option.find(": ")));
    if (set.empty()) std::replace(key.begin(), key.end(), '-', '_');
    for (const std::string prefix : {"", "model.", "system."}) {
        if (key.empty()) break;
        const std::string full =
            prefix == "system." ? fmt::format("system.{}.{}", point.system, key) : prefix + key;
        const auto where = where_is(study, full);
        if (!where) continue;
        const std::size_t rest = option.find(": ") + 2;
        throw InputError(fmt::format("{}: {}: {}", *where, full, option.substr(rest)));
    }
    throw InputError(fmt::format("{}: at {}: {}", study.origin, words_of(study, point), what));
}

SweepCase load_at(const Study& study, const SweepPoint& point) {
    try {
        return load_case(study.kind, arguments_of(study, point));
    } catch (const InputError& error) {
        fail_at(study, point, error.what());
    }
}

SystemSpec system_at(const Study& study, const SweepPoint& point) {
    try {
        return load_systems(arguments_of(study, point).layer, {point.system}).front();
    } catch (const InputError& error) {
        fail_at(study, point, error.what());
    }
}

/// Those that were last used; points of one setting and seed follow one another.
class CaseCache {
  public:
    explicit CaseCache(const Study& study) : study_(study) {}

    std::shared_ptr<const SweepCase> at(const SweepPoint& point) {
        const std::size_t run = point.number / study_.systems.size();
        {
            const std::lock_guard lock(mutex_);
            for (const Kept& kept : kept_)
                if (kept.run == run) return kept.loaded;
        }
        auto loaded = std::make_shared<const SweepCase>(load_at(study_, point));
        const std::lock_guard lock(mutex_);
        kept_.insert(kept_.begin(), {run, loaded});
        if (kept_.size() > kMost) kept_.pop_back();
        return loaded;
    }

  private:
    struct Kept {
        std::size_t run;
        std::shared_ptr<const SweepCase> loaded;
    };
    static constexpr std::size_t kMost = 24;  ///< more than run_sweep works on at once
    const Study& study_;
    std::mutex mutex_;
    std::vector<Kept> kept_;
};

void check_systems_of(const Study& study) {
    try {
        study.kind == StudyKind::tp ? check_tp_systems(study.systems)
                                    : check_case_systems(study.kind, study.systems);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: systems: {}", study.origin, error.what()));
    }
}

}  // namespace

CheckedStudy check_points(const Study& study, const CheckOptions& options) {
    check(study);
    check_systems_of(study);
    check_keys(study);
    const std::size_t settings = settings_in(study);
    const std::size_t systems = study.systems.size();
    const std::size_t seeds = std::max<std::size_t>(1, study.seeds.size());
    CheckedStudy checked;
    checked.refusals.resize(settings * systems);
    std::vector<std::uint32_t> sums(settings);
    const auto check_setting = [&](std::size_t setting) {
        const std::size_t first = setting * seeds * systems;
        const SweepCase loaded = load_at(study, point_of(study, first));
        std::string text = fingerprint_of(loaded);
        for (std::size_t i = 0; i < systems; ++i) {
            const SystemSpec system = system_at(study, point_of(study, first + i));
            text += to_toml(system);
            checked.refusals[setting * systems + i] = why_not(loaded, system);
        }
        sums[setting] = crc32(text);
    };
    run_parallel(settings, check_setting, {options.threads, options.progress});
    const std::string_view bytes(reinterpret_cast<const char*>(sums.data()),
                                 sums.size() * sizeof sums[0]);
    checked.inputs = fmt::format("{:08x}", crc32(bytes));
    checked.refused = seeds * static_cast<std::size_t>(std::count_if(
                                  checked.refusals.begin(), checked.refusals.end(),
                                  [](const std::string& reason) { return !reason.empty(); }));
    if (checked.refused == points_in(study))
        throw InputError(fmt::format("{}: no point can run: {}: {}", study.origin,
                                     words_of(study, point_of(study, 0)), checked.refusals[0]));
    return checked;
}

SimulatePoint point_simulator(const Study& study) {
    struct Shared {
        explicit Shared(const Study& given) : study(given), cases(study) {}
        const Study study;
        CaseCache cases;
    };
    const auto shared = std::make_shared<Shared>(study);
    return [shared](const SweepPoint& point) -> SweepOutcome {
        const auto loaded = shared->cases.at(point);
        const SystemSpec system = system_at(shared->study, point);
        try {
            return simulate_case(*loaded, system);
        } catch (const InputError& refusal) {
            return {refusal.what(), {}};
        }
    };
}

}  // namespace moehub
