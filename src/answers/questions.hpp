/// All questions: a function each, in a file of its name.
#pragma once
#include "answers/question.hpp"

#include <vector>

namespace moehub {

Question compare_question();     ///< systems side by side on one layer
Question run_question();         ///< one system on one layer, with what its units counted
Question gain_question();        ///< where a system's lead comes from
Question model_question();       ///< a whole model: forward, in training, or served
Question sweep_question();       ///< many settings, seeds and systems, into a database
Question merge_question();       ///< databases of parts of a sweep, joined
Question plan_question();        ///< parallel layouts of a training run
Question area_question();        ///< silicon that the proposals' tables take
Question lines_question();       ///< the systems' programs and how long they are
Question list_question();        ///< what there is
Question show_question();        ///< one machine, model, GPU or system in full
Question collective_question();  ///< one collective on a machine's fabric
Question predict_question();     ///< one kernel of a serving engine on one card
Question validate_question();    ///< how far the model is from a file of measurements
Question reproduce_question();   ///< a paper's published numbers beside the simulator's
Question profile_question();     ///< what recorded routing is like
Question place_question();       ///< experts on GPUs from recorded routing

/// In the order that help lists them.
std::vector<Question> questions();

}  // namespace moehub
