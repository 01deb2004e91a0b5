/// `moehub plan --rank FILE`: how well predicted and published orders of training runs agree.
#pragma once
#include <string>

namespace moehub {

struct RankRequest {
    std::string file;
    bool json = false;
    std::string output;  ///< empty: standard output
};

void rank_runs_command(const RankRequest& request);

}  // namespace moehub
