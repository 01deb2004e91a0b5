#include "study/sweep/table.hpp"

#include "base/portable_math.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr const char* kIdeal = "ideal";

/// Of numbers above 0; nothing of none.
class GeometricMean {
  public:
    void add(double number) {
        sum_ += portable_log(number);
        ++count_;
    }
    std::optional<double> value() const {
        if (count_ == 0) return std::nullopt;
        return count_ == 1 ? portable_exp(sum_) : portable_exp(sum_ / count_);
    }

  private:
    double sum_ = 0;
    double count_ = 0;
};

std::optional<std::size_t> place_of(const std::vector<std::string>& names,
                                    const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
}

double time_of(const SweepOutcome& outcome) {
    return outcome.values.front();
}

/// The time of system `of` over this one's, at the same setting and seed.
std::optional<double> ratio(const Study& study, const SweepOutcomes& outcomes, std::size_t number,
                            std::optional<std::size_t> of) {
    if (!of) return std::nullopt;
    const std::size_t systems = study.systems.size();
    const auto& other = outcomes[number - number % systems + *of];
    const auto& own = outcomes[number];
    if (!other || !own || !other->ran() || !own->ran()) return std::nullopt;
    return time_of(*other) / time_of(*own);
}

SweepMean mean_of(const std::vector<const SweepRow*>& rows) {
    SweepMean mean;
    mean.values = rows.front()->point.values;
    mean.system = rows.front()->point.system;
    GeometricMean speedup;
    GeometricMean ideal;
    for (const SweepRow* row : rows) {
        if (row->outcome == nullptr) continue;
        if (!row->outcome->ran()) {
            mean.refused = row->outcome->refused;
            continue;
        }
        ++mean.runs;
        mean.time_us += time_of(*row->outcome);
        if (row->speedup) speedup.add(*row->speedup);
        if (row->share_of_ideal) ideal.add(*row->share_of_ideal);
    }
    if (mean.runs == 0) return mean;
    mean.time_us /= static_cast<double>(mean.runs);
    double squares = 0;
    for (const SweepRow* row : rows) {
        if (row->outcome == nullptr || !row->outcome->ran()) continue;
        const double off = time_of(*row->outcome) - mean.time_us;
        squares += off * off;
    }
    if (mean.runs > 1) mean.deviation = std::sqrt(squares / static_cast<double>(mean.runs - 1));
    mean.speedup = speedup.value();
    mean.share_of_ideal = ideal.value();
    return mean;
}

}  // namespace

std::string baseline_of(const Study& study) {
    if (!study.baseline.empty()) return study.baseline;
    for (const char* usual : {"megatron-te", "tp-nvls"})
        if (place_of(study.systems, usual)) return usual;
    for (const std::string& system : study.systems)
        if (system != kIdeal) return system;
    return study.systems.front();
}

std::vector<SweepRow> sweep_rows(const Study& study, const SweepOutcomes& outcomes) {
    const auto baseline = place_of(study.systems, baseline_of(study));
    const auto ideal = place_of(study.systems, kIdeal);
    std::vector<SweepRow> rows;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        rows.push_back({point_of(study, i), outcomes[i] ? &*outcomes[i] : nullptr,
                        ratio(study, outcomes, i, baseline), ratio(study, outcomes, i, ideal)});
    return rows;
}

std::vector<SweepMean> sweep_means(const Study& study, const std::vector<SweepRow>& rows) {
    const std::size_t systems = study.systems.size();
    const std::size_t seeds = std::max<std::size_t>(1, study.seeds.size());
    std::vector<SweepMean> means;
    for (std::size_t setting = 0; setting < settings_in(study); ++setting) {
        for (std::size_t system = 0; system < systems; ++system) {
            std::vector<const SweepRow*> same;
            for (std::size_t seed = 0; seed < seeds; ++seed)
                same.push_back(&rows[(setting * seeds + seed) * systems + system]);
            means.push_back(mean_of(same));
        }
    }
    return means;
}

std::vector<AxisValue> axis_summary(const Study& study, const std::vector<SweepMean>& means,
                                    std::size_t axis) {
    std::size_t inner = study.systems.size();
    for (std::size_t i = axis + 1; i < study.axes.size(); ++i) inner *= study.axes[i].rows.size();
    const auto& rows = study.axes[axis].rows;
    std::vector<AxisValue> values;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        std::vector<GeometricMean> speedups(study.systems.size());
        std::vector<GeometricMean> times(study.systems.size());
        for (std::size_t i = 0; i < means.size(); ++i) {
            if (i / inner % rows.size() != row) continue;
            const std::size_t system = i % study.systems.size();
            if (means[i].speedup) speedups[system].add(*means[i].speedup);
            if (means[i].runs > 0) times[system].add(means[i].time_us);
        }
        AxisValue value{fmt::format("{}", fmt::join(rows[row], " / ")), {}, {}};
        for (const GeometricMean& mean : speedups) value.speedups.push_back(mean.value());
        for (const GeometricMean& mean : times) value.times_us.push_back(mean.value());
        values.push_back(std::move(value));
    }
    return values;
}

}  // namespace moehub
