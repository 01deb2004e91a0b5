// Every layer is annealed by itself, from several starts, as long as layers pay for themselves;
// then, where they depend on each other, labels are aligned along the chain and all layers annealed
// together.
//
// Several short runs find better layouts than one long run: on 64 experts and 8 GPUs runs of 150
// sweeps differ by 0.7 % (standard deviation), and one of ten times the length gains 0.3 %.
#include "base/parallel.hpp"
#include "place/assignment.hpp"
#include "place/search/joint_problem.hpp"

#include <cmath>
#include <limits>
#include <mutex>

namespace moehub {
namespace {

/// Schedules of layers annealed by themselves, all together, and all together when each was
/// searched before.
struct StageSchedule {
    double sweeps;  ///< sweeps of one run over all pairs of items, one proposal each
    double hot;     ///< temperature as in Schedule
    double cold;
    double from;  ///< share of the whole search that is done before
};
constexpr StageSchedule kAlone{150, 0.3, 0.08, 0};
constexpr StageSchedule kTogether{500, 1.0, 0.1, 0};
constexpr StageSchedule kAgain{300, 0.07, 0.02, 0.5};

/// Weight of uneven loads while annealing: about 0.1 % of the objective for loads that are spread
/// as the usual cap allows. None where the cap is so loose that loads hardly matter.
double evenness_for(const Objective& want, double load_cap) {
    constexpr double kLoose = 1.2;
    return load_cap > 0 && load_cap <= kLoose ? 3 * (want.gpus + want.nodes) : 0;
}

double pairs_of(const Search& search) {
    double pairs = 0;
    for (int layer = 0; layer < search.layers(); ++layer)
        pairs += 0.5 * search.items(layer) * search.items(layer);
    return pairs;
}

constexpr int kMostRuns = 64;

/// The work of each run: a short one first, so that there is something early, then some of about
/// the schedule's sweeps.
std::vector<double> runs_of(double work, double pairs, const StageSchedule& schedule) {
    constexpr double kFirst = 0.1;
    const double one = schedule.sweeps * pairs;
    const double rest = work * (1 - kFirst);
    const double count = std::floor(std::clamp(rest / one, 1.0, double{kMostRuns}));
    std::vector<double> runs(static_cast<std::size_t>(count) + 1, std::min(rest / count, 2 * one));
    runs.front() = std::min(work * kFirst, one);
    return runs;
}

/// Tells the caller how far the search is and what the best so far is worth; pieces may end on
/// several threads.
class Report {
  public:
    /// Part of the search that the pieces are, from the first share to the second.
    using Part = std::pair<double, double>;

    Report(const PlaceOptions& options, std::size_t pieces, double value, const Part& part)
        : options_(options), pieces_(pieces), value_(value), part_(part) {}
    /// Tells that a piece is done, and the best now worth what `value` makes of before.
    void done(const std::function<double(double)>& value) {
        const std::lock_guard lock(mutex_);
        value_ = value(value_);
        ++done_;
        const auto [begin, end] = part_;
        const double share = (end - begin) * static_cast<double>(done_);
        if (options_.progress)
            options_.progress(begin + share / static_cast<double>(pieces_), value_);
    }

  private:
    const PlaceOptions& options_;
    std::size_t pieces_;
    std::size_t done_ = 0;
    double value_;
    Part part_;
    std::mutex mutex_;
};

struct Parts {
    bool local = false;    ///< whether a layer pays for itself
    bool coupled = false;  ///< whether layers pay for each other, or share moves
};
Parts parts_of(const SearchSpec& spec, bool several) {
    const Objective& want = spec.objective;
    const bool chain = want.transitions > 0 || want.pair > 0 || want.node_transitions > 0;
    const bool moves = spec.max_moves.has_value();
    return {!moves && (want.gpus > 0 || want.moved > 0 || want.nodes > 0 || want.activated > 0 ||
                       (want.load > 0 && (several || want != Objective{.load = want.load}))),
            moves || (chain && spec.layers > 1)};
}

/// Anneals towards even loads as well, then takes what the objective alone gains.
void run_once(Search& search, const Schedule& schedule, double evenness, Rng& rng,
              const std::function<bool()>& over) {
    search.set_evenness(evenness);
    anneal(search, schedule, rng, over);
    search.set_evenness(0);
    descend(search, over);
    search.sort_copies();
}

/// Where there is time for all runs the problem is small, and each second one looks elsewhere: from
/// another start, as swaps within caps need not reach every layout, and at the objective alone.
bool elsewhere(std::size_t run, std::size_t runs) {
    return runs > kMostRuns && run % 2 == 1;
}

/// The best of a layer's runs: of those within 0.1 % of the least objective the current layout,
/// which moves nothing, or else the most even; that much is nothing on tokens the search has not
/// seen.
class Best {
  public:
    void offer(const Search& search, bool current = false) {
        // less uneven than any run that is not
        const double unevenness = current ? -1 : search.unevenness();
        found_.push_back({search.objective(), unevenness, search.gpu_of(0)});
        value_ = std::min(value_, found_.back().objective);
    }
    double value() const { return value_; }
    const std::vector<int>& gpu_of() const {
        constexpr double kAsGood = 1.001;
        const Run* best = nullptr;
        for (const Run& run : found_)
            if (run.objective <= value_ * kAsGood && (!best || run.unevenness < best->unevenness))
                best = &run;
        return best->gpu_of;
    }

  private:
    struct Run {
        double objective;
        double unevenness;
        std::vector<int> gpu_of;
    };
    std::vector<Run> found_;
    double value_ = std::numeric_limits<double>::infinity();
};

/// Anneals every layer by itself, from several starts, and keeps the best of each.
ItemGpus search_layers(const JointProblem& problem, const PlaceOptions& options,
                       const Budget& budget, double work) {
    const ItemGpus start = problem.start();
    const std::size_t layers = start.size();
    std::vector<Search> searches;
    std::vector<Best> best(layers);
    double value = 0;
    for (std::size_t layer = 0; layer < layers; ++layer) {
        searches.push_back(problem.one_layer(static_cast<int>(layer)));
        best[layer].offer(searches[layer]);
        if (const auto current = problem.current_gpu_of(static_cast<int>(layer))) {
            searches[layer].place({*current});
            if (searches[layer].excess() <= 0) best[layer].offer(searches[layer], true);
        }
        value += best[layer].value() / static_cast<double>(layers);
    }
    const std::vector<double> runs =
        runs_of(work / static_cast<double>(layers), pairs_of(searches.front()), kAlone);
    const double evenness = evenness_for(problem.spec().objective, options.load_cap);
    const auto over = [&budget] { return budget.over(); };
    Report report(options, layers * runs.size(), value, {0, work / budget.work()});
    for (std::size_t run = 0; run < runs.size(); ++run)
        run_parallel(
            layers,
            [&](std::size_t layer) {
                if (over()) return;
                Rng rng(options.seed, run * layers + layer);
                const bool other = elsewhere(run, runs.size());
                searches[layer].place(
                    {other ? problem.another_start(static_cast<int>(layer), rng) : start[layer]});
                run_once(searches[layer], {runs[run], kAlone.hot, kAlone.cold},
                         other ? 0 : evenness, rng, over);
                const double before = best[layer].value();
                best[layer].offer(searches[layer]);
                const double gain = (before - best[layer].value()) / static_cast<double>(layers);
                report.done([gain](double whole) { return whole - gain; });
            },
            {options.threads, {}});
    ItemGpus item_gpus;
    for (const Best& layer : best) item_gpus.push_back(layer.gpu_of());
    return item_gpus;
}

struct Found {
    ItemGpus item_gpus;
    double value = 0;
};

/// Anneals all layers together, from `start`; labels aligned where they are free.
ItemGpus search_together(const JointProblem& problem, const PlaceOptions& options,
                         const Budget& budget, const ItemGpus& start,
                         const StageSchedule& schedule) {
    const bool free = !problem.spec().max_moves && problem.spec().objective.moved <= 0;
    Search first = problem.all_layers(problem.spec().objective);
    first.place(start);
    if (free) first.align();
    const std::vector<double> runs =
        runs_of(budget.work() * (1 - schedule.from), pairs_of(first), schedule);
    std::vector<Found> found(runs.size(), {first.item_gpus(), first.objective()});
    const double evenness = evenness_for(problem.spec().objective, options.load_cap);
    const auto over = [&budget] { return budget.over(); };
    Report report(options, runs.size(), first.objective() / problem.layers(), {schedule.from, 1});
    run_parallel(runs.size(),
                 [&](std::size_t run) {
                     if (over()) return;
                     Search search = first;
                     Rng rng(options.seed, run);
                     const auto keep = [&] {
                         if (search.objective() < found[run].value)
                             found[run] = {search.item_gpus(), search.objective()};
                     };
                     const bool other = free && elsewhere(run, runs.size());
                     if (other) search.place(problem.another_start(rng));
                     run_once(search, {runs[run], schedule.hot, schedule.cold},
                              other ? 0 : evenness, rng, over);
                     keep();
                     if (free) {
                         search.align();
                         descend(search, over);
                         keep();
                     }
                     report.done([&](double before) {
                         return std::min(before, found[run].value / problem.layers());
                     });
                 },
                 {options.threads, {}});
    return std::min_element(
               found.begin(), found.end(),
               [](const Found& left, const Found& right) { return left.value < right.value; })
        ->item_gpus;
}

/// Labels under which most items stay where the current layout has them: layer by layer, or the
/// same for all layers where transitions between them are to stay what they are.
void stay(ItemGpus& item_gpus, const JointProblem& problem, const PlaceInput& input,
          bool same_for_all) {
    Matrix all(input.gpus, input.gpus);
    std::vector<Matrix> kept;
    for (int layer = 0; layer < problem.layers(); ++layer) {
        kept.push_back(problem.kept(layer, item_gpus[at(layer)]));
        std::ranges::transform(all.at_, kept.back().at_, all.at_.begin(), std::plus<>());
    }
    for (int layer = 0; layer < problem.layers(); ++layer) {
        const std::vector<int> labels =
            best_labels(same_for_all ? all : kept[at(layer)], input.nodes);
        for (int& gpu : item_gpus[at(layer)]) gpu = labels[at(gpu)];
    }
}

}  // namespace

ItemGpus search_stages(const JointProblem& problem, const PlaceInput& input,
                       const PlaceOptions& options, const Budget& budget) {
    const Parts parts = parts_of(problem.spec(), input.profiles.size() > 1);
    ItemGpus item_gpus = problem.start();
    if (parts.local)
        item_gpus =
            search_layers(problem, options, budget, budget.work() / (parts.coupled ? 2 : 1));
    if (parts.coupled) {
        item_gpus = search_together(problem, options, budget, item_gpus,
                                    parts.local ? kAgain
                                    : options.max_moves
                                        ? StageSchedule{kAgain.sweeps, kAgain.hot, kAgain.cold, 0}
                                        : kTogether);
    }
    if (options.current) {
        if (!options.max_moves && problem.spec().objective.moved <= 0)
            stay(item_gpus, problem, input, parts.coupled);
    } else if (!parts.coupled && problem.has_tokens() && input.redundant == 0) {
        // Labels cost the objective nothing; others gain when tokens stay on their GPU. With
        // copies, which are numbered by GPU, it would cost more than 0.1 %.
        Search search = problem.all_layers(Objective{.transitions = 1});
        search.place(item_gpus);
        search.align();
        item_gpus = search.item_gpus();
    }
    return item_gpus;
}

}  // namespace moehub
