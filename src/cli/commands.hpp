/// The commands, one file each, in the order that help lists them.
#pragma once
#include "cli/command.hpp"

namespace moehub {

Command compare_command();     ///< systems side by side on one layer
Command sweep_command();       ///< many settings, seeds and systems, into a database
Command merge_command();       ///< databases of parts of a sweep, joined
Command run_command();         ///< one system on one layer, with what its units counted
Command gain_command();        ///< where a system's lead comes from
Command model_command();       ///< a whole model under several systems
Command plan_command();        ///< parallel layouts of a training run
Command area_command();        ///< silicon that the proposals' tables take
Command lines_command();       ///< the systems' programs and how long they are
Command list_command();        ///< what there is
Command show_command();        ///< one machine, model, GPU or system in full
Command collective_command();  ///< one collective on a machine's fabric
Command predict_command();     ///< one kernel of a serving engine on one card
Command validate_command();    ///< how far the model is from a file of measurements
Command reproduce_command();   ///< a paper's published numbers beside the simulator's
Command profile_command();     ///< what recorded routing is like
Command place_command();       ///< experts on GPUs from recorded routing
/// Both print what the program consists of, and refer to it.
Command completion_command(const Program& program);  ///< for shells
Command man_command(const Program& program);         ///< for man

}  // namespace moehub
