/// Many settings, seeds and systems of a question: what is swept.
#pragma once
#include "answers/question.hpp"
#include "study/sweep/store.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// `--sweep` and what stands beside it wherever it does.
struct SweepAxes {
    std::vector<SweepAxis> axes;
    std::vector<SweepAxis> together;  ///< all go with one another
    std::vector<std::string> seeds;

    bool asked() const { return !axes.empty(); }
};
Options sweep_axes_options(SweepAxes& axes, const OptionRules& beside = {});

struct SweepRequest {
    std::optional<std::string> study;  ///< a file
    std::optional<std::string> kind;
    SweepAxes axes;
    std::optional<std::vector<std::string>> systems;
    std::string baseline;
    int threads = 0;
    std::optional<SweepShard> shard;
    bool dry_run = false;
    std::string database;  ///< empty: by the study's name
};

/// Runs it; all else that was said holds for all points. Throws InputError.
Answer sweep_answer(const SweepRequest& request, const Asker& asker);

/// A kind of study by its name: the question that each point asks. Throws InputError.
struct StudyQuestion {
    Question question;
    SweepKind kind;
};
StudyQuestion study_question(const std::string& kind, const std::string& where);

/// What is said at a point: its settings, seed and system.
Said said_at(const Study& study, const SweepPoint& point, const StudyQuestion& asked);

/// Throws InputError for a key that there is not, with its place and the nearest that there is.
void check_keys(const Study& study, const StudyQuestion& asked);

/// A finished sweep as tables and charts. `database` is empty where it does not stay.
Answer sweep_table(const Study& study, const std::vector<std::optional<SweepOutcome>>& outcomes,
                   const std::string& database);

}  // namespace moehub
