/// `moehub plan --rank FILE`: how well predicted and published orders of training runs agree.
#pragma once
#include "cli/html_output.hpp"

#include <string>

namespace moehub {

struct RankRequest {
    std::string file;
    bool json = false;
    std::string output;  ///< empty: standard output
    HtmlOutput html = {};
};

void rank_runs_command(const RankRequest& request);

}  // namespace moehub
