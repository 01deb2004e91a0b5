/// How predicted and published orders of training runs agree, as text and JSON.
#pragma once
#include "report/page.hpp"
#include "study/rank_runs.hpp"

#include <string>

namespace moehub {

std::string ranking_text(const RunRanking& ranking, bool colour);
std::string to_json(const RunRanking& ranking);
/// Document and command are the caller's to fill in.
Page ranking_page(const RunRanking& ranking);

}  // namespace moehub
