/// A point of a study as the arguments of the command that simulates it: its keys are that
/// command's options, and what `--set` takes.
#pragma once
#include "request/model_arguments.hpp"
#include "study/sweep/study.hpp"

namespace moehub {

/// The options of a kind of study that are keys, too: all that change what is simulated.
std::vector<Option> point_options(StudyKind kind, ModelArguments& arguments);
/// Of all kinds.
std::vector<Option> point_options(ModelArguments& arguments);

/// What was typed, as settings of a study; of any kind, check_keys() says what goes with it.
std::vector<StudySetting> typed_settings(const ModelArguments& typed);

/// Throws InputError for a key that there is not, with its place and the nearest that there is.
void check_keys(const Study& study);

/// Throws InputError when a value cannot stand there at all (a flag that is neither true nor
/// false), or keys cannot stand together; everything else is found by loading.
ModelArguments arguments_of(const Study& study, const SweepPoint& point);

}  // namespace moehub
