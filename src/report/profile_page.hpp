/// A page of recorded routing.
#pragma once
#include "report/page.hpp"
#include "report/profile_report.hpp"

namespace moehub {

/// Maps of load and pairs, lines by layer, sentences and tables. Document and command are the
/// caller's to fill in.
Page profile_page(const ProfileReport& report);

}  // namespace moehub
