/// What ranks of a sweep tell one another, as bytes. All run the same program on the same kind of
/// machine, so numbers travel as they are in memory.
#pragma once
#include "study/sweep/study.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct SweepMessage {
    enum class Kind : char {
        ready = 'r',    ///< to rank 0: `text` is the signature, `number` how many points it takes
        alive = 'a',    ///< either way
        result = 'o',   ///< to rank 0: outcome of point `number`
        failure = 'f',  ///< to rank 0: point `number` failed, `text` says how
        points = 'p',   ///< from rank 0: simulate `points`
        end = 'e',      ///< from rank 0; `number` is not 0 where ranks were lost
    };
    Kind kind = Kind::alive;
    std::uint64_t number = 0;
    std::string text = {};
    SweepOutcome outcome = {};
    std::vector<std::uint64_t> points = {};
};

std::string to_bytes(const SweepMessage& message);
/// Throws std::runtime_error for what to_bytes does not write.
SweepMessage from_bytes(std::string_view bytes);

}  // namespace moehub
