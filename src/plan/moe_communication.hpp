/// MoE layers of a group of neighbouring GPUs, simulated under a system and without communication.
#pragma once
#include "plan/groups.hpp"
#include "plan/once_map.hpp"

#include <moehub/routing.hpp>

#include <cstddef>
#include <string>

namespace moehub {

struct MoeCaseHash {
    std::size_t operator()(const MoeCase& one) const;
};
struct SameMoeCase {
    bool operator()(const MoeCase& a, const MoeCase& b) const;
};

/// Times by tokens of a GPU: simulated at two counts, straight lines through them. Any number of
/// threads may ask.
class ExchangeTimes {
  public:
    /// `routing` as TrainingRun::routing.
    ExchangeTimes(Machine machine, Model model, RoutingSpec routing);

    /// As Communication::moe.
    MoeCommunication at(const MoeCase& one);
    MoeCommunication exact(const MoeCase& one);

  private:
    /// Two counts of tokens, and what was simulated at them.
    struct Line {
        std::int64_t few = 0;
        std::int64_t many = 0;
        MoeCommunication at_few;
        MoeCommunication at_many;
    };

    std::int64_t affordable(const MoeCase& one, std::int64_t rows) const;
    Line line_of(const MoeCase& one);
    /// Each of these is simulated once.
    MoeCommunication simulated(const MoeCase& one);
    double ideal(const MoeCase& one);
    static MoeCommunication along(const Line& line, std::int64_t tokens);

    Machine machine_;
    Model model_;
    RoutingSpec routing_;
    OnceMap<MoeCase, Line, MoeCaseHash, SameMoeCase> lines_;  ///< tokens 0
    OnceMap<MoeCase, MoeCommunication, MoeCaseHash, SameMoeCase> simulated_;
    OnceMap<MoeCase, double, MoeCaseHash, SameMoeCase> ideals_;  ///< no system
};

}  // namespace moehub
