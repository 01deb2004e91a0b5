/// How predicted and published orders of training runs agree, as text and JSON.
#pragma once
#include "base/json.hpp"
#include "report/page.hpp"
#include "report/text_style.hpp"
#include "study/rank_runs.hpp"

#include <string>

namespace moehub {

std::string ranking_text(const RunRanking& ranking, const TextStyle& style);
Json rank_json(const RunRanking& ranking);
/// Document and command are the caller's to fill in.
Page ranking_page(const RunRanking& ranking);

}  // namespace moehub
