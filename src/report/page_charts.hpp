/// Charts of a page as JSON, which src/report/web reads, and in words for those who do not see
/// them.
#pragma once
#include "base/json.hpp"
#include "report/page.hpp"

namespace moehub {

Json chart_json(const Chart& chart);
std::string_view title_of(const Chart& chart);
/// Kind, title and the main numbers, in a sentence or two.
std::string chart_words(const Chart& chart);

}  // namespace moehub
