#include "answers/questions.hpp"

namespace moehub {

// One a line: a new question is one more.
// clang-format off
std::vector<Question> questions() {
    return {
        compare_question(),
        run_question(),
        gain_question(),
        model_question(),
        sweep_question(),
        merge_question(),
        plan_question(),
        area_question(),
        lines_question(),
        list_question(),
        show_question(),
        collective_question(),
        predict_question(),
        validate_question(),
        reproduce_question(),
        profile_question(),
        place_question(),
    };
}
// clang-format on

}  // namespace moehub
