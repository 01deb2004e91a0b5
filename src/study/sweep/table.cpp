#include "study/sweep/table.hpp"

#include "base/portable_math.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr const char* kIdeal = "ideal";

/// The geometric mean of numbers above 0; none of no numbers.
class GeometricMean {
  public:
    void add(double number) {
        sum_ += portable_log(number);
        ++count_;
    }
    std::optional<double> value() const {
        return count_ > 0 ? std::optional(portable_exp(sum_ / count_)) : std::nullopt;
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

/// Means by the value of one axis, the setting of all others, the system.
class AxisCells {
  public:
    AxisCells(const Study& study, const std::vector<SweepMean>& means, std::size_t axis)
        : means_(means), rows_(study.axes[axis].rows.size()), systems_(study.systems.size()) {
        for (std::size_t i = axis + 1; i < study.axes.size(); ++i)
            inner_ *= study.axes[i].rows.size();
    }
    std::size_t settings() const { return means_.size() / systems_ / rows_; }
    const SweepMean& at(std::size_t row, std::size_t other, std::size_t system) const {
        const std::size_t setting = (other / inner_ * rows_ + row) * inner_ + other % inner_;
        return means_[setting * systems_ + system];
    }
    /// Settings at which all ran that ran anywhere.
    std::vector<std::size_t> shared() const {
        std::vector<std::size_t> shared;
        for (std::size_t other = 0; other < settings(); ++other) shared.push_back(other);
        for (std::size_t row = 0; row < rows_; ++row) {
            for (std::size_t system = 0; system < systems_; ++system) {
                std::vector<std::size_t> ran;
                for (std::size_t other = 0; other < settings(); ++other)
                    if (at(row, other, system).runs > 0) ran.push_back(other);
                if (ran.empty()) continue;
                std::vector<std::size_t> both;
                std::set_intersection(shared.begin(), shared.end(), ran.begin(), ran.end(),
                                      std::back_inserter(both));
                shared = std::move(both);
            }
        }
        return shared;
    }

  private:
    const std::vector<SweepMean>& means_;
    std::size_t rows_;
    std::size_t systems_;
    std::size_t inner_ = 1;
};

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

AxisSummary axis_summary(const Study& study, const std::vector<SweepMean>& means,
                         std::size_t axis) {
    const auto& rows = study.axes[axis].rows;
    const AxisCells cells(study, means, axis);
    const std::vector<std::size_t> shared = cells.shared();
    AxisSummary summary{{}, cells.settings(), shared.size()};
    for (std::size_t row = 0; row < rows.size(); ++row) {
        AxisValue value{fmt::format("{}", fmt::join(rows[row], " / ")), {}, {}};
        for (std::size_t system = 0; system < study.systems.size(); ++system) {
            GeometricMean speedup;
            GeometricMean time;
            for (const std::size_t other : shared) {
                const SweepMean& mean = cells.at(row, other, system);
                if (mean.speedup) speedup.add(*mean.speedup);
                if (mean.runs > 0) time.add(mean.time_us);
            }
            value.speedups.push_back(speedup.value());
            value.times_us.push_back(time.value());
        }
        summary.values.push_back(std::move(value));
    }
    return summary;
}

}  // namespace moehub
