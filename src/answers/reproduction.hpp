/// A reproduced paper as an answer.
#pragma once
#include "report/answer.hpp"

#include <moehub/reproduce.hpp>

namespace moehub {

Answer answer_of(const Reproduction& all);

}  // namespace moehub
